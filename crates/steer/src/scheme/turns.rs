//! Algorithms in turn: the scheme `switch:cubic,bbr:every=20s:part` and its text.

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_units::Duration;

use super::every::{self, EveryError};

/// Default: how long an algorithm runs (Floo §5.5.1).
const EVERY: Duration = Duration::from_secs(20);

/// Algorithms that run one after the other on the same flow, and from the beginning again.
#[derive(Clone, Debug)]
pub struct Turns {
    /// The algorithms; two at least, and none follows itself.
    pub specs: Vec<Spec>,
    /// How long each one runs.
    pub every: Duration,
    /// What goes over from each to the next.
    pub how: Switch,
}

/// Why a text names no algorithms in turn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TurnsError {
    /// There are fewer than two.
    #[error("it takes two algorithms or more, e.g. switch:cubic,bbr:every=20s")]
    TooFew,
    /// An algorithm follows itself.
    #[error(
        "{0} would take over from itself; name each algorithm once in a row, the last and the first too"
    )]
    Itself(&'static str),
    /// There is no such algorithm.
    #[error("no algorithm {0:?} to switch to; algorithms have no settings here, and there are \
             {known}", known = names().join(", "))]
    Unknown(String),
    /// There is no such setting.
    #[error(
        "no setting {0:?}; there are every=TIME (default: 20s), and full or part (default: full)"
    )]
    Setting(String),
    /// They are to change too often.
    #[error(transparent)]
    Every(#[from] EveryError),
}

fn names() -> Vec<&'static str> {
    trimtab_cc::ALGORITHMS.iter().map(|a| a.name).collect()
}

impl Turns {
    /// Reads `NAME,NAME[,NAME…][:every=TIME][:full|:part]`.
    pub(super) fn parse(text: &str) -> Result<Self, TurnsError> {
        let mut parts = text.split(':').map(str::trim);
        let listed = parts.next().unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
        let specs = listed
            .map(|name| Spec::new(name).ok_or_else(|| TurnsError::Unknown(name.to_owned())))
            .collect::<Result<Vec<_>, _>>()?;
        let mut turns = Self::new(specs)?;
        for setting in parts {
            match (setting.split_once('='), every::how(setting)) {
                (Some(("every", time)), _) => turns.every = every::parse(time)?,
                (None, Some(how)) => turns.how = how,
                _ => return Err(TurnsError::Setting(setting.to_owned())),
            }
        }
        Ok(turns)
    }

    /// These algorithms in turn, with the default settings.
    ///
    /// # Errors
    /// There are fewer than two, or one follows itself.
    pub fn new(specs: Vec<Spec>) -> Result<Self, TurnsError> {
        if specs.len() < 2 {
            return Err(TurnsError::TooFew);
        }
        let name = |i: usize| specs[i % specs.len()].algorithm().name;
        if let Some(twice) = (0..specs.len()).find(|&i| name(i) == name(i + 1)) {
            return Err(TurnsError::Itself(name(twice)));
        }
        Ok(Self { specs, every: EVERY, how: Switch::Full })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_then_settings() {
        let turns = Turns::parse("cubic,bbr, copa").unwrap();
        let names: Vec<&str> = turns.specs.iter().map(|s| s.algorithm().name).collect();
        assert_eq!(names, ["cubic", "bbr", "copa"]);
        assert_eq!((turns.every, turns.how), (Duration::from_secs(20), Switch::Full));
        let turns = Turns::parse("cubic,bbr:every=1.5s:part").unwrap();
        assert_eq!((turns.every, turns.how), (Duration::from_millis(1500), Switch::Part));
        assert_eq!(Turns::parse("cubic,bbr:part:every=1s:full").unwrap().how, Switch::Full);
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = |text: &str| Turns::parse(text).unwrap_err().to_string();
        assert!(e("cubic").contains("switch:cubic,bbr:every=20s"));
        assert!(e("").contains("two algorithms or more"));
        assert!(e("cubic,bbr,cubic").contains("cubic would take over from itself"));
        assert!(e("cubic,quick").contains("no algorithm \"quick\"") && e("a,b").contains("vegas"));
        assert!(e("cubic,copa:mit").contains("no setting \"mit\"; there are every=TIME"));
        assert!(e("cubic,copa:every=20").contains("every=20: it takes a time"));
        assert!(e("cubic,copa:every=100us").contains("1ms at least"));
    }
}
