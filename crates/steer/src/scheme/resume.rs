//! Schemes whose connections resume: `resume:cubic`, `resume:cwnd=600KB,rtt=50ms:mortise`.

use trimtab_cc::resume::{Resumption, Saved, Settings};
use trimtab_cc::{Knob, KnobError};
use trimtab_units::{Bytes, Duration, Time};

use super::{Scheme, SchemeError, SchemeKind};

/// The word with which such a scheme begins.
pub(super) const RESUME: &str = "resume";

static LIMITS: &[Knob] = Settings::KNOBS;
/// The numeric settings.
pub(super) static RESUME_SETTINGS: [&Knob; 3] = [&LIMITS[0], &LIMITS[1], &LIMITS[2]];

/// A scheme whose connections start near the rate of an earlier one (RFC 9959).
#[derive(Clone, Debug)]
pub struct Resuming {
    /// How far a jump goes, and how long what was observed counts.
    pub settings: Settings,
    /// Capacity and round-trip time of the path, where they are given; else connections observe
    /// them.
    pub known: Option<(Bytes, Duration)>,
    /// What governs the connections.
    pub scheme: Box<Scheme>,
}

/// Why a text names no scheme whose connections resume.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResumeError {
    /// No scheme follows.
    #[error("it takes a scheme at the end, e.g. resume:cubic or resume:max_jump=100:bbr3")]
    NoScheme,
    /// What follows is no scheme.
    #[error("what is to resume is no scheme: {0}")]
    Scheme(Box<SchemeError>),
    /// What follows does not start as a connection does.
    #[error("{0} cannot resume: name an algorithm or a steering, e.g. resume:cubic")]
    Unfit(String),
    /// There is no such setting.
    #[error("no setting {0:?}; there are max_jump, beta, lifetime, cwnd=SIZE and rtt=TIME")]
    Setting(String),
    /// A setting has no such value.
    #[error("{0} is no value; it takes e.g. cwnd=600KB, rtt=50ms or a number")]
    Value(String),
    /// A number is out of its range.
    #[error("{0}")]
    Range(KnobError),
    /// One of the two is missing.
    #[error("cwnd and rtt describe a path together: give both or neither")]
    HalfKnown,
}

impl Resuming {
    /// Reads `[SETTING=VALUE,…:]SCHEME`.
    pub(super) fn parse(text: &str) -> Result<Self, ResumeError> {
        let (settings, scheme) = divide(text);
        let (mut limits, mut cwnd, mut rtt) = (Settings::default(), None, None);
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let wrong = || ResumeError::Value(setting.trim().to_owned());
            match name.trim() {
                "cwnd" => cwnd = Some(value.parse::<Bytes>().map_err(|_| wrong())?),
                "rtt" => rtt = Some(value.parse::<Duration>().map_err(|_| wrong())?),
                name => {
                    let place = LIMITS.iter().position(|knob| knob.name == name);
                    let place = place.ok_or_else(|| ResumeError::Setting(name.to_owned()))?;
                    let value = value.trim().parse().map_err(|_| wrong())?;
                    LIMITS[place].check(value).map_err(ResumeError::Range)?;
                    limits.set(place, value);
                }
            }
        }
        let known = match (cwnd, rtt) {
            (Some(cwnd), Some(rtt)) => Some((cwnd, rtt)),
            (None, None) => None,
            _ => return Err(ResumeError::HalfKnown),
        };
        if scheme.is_empty() {
            return Err(ResumeError::NoScheme);
        }
        let scheme: Scheme = scheme.parse().map_err(|e| ResumeError::Scheme(Box::new(e)))?;
        // A plug-in has no call that moves its window, and a stack's own no seam for one.
        let by_itself = matches!(scheme.kind(), SchemeKind::Plugin(_) | SchemeKind::Stack(_));
        if scheme.is_bound() || by_itself || scheme.label().starts_with(RESUME) {
            return Err(ResumeError::Unfit(scheme.label().to_owned()));
        }
        Ok(Self { settings: limits, known, scheme: Box::new(scheme) })
    }

    /// How a connection that begins now resumes, by what the scheme says of its path.
    pub fn resumption(&self, now: Time) -> Resumption {
        let lifetime = self.settings.get(Knob::place(LIMITS, "lifetime")).unwrap_or_default();
        let expires = now + Duration::from_secs_f64(lifetime);
        let saved = self.known.map(|(window, rtt)| Saved { window, rtt, expires });
        Resumption { settings: self.settings, saved }
    }
}

/// The settings and the scheme of what follows `resume:`. Settings come first and have a `=`.
fn divide(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(':').unwrap_or((text, ""));
    if first.contains('=') { (first, rest) } else { ("", text) }
}

/// What governs the connections of the scheme of this name; the name itself where none resumes.
pub(super) fn governing(label: &str) -> &str {
    let resumed = label.strip_prefix(RESUME).and_then(|rest| rest.strip_prefix(':'));
    resumed.map_or(label, |rest| divide(rest).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_before_the_scheme() {
        let plain = Resuming::parse("cubic:beta=0.5").unwrap();
        assert_eq!((plain.scheme.label(), plain.known), ("cubic:beta=0.5", None));
        assert_eq!(plain.resumption(Time::ZERO).saved, None);
        let full = Resuming::parse("cwnd=600KB,rtt=50ms,max_jump=64,lifetime=60:mortise").unwrap();
        let resumption = full.resumption(Time::from_secs(5));
        assert_eq!(resumption.settings.get(0), Some(64.0));
        let expected = Saved {
            window: Bytes::new(600_000),
            rtt: Duration::from_millis(50),
            expires: Time::from_secs(65),
        };
        assert_eq!((resumption.saved, full.scheme.label()), (Some(expected), "mortise"));
        assert_eq!(governing("resume:cwnd=1MB,rtt=1s:floo:part"), "floo:part");
        assert_eq!(governing("resume:copa:mit"), "copa:mit");
        assert_eq!(governing("copa:mit"), "copa:mit");
    }

    #[test]
    fn mistakes_say_what_to_do() {
        for (text, part) in [
            ("", "resume:cubic"),
            ("max_jump=100", "it takes a scheme at the end"),
            ("cubik", "did you mean cubic?"),
            ("omniscient", "omniscient cannot resume"),
            ("resume:cubic", "cannot resume"),
            ("noq:cubic", "noq:cubic cannot resume"),
            ("speed=1:cubic", "no setting \"speed\""),
            ("cwnd=1MB:cubic", "give both or neither"),
            ("cwnd=many,rtt=50ms:cubic", "cwnd=many is no value"),
            ("beta=0.2:cubic", "beta = 0.2 is outside its range 0.5 to 1"),
        ] {
            let problem = Resuming::parse(text).unwrap_err().to_string();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
