//! The settings that all schemes with several algorithms share: how often, and what goes over.

use trimtab_cc::migrate::Switch;
use trimtab_units::Duration;

/// The shortest time between two choices. Floo goes down to one acknowledgement (Appendix F), and
/// reports come every millisecond at most ([`Driver`](crate::Driver)).
const EVERY_MIN: Duration = Duration::from_millis(1);

/// Why a time is none that a scheme can choose by.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EveryError {
    /// Of a period.
    #[error("every={0}: it takes a time of 1ms at least, e.g. every=12s")]
    Every(String),
    /// Of a look after a switch.
    #[error("look={0}: it takes a time of 1s to 10s, e.g. look=2s")]
    Look(String),
}

/// Checks how often a scheme chooses.
///
/// # Errors
/// It is too often.
pub fn every(time: Duration) -> Result<Duration, EveryError> {
    if time >= EVERY_MIN { Ok(time) } else { Err(EveryError::Every(time.to_string())) }
}

/// Reads how often a scheme chooses.
pub(super) fn parse(text: &str) -> Result<Duration, EveryError> {
    text.parse().map_err(|_| EveryError::Every(text.to_owned())).and_then(every)
}

/// Reads how long after a switch a connection is looked at. A second has two reports, and what is
/// 10 s ago is another path.
pub(super) fn look(text: &str) -> Result<Duration, EveryError> {
    let range = Duration::from_secs(1)..=Duration::from_secs(10);
    let time = text.parse().ok().filter(|time| range.contains(time));
    time.ok_or_else(|| EveryError::Look(text.to_owned()))
}

/// Reads what goes over from one algorithm to the next.
pub fn how(text: &str) -> Option<Switch> {
    match text {
        "full" => Some(Switch::Full),
        "part" => Some(Switch::Part),
        _ => None,
    }
}
