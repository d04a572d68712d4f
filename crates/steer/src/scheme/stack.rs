//! The congestion control that a QUIC stack brings itself: the scheme `noq:cubic` and its text.

/// An algorithm that is a stack's own, and runs on that stack only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackCc {
    /// noq's CUBIC (RFC 9438).
    NoqCubic,
    /// noq's NewReno (RFC 9002 §7).
    NoqNewReno,
    /// noq's BBRv3 (draft-ietf-ccwg-bbr).
    NoqBbr3,
}

/// There is no such algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("noq has no {0:?} of its own; there are noq:cubic, noq:newreno and noq:bbr3")]
pub struct StackCcError(String);

impl StackCc {
    /// Reads what follows `noq:`.
    pub(super) fn noq(text: &str) -> Result<Self, StackCcError> {
        match text.trim() {
            "cubic" => Ok(Self::NoqCubic),
            "newreno" => Ok(Self::NoqNewReno),
            "bbr3" => Ok(Self::NoqBbr3),
            other => Err(StackCcError(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, Scheme, SchemeKind, is_steered};
    use super::*;

    #[test]
    fn noqs_own_algorithms_are_schemes_that_nothing_steers() {
        for (text, cc) in [
            ("noq:cubic", StackCc::NoqCubic),
            ("noq:newreno", StackCc::NoqNewReno),
            ("noq:bbr3", StackCc::NoqBbr3),
        ] {
            let scheme: Scheme = text.parse().unwrap();
            assert!(matches!(scheme.kind(), SchemeKind::Stack(of) if *of == cc));
            assert!(matches!(scheme.kind().demand(), Demand::Stack(of) if of == cc));
            assert!(!scheme.is_bound() && !scheme.is_steered() && !is_steered(text));
        }
        let problem = "noq:copa".parse::<Scheme>().unwrap_err().to_string();
        assert!(
            problem.contains("noq has no \"copa\" of its own; there are noq:cubic"),
            "{problem}"
        );
    }
}
