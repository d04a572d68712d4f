//! One type for every QoE model.

use crate::{Conference, Download, Factors, Gradient, Hints, OperatingPoint, Streaming, Web};

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
}

impl Model {
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
        }
    }

    /// The true partial derivatives of the score at `point`; NaN where there is no score.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        match self {
            Self::Download(m) => m.gradient(point, factors),
            Self::Streaming(m) => m.gradient(point, factors),
            Self::Conference(m) => m.gradient(point, factors),
            Self::Web(m) => m.gradient(point, factors),
        }
    }

    /// The preference hints at `point` (Mortise Eq. 3), or `None` where there is no score: then a
    /// controller keeps the hints that it had.
    pub fn hints(&self, point: &OperatingPoint, factors: &Factors) -> Option<Hints> {
        self.gradient(point, factors).hints()
    }
}
