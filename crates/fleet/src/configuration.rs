//! A configuration as edges get it.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trimtab_cc::{KnobError, Spec};

use crate::control::{CONTROL, Control};
use crate::{Interval, Prefix};

/// An algorithm and the values of its knobs, with a number that grows whenever they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Grows with every change within an aggregate.
    pub version: u64,
    /// The algorithm's name, as in `trimtab cc list`.
    pub algorithm: String,
    /// Knobs and their values, in the order of the service's description; all others have their defaults.
    pub knobs: Vec<(String, f64)>,
    /// What some clusters of clients run instead, in the same intervals; none: all run this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
}

/// What somebody says is to be in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Chosen {
    /// The service's algorithm with these values of the knobs under `[knobs]`, in their order; each
    /// is kept inside its permitted range.
    Knobs(Vec<f64>),
    /// Another algorithm, as the service's description writes it.
    Other {
        /// Its text, e.g. `bbr` or `copa:mvfst`.
        algorithm: String,
    },
}

/// Why a configuration cannot be carried out here.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigurationError {
    /// There is no such algorithm.
    #[error(
        "there is no algorithm {0:?} here: edge and engine must be of versions that go together"
    )]
    Algorithm(String),
    /// A knob cannot be set so.
    #[error("{0}")]
    Knob(KnobError),
}

impl Configuration {
    /// The control, where this client of the aggregate's prefix is of its arm in an interval.
    pub fn control_for(
        &self,
        prefix: &Prefix,
        client: IpAddr,
        interval: Interval,
    ) -> Option<&Control> {
        let control = self.control.as_ref()?;
        (control.arm(prefix, client, interval) == CONTROL).then_some(control)
    }

    /// The algorithm with these knobs, every value checked against the algorithm's own ranges.
    ///
    /// # Errors
    /// This build has no such algorithm or knob, or the value is out of its range.
    pub fn spec(&self) -> Result<Spec, ConfigurationError> {
        let mut spec = Spec::new(&self.algorithm)
            .ok_or_else(|| ConfigurationError::Algorithm(self.algorithm.clone()))?;
        for (knob, value) in &self.knobs {
            spec.set(knob, *value).map_err(ConfigurationError::Knob)?;
        }
        Ok(spec)
    }
}

/// The scheme's text, e.g. `vivace:gamma=100,omega=0.5`.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.algorithm)?;
        for (i, (knob, value)) in self.knobs.iter().enumerate() {
            write!(f, "{}{knob}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(algorithm: &str, knobs: &[(&str, f64)]) -> Result<Spec, String> {
        let knobs = knobs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let algorithm = algorithm.to_owned();
        let configuration = Configuration { version: 1, algorithm, knobs, control: None };
        configuration.spec().map_err(|error| error.to_string())
    }

    #[test]
    fn an_edge_runs_the_values_that_the_engine_chose() {
        let spec = of("vivace", &[("gamma", 100.0), ("omega", 0.5)]).unwrap();
        assert_eq!(spec.algorithm().name, "vivace");
        assert_eq!(spec.settings(), [("gamma", 100.0), ("omega", 0.5)]);
        assert_eq!(of("cubic", &[]).unwrap().settings(), []);
    }

    #[test]
    fn its_text_names_the_same_scheme() {
        for knobs in [&[][..], &[("gamma", 2.0)], &[("gamma", 1000.0 / 3.0), ("omega", 0.5)]] {
            let knobs: Vec<_> = knobs.iter().map(|(name, v)| ((*name).to_owned(), *v)).collect();
            let algorithm = "vivace".to_owned();
            let configuration = Configuration { version: 1, algorithm, knobs, control: None };
            let text = configuration.to_string();
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert!(spec.is_same(&configuration.spec().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_this_edge_cannot_run_is_refused() {
        let newer = of("newer", &[]).unwrap_err();
        assert!(newer.contains("\"newer\"") && newer.contains("versions that go together"));
        let unknown = of("vivace", &[("gamma", 100.0), ("newer", 1.0)]).unwrap_err();
        assert!(unknown.contains("no such knob"), "{unknown}");
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            let error = of("vivace", &[("gamma", value)]).unwrap_err();
            assert!(!error.is_empty(), "{value}");
        }
    }
}
