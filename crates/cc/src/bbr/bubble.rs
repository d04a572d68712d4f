//! Which packets were sent while the algorithm itself held the sender back.

use trimtab_units::Bytes;

use crate::RateSample;

/// Samples of packets sent in ProbeRTT say nothing about the bandwidth: they are treated as
/// application-limited (Linux `bbr_update_min_rtt`, draft-ietf-ccwg-bbr `MarkConnectionAppLimited()`).
/// Linux and the draft mark them in the transport's sampler; here the packets are known by the
/// delivered bytes when they were sent.
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

    /// The sample, marked as application-limited where its packet belongs to the bubble.
    pub(super) fn marked(&self, sample: Option<RateSample>) -> Option<RateSample> {
        let held = |s: &RateSample| s.app_limited || self.contains(s.prior_delivered);
        sample.map(|s| RateSample { app_limited: held(&s), ..s })
    }

    /// Whether a packet sent at this many delivered bytes belongs to it.
    pub(super) fn contains(&self, prior_delivered: Bytes) -> bool {
        self.span.is_some_and(|(start, end)| start <= prior_delivered && prior_delivered <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_units::Duration;

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
        let rate = RateSample {
            delivered: bytes(50),
            interval: Duration::from_millis(1),
            prior_delivered: bytes(100),
            app_limited: false,
            tx_in_flight: bytes(40),
            lost: Bytes::ZERO,
        };
        let marked = |rate| bubble.marked(Some(rate)).unwrap().app_limited;
        assert!(marked(rate) && !marked(RateSample { prior_delivered: bytes(99), ..rate }));
        assert!(marked(RateSample { prior_delivered: bytes(99), app_limited: true, ..rate }));
        assert!(bubble.marked(None).is_none());
        bubble.extend(bytes(151), bytes(9));
        assert_eq!(held(&bubble), (151, 160), "all of the last one has arrived: a new one");
    }
}
