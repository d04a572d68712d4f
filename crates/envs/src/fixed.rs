//! Fixed settings: what a connection may be governed by from beginning to end, and policies are
//! compared with.

use std::fmt;
use std::str::FromStr;

use trimtab_qoe::{Factors, Model};
use trimtab_sim::Control;
use trimtab_steer::Unusable;
use trimtab_steer::scheme::{Goal, Scheme, SchemeError, SchemeKind};

use crate::episode::Traffic;

/// An algorithm with its knobs, or a steering of one that has learnt nothing.
#[derive(Clone, Debug)]
pub struct Fixed(Scheme);

/// Why a text names no fixed setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FixedError {
    /// It names no scheme at all.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// It names a policy or a bound.
    #[error("{0}: a policy or a bound is no fixed setting: write an algorithm, or mortise")]
    Learnt(String),
}

impl Fixed {
    /// What governs a flow of this application.
    pub(crate) fn control(&self, traffic: Traffic) -> Control {
        let model = match traffic {
            Traffic::Web | Traffic::WebBurst => Model::web(),
            Traffic::Download => Model::download(),
        };
        // None of them asks for what was learnt.
        let learnt = |_: &_| Err(Unusable::Missing);
        let goal =
            Goal { model: &model, factors: Factors::new(), learnt: &learnt, runs: &|_| true };
        let (spec, steerer) = self.0.kind().steering(&goal);
        Control::Algorithm { spec, steerer }
    }
}

impl FromStr for Fixed {
    type Err = FixedError;

    fn from_str(text: &str) -> Result<Self, FixedError> {
        let scheme: Scheme = text.parse()?;
        match scheme.kind() {
            SchemeKind::Rule(_)
            | SchemeKind::Mortise(_)
            | SchemeKind::Paper(_)
            | SchemeKind::Tuner(_) => Ok(Self(scheme)),
            _ => Err(FixedError::Learnt(text.to_owned())),
        }
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_bounds_are_no_fixed_settings() {
        for name in ["cubic", "copa:mvfst,delta=0.1", "mortise", "mortise:bbr3", "mortise:paper"] {
            assert_eq!(name.parse::<Fixed>().unwrap().to_string(), name);
        }
        for name in ["floo", "oracle:copa", "omniscient", "muses", "static-best"] {
            let refused = name.parse::<Fixed>().unwrap_err().to_string();
            assert!(refused.contains("no fixed setting"), "{refused}");
        }
        assert!("rocket".parse::<Fixed>().unwrap_err().to_string().contains("unknown"));
    }

    #[test]
    fn mortise_steers_for_the_application() {
        let fixed: Fixed = "mortise".parse().unwrap();
        for traffic in Traffic::ALL {
            let Control::Algorithm { spec, steerer } = fixed.control(traffic) else { panic!() };
            assert_eq!((spec.algorithm().name, steerer.is_some()), ("copa", true));
        }
    }
}
