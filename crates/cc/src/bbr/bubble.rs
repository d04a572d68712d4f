//! Which packets were sent while the algorithm itself held the sender back.

use trimtab_units::Bytes;

/// Samples of packets sent in ProbeRTT say nothing about the bandwidth: they are treated as
/// application-limited. Linux and the
/// draft mark them in the transport's sampler; here the packets are known by
/// the delivered bytes when they were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bubble {
    span: Option<(Bytes, Bytes)>,
}

impl Bubble {
    /// Everything in flight now, and sent until it is acknowledged, belongs to the bubble.
    pub(super) fn extend(&mut self, delivered: Bytes, inflight: Bytes) {
        let start = match self.span {
            Some((start, end)) if delivered <= end => start,
            _ => delivered,
        };
        self.span = Some((start, delivered + inflight));
    }

    /// Whether a packet sent at this many delivered bytes belongs to it.
    pub(super) fn contains(&self, prior_delivered: Bytes) -> bool {
        self.span.is_some_and(|(start, end)| start <= prior_delivered && prior_delivered <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bubble_is_what_was_in_flight_and_what_followed_it() {
        let bytes = Bytes::new;
        let mut bubble = Bubble::default();
        assert!(!bubble.contains(Bytes::ZERO));
        bubble.extend(bytes(100), bytes(40));
        let held = |bubble: &Bubble| {
            (0..300)
                .filter(|at| bubble.contains(bytes(*at)))
                .fold((300, 0), |(least, most), at| (at.min(least), at.max(most)))
        };
        assert_eq!(held(&bubble), (100, 140));
        bubble.extend(bytes(140), bytes(10));
        assert_eq!(held(&bubble), (100, 150), "the same bubble goes on");
        bubble.extend(bytes(151), bytes(9));
        assert_eq!(held(&bubble), (151, 160), "all of the last one has arrived: a new one");
    }
}
