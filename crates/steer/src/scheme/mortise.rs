//! The settings of `mortise` and `mortise-disc`.

use trimtab_cc::{Knob, KnobError};
use trimtab_qoe::{Factors, Model};

use super::SchemeKind;
use crate::{Mortise, MortiseConfig, PaperConfig, Tuned, TunerConfig};

/// The settings of Mortise that experiments vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MortiseSettings {
    /// The weight σ of the preference against the present tradeoff in the feedback (Mortise eq. 5).
    pub sigma: f64,
    /// Whether changes of the bandwidth are detected (Mortise §4, Bayesian change-point detection).
    pub change_point_detection: bool,
    /// Whether δ takes five values only (Mortise §5.1, "Mortise Disc").
    pub discrete: bool,
}

impl Default for MortiseSettings {
    fn default() -> Self {
        Self { sigma: SIGMA.default, change_point_detection: true, discrete: false }
    }
}

static SIGMA: Knob = Knob {
    name: "sigma",
    unit: "1",
    min: 0.0,
    max: 1.0,
    default: 0.5,
    about: "weight of the application's preference in the feedback; the rest is the present tradeoff",
};
static CPD: Knob = Knob {
    name: "cpd",
    unit: "1",
    min: 0.0,
    max: 1.0,
    default: 1.0,
    about: "1 to detect changes of the bandwidth and explore after them, 0 not to",
};
/// The settings of `mortise` and `mortise-disc`.
pub static MORTISE_SETTINGS: [&Knob; 2] = [&SIGMA, &CPD];

/// Why a text is no setting of Mortise.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MortiseError(String);

impl MortiseSettings {
    /// What it steers with, for the users of a model.
    pub fn config(self, model: Model) -> MortiseConfig {
        let mut config = MortiseConfig::new(model);
        config.sigma = self.sigma;
        config.change_points = self.change_point_detection;
        config.discrete = self.discrete;
        config
    }

    /// Reads what follows `mortise:` or `mortise-disc:`.
    pub(super) fn parse(text: &str, discrete: bool) -> Result<Self, MortiseError> {
        let mut settings = Self { discrete, ..Self::default() };
        for (name, value) in read(text, &MORTISE_SETTINGS)? {
            if name == SIGMA.name {
                settings.sigma = value;
            } else {
                settings.change_point_detection = value != 0.0;
            }
        }
        Ok(settings)
    }
}

/// Reads `SETTING=VALUE,…` of these settings.
fn read(text: &str, known: &[&'static Knob]) -> Result<Vec<(&'static str, f64)>, MortiseError> {
    let names = || known.iter().map(|knob| knob.name).collect::<Vec<_>>().join(", ");
    let one = |setting: &str| {
        let wrong = || MortiseError(format!("a setting is NAME=VALUE, with {}", names()));
        let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let Some(knob) = known.iter().find(|knob| knob.name == name.trim()) else {
            return Err(MortiseError(format!("no setting {name:?}, only {}", names())));
        };
        knob.check(value).map_err(|e: KnobError| MortiseError(e.to_string()))?;
        Ok((knob.name, value))
    };
    text.split(',').filter(|setting| !setting.is_empty()).map(one).collect()
}

/// The settings of Mortise for another algorithm than Copa.
#[derive(Clone, Copy, Debug)]
pub struct TunerSettings {
    /// The algorithm.
    pub tuned: &'static Tuned,
    /// The weight σ of the preference, as [`MortiseSettings`] has it.
    pub sigma: f64,
}

impl TunerSettings {
    /// What it steers with, for the users of a model.
    pub fn config(self, model: Model) -> TunerConfig {
        TunerConfig { model, factors: Factors::new(), sigma: self.sigma }
    }
}

/// The settings of Mortise as it was published.
#[derive(Clone, Copy, Debug)]
pub struct PaperSettings {
    /// The weight σ of the preference, as [`MortiseSettings`] has it.
    pub sigma: f64,
    /// Whether changes of the bandwidth are detected.
    pub change_points: bool,
}

impl PaperSettings {
    /// What it steers with, for the users of a model.
    pub fn config(self, model: Model) -> PaperConfig {
        let Self { sigma, change_points } = self;
        PaperConfig { model, factors: Factors::new(), sigma, change_points }
    }
}

/// What follows `mortise:` for Mortise as it was published.
const PAPER: &str = "paper";

/// Reads what follows `mortise:`, which is `[CC,][SETTING,…]`.
pub(super) fn parse(text: &str) -> Result<SchemeKind, MortiseError> {
    let (name, rest) = text.split_once(',').unwrap_or((text, ""));
    if name.is_empty() || name.contains('=') {
        return MortiseSettings::parse(text, false).map(SchemeKind::Mortise);
    }
    let copa = Mortise::algorithm().algorithm().name;
    if name == copa {
        return MortiseSettings::parse(rest, false).map(SchemeKind::Mortise);
    }
    if name == PAPER {
        let MortiseSettings { sigma, change_point_detection: change_points, .. } =
            MortiseSettings::parse(rest, false)?;
        return Ok(SchemeKind::Paper(PaperSettings { sigma, change_points }));
    }
    let tuned = Tuned::find(name).ok_or_else(|| {
        let known: Vec<_> = Tuned::names().collect();
        let known = known.join(", ");
        MortiseError(format!(
            "it does not steer {name:?}, but {copa} (the default), {PAPER}, {known}"
        ))
    })?;
    let sigma = read(rest, &[&SIGMA])?.last().map_or(SIGMA.default, |(_, sigma)| *sigma);
    Ok(SchemeKind::Tuner(TunerSettings { tuned, sigma }))
}
