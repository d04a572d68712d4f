//! The bounds of selection: `static-best`, `oracle:select:every=6s`, `oracle:select:cubic,bbr,copa:mvfst`,
//! `oracle:select:counterfactual`, and their text.

use trimtab_cc::{Spec, SpecError};
use trimtab_units::Duration;

use super::candidates;
use super::every::{self, EveryError};
use super::selection;
use crate::select::{CANDIDATES_MAX, PERIOD};

/// What a bound of selection has to choose among, and how often.
#[derive(Clone, Debug)]
pub struct SelectBound {
    /// The algorithms; two at least, each once.
    pub candidates: Vec<Spec>,
    /// How often; of no meaning to the best single one.
    pub every: Duration,
}

/// Why a text names no bound of selection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum BoundError {
    #[error(transparent)]
    Every(#[from] EveryError),
    #[error(
        "{text:?} is no algorithm to choose: {problem}; write e.g. cubic,bbr,copa:mvfst, with \
         semicolons between those that have several knobs"
    )]
    Candidate { text: String, problem: SpecError },
    #[error("it chooses among 2 to 16 algorithms, each named once, e.g. cubic,bbr,copa:mvfst")]
    Number,
    #[error("the best single algorithm is not chosen again: leave every out")]
    NotAgain,
}

impl SelectBound {
    /// Reads what follows `static-best:`.
    pub(super) fn single(text: &str) -> Result<Self, BoundError> {
        let bound = Self::course(text)?;
        if text.contains("every=") { Err(BoundError::NotAgain) } else { Ok(bound) }
    }

    /// Reads what follows `oracle:select:`, which is `[every=TIME:][CC,CC…]`; nothing is Floo's
    /// candidates every 12 s, which rules have, too. The name of a shipped policy is what that
    /// chooses among.
    pub(super) fn course(text: &str) -> Result<Self, BoundError> {
        let mut bound = Self { candidates: candidates(), every: PERIOD };
        let mut listed = text.trim();
        // A time stands before the algorithms or behind them.
        if let Some(rest) = listed.strip_prefix("every=") {
            let (time, rest) = rest.split_once(':').unwrap_or((rest, ""));
            bound.every = every::parse(time)?;
            listed = rest;
        } else if let Some((rest, time)) = listed.rsplit_once(":every=") {
            bound.every = every::parse(time)?;
            listed = rest;
        }
        if listed.is_empty() {
            return Ok(bound);
        }
        if let Some(learnt) = selection::candidates_of_shipped(listed) {
            return Ok(Self { candidates: learnt, ..bound });
        }
        // A comma stands between knobs as well.
        let sign = if listed.contains(';') { ';' } else { ',' };
        let named = listed.split(sign).map(str::trim).map(|text| {
            let wrong = |problem| BoundError::Candidate { text: text.to_owned(), problem };
            text.parse().map_err(wrong)
        });
        bound.candidates = named.collect::<Result<Vec<Spec>, _>>()?;
        let all = &bound.candidates;
        let again = |i: usize| all[..i].iter().any(|other| other.is_same(&all[i]));
        let number = (2..=CANDIDATES_MAX).contains(&all.len());
        if number && !(0..all.len()).any(again) { Ok(bound) } else { Err(BoundError::Number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bound: &SelectBound) -> Vec<(&'static str, usize)> {
        bound.candidates.iter().map(|s| (s.algorithm().name, s.settings().len())).collect()
    }

    #[test]
    fn candidates_and_a_time_in_any_order() {
        let floo = [("cubic", 0), ("bbr", 0), ("copa", 0), ("westwood", 0)];
        let plain = SelectBound::course("").unwrap();
        assert_eq!((names(&plain), plain.every), (floo.to_vec(), PERIOD));
        let plain = SelectBound::course("every=6s").unwrap();
        assert_eq!((names(&plain), plain.every), (floo.to_vec(), Duration::from_secs(6)));
        let mvfst = "copa:mvfst".parse::<Spec>().unwrap().settings().len();
        let listed = [("cubic", 0), ("bbr", 0), ("copa", mvfst)];
        for text in ["every=6s:cubic,bbr,copa:mvfst", "cubic, bbr,copa:mvfst:every=6s"] {
            let bound = SelectBound::course(text).unwrap();
            assert_eq!((names(&bound), bound.every), (listed.to_vec(), Duration::from_secs(6)));
        }
        let knobs = SelectBound::course("copa:delta=0.1,pacing_gain=2;copa;bbr").unwrap();
        assert_eq!(names(&knobs), [("copa", 2), ("copa", 0), ("bbr", 0)]);
        let learnt = SelectBound::course("every=6s:counterfactual").unwrap();
        assert_eq!((learnt.candidates.len(), names(&learnt)[0]), (4, ("cubic", 0)));
        let single = SelectBound::single("cubic,copa:mvfst").unwrap();
        assert_eq!(names(&single), [("cubic", 0), ("copa", mvfst)]);
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = |text: &str| SelectBound::course(text).unwrap_err().to_string();
        assert!(e("each=6s").contains("write e.g. cubic,bbr,copa:mvfst"));
        assert!(e("cubic,quick").contains("\"quick\" is no algorithm to choose"));
        assert!(e("cubic").contains("2 to 16 algorithms"));
        assert!(e("cubic,bbr,cubic").contains("each named once"));
        assert!(e("every=0s:cubic,bbr").contains("1ms at least"));
        assert!(e("every=soon").contains("it takes a time"));
        let e = SelectBound::single("every=6s").unwrap_err().to_string();
        assert!(e.contains("leave every out"), "{e}");
    }
}
