//! One type for every QoE model.

use alloc::vec;
use alloc::vec::Vec;

use crate::{
    Conference, Download, Factor, Factors, Gradient, Hints, OperatingPoint, Samples, Streaming, Web,
};
#[cfg(feature = "formula")]
use crate::{Formula, FormulaError};

/// A QoE model: what an operating point is worth to an application, and how that changes around it.
///
/// Cheap to clone; give one to each flow.
///
/// ```
/// use trimtab_qoe::{Factors, Model, OperatingPoint};
/// use trimtab_units::{Bytes, Duration, Rate};
///
/// let model = Model::download();
/// let factors = Factors::new().with_request(Bytes::new(608_750));
/// let point = OperatingPoint {
///     throughput: Rate::from_mbps(10.0),
///     delay: Duration::from_millis(20),
///     loss: 0.0,
/// };
/// let hints = model.hints(&point, &factors).unwrap();
/// assert!((hints.lambda - 20.53).abs() < 0.01); // Mbit/s per second of delay
/// assert!((hints.beta - 0.2053).abs() < 0.0001); // Mbit/s per unit of loss
/// ```
#[derive(Clone, Debug)]
pub enum Model {
    /// File download.
    Download(Download),
    /// Video on demand.
    Streaming(Streaming),
    /// Video conferencing.
    Conference(Conference),
    /// Web responses.
    Web(Web),
    /// A user's formula.
    #[cfg(feature = "formula")]
    Formula(Formula),
}

/// A model that configurations name.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name there.
    pub name: &'static str,
    /// What it scores, and where it comes from.
    pub meaning: &'static str,
    /// Makes one.
    pub make: fn() -> Model,
}

impl Model {
    /// The models that have a name of their own in configurations.
    pub const BUILT_IN: [BuiltIn; 6] = [
        BuiltIn { name: "download", meaning: "file download, Mortise Eq. 6", make: Self::download },
        BuiltIn {
            name: "vod",
            meaning: "video on demand, Mortise Eq. 8, the threshold rounded off",
            make: Self::streaming,
        },
        BuiltIn { name: "web", meaning: "web responses, Mortise Eq. 22", make: Self::web },
        BuiltIn {
            name: "conference",
            meaning: "video conferencing, Mortise Eq. 17 with the clamps of Eq. 10 and 11",
            make: Self::conference,
        },
        BuiltIn {
            name: "vod-printed",
            meaning: "video on demand with the sharp threshold of Mortise Eq. 9",
            make: || Self::Streaming(Streaming::printed()),
        },
        BuiltIn {
            name: "conference-printed",
            meaning: "video conferencing, Mortise Eq. 17 without clamps",
            make: || Self::Conference(Conference::printed()),
        },
    ];

    /// The model that a configuration names: one of [`Model::BUILT_IN`], or else a [`Formula`]
    /// that may read the application's own `factors`.
    ///
    /// # Errors
    /// When the text is neither.
    #[cfg(feature = "formula")]
    pub fn parse(text: &str, factors: &[&str]) -> Result<Self, FormulaError> {
        match Self::BUILT_IN.iter().find(|built_in| built_in.name == text.trim()) {
            Some(built_in) => Ok((built_in.make)()),
            None => Formula::parse(text, factors).map(Self::Formula),
        }
    }

    /// The download model (Mortise Eq. 6).
    pub fn download() -> Self {
        Self::Download(Download)
    }
    /// The streaming model (Mortise Eq. 8), rounded off as [`Streaming`] says.
    pub fn streaming() -> Self {
        Self::Streaming(Streaming::default())
    }
    /// The conferencing model (Mortise Eq. 17), clamped.
    pub fn conference() -> Self {
        Self::Conference(Conference::default())
    }
    /// The web model (Mortise Eq. 22).
    pub fn web() -> Self {
        Self::Web(Web)
    }

    /// The QoE at `point`: more is better. Its unit is the model's own. NaN when a factor that the
    /// model reads is not set (or, for a size, not positive).
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        match self {
            Self::Download(m) => m.score(point, factors),
            Self::Streaming(m) => m.score(point, factors),
            Self::Conference(m) => m.score(point, factors),
            Self::Web(m) => m.score(point, factors),
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.score(point, factors),
        }
    }

    /// The QoE of these samples around `point`. Only a formula with statistics reads them.
    #[cfg_attr(
        not(feature = "formula"),
        expect(unused_variables, reason = "only formulas read samples")
    )]
    pub fn score_over(&self, point: &OperatingPoint, samples: &Samples, factors: &Factors) -> f64 {
        match self {
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.score_over(point, samples, factors),
            _ => self.score(point, factors),
        }
    }

    /// The true partial derivatives of the score at `point`; NaN where there is no score.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        match self {
            Self::Download(m) => m.gradient(point, factors),
            Self::Streaming(m) => m.gradient(point, factors),
            Self::Conference(m) => m.gradient(point, factors),
            Self::Web(m) => m.gradient(point, factors),
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.gradient(point, factors),
        }
    }

    /// The preference hints at `point` (Mortise Eq. 3), or `None` where there is no score: then a
    /// controller keeps the hints that it had.
    pub fn hints(&self, point: &OperatingPoint, factors: &Factors) -> Option<Hints> {
        self.gradient(point, factors).hints()
    }

    /// The preference hints for these samples around `point` (Mortise Eq. 4, as
    /// [`Formula::gradient_over`] has it). Without statistics these are [`Model::hints`].
    #[cfg_attr(
        not(feature = "formula"),
        expect(unused_variables, reason = "only formulas read samples")
    )]
    pub fn hints_over(
        &self,
        point: &OperatingPoint,
        samples: &Samples,
        factors: &Factors,
    ) -> Option<Hints> {
        match self {
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.gradient_over(point, samples, factors).hints(),
            _ => self.hints(point, factors),
        }
    }

    /// Whether it reads a statistic of samples, so that its caller collects them.
    pub fn reads_samples(&self) -> bool {
        match self {
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.reads_samples(),
            _ => false,
        }
    }

    /// The names of the factors that the model reads; until an application has set them all there
    /// are no hints.
    pub fn factors(&self) -> Vec<&str> {
        match self {
            Self::Download(_) => vec![Factor::Request.name()],
            Self::Streaming(_) => vec![Factor::Chunk.name(), Factor::Buffer.name()],
            Self::Conference(_) => vec![],
            Self::Web(_) => vec![Factor::MeanResponse.name()],
            #[cfg(feature = "formula")]
            Self::Formula(m) => m.factors().collect(),
        }
    }
}
