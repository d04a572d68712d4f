//! The settings of a model: `mine.toml` next to `mine.onnx`.

use std::path::Path;

use serde::Deserialize;

use crate::decided::Answer;
use crate::error::Problem;
use crate::monitor::{Every, OBSERVATIONS, Observation};

/// What a model sees, and what its output means.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Places in [`OBSERVATIONS`].
    observations: Vec<usize>,
    /// What is subtracted from each, and what the rest is divided by.
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// How many intervals.
    pub(super) history: usize,
    pub(super) every: Every,
    pub(super) output: Output,
}

/// The file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    observations: Vec<String>,
    mean: Option<Vec<f64>>,
    deviation: Option<Vec<f64>>,
    #[serde(default = "one")]
    history: usize,
    #[serde(default = "round_trip")]
    interval: String,
    output: Meaning,
    scale: Option<f64>,
    clip: Option<f64>,
}

fn one() -> usize {
    1
}

fn round_trip() -> String {
    "1rtt".to_owned()
}

/// What a model's output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Meaning {
    /// The rate changes by it: Aurora (Jay et al., ICML 2019, §4.1).
    RateChange,
    /// The window is multiplied by 2 to it: Orca (Abbasloo et al., SIGCOMM 2020, §4.2).
    WindowPower,
    /// The rate in Mbit/s.
    Rate,
    /// The window in packets.
    Window,
}

/// What is done with a model's output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    meaning: Meaning,
    scale: f64,
    clip: f64,
}

impl Meaning {
    /// The factor of an output where none is given.
    fn scale(self) -> f64 {
        match self {
            // Aurora's α (§4.1).
            Self::RateChange => 0.025,
            // Orca's window is multiplied by 2^(2a) (eq. 2).
            Self::WindowPower => 2.0,
            Self::Rate | Self::Window => 1.0,
        }
    }
}

impl Output {
    /// What is to be done with an output, after an interval.
    pub(super) fn answer(&self, output: f32, seen: &Observation) -> Answer {
        let value = f64::from(output).clamp(-self.clip, self.clip) * self.scale;
        // A clamp keeps a NaN, which the answer's check reports.
        let rate = |mbps| Answer { rate_mbps: Some(mbps), ..Answer::default() };
        let window = |packets: f64| Answer {
            window_bytes: Some(packets * seen.mss_bytes),
            ..Answer::default()
        };
        match self.meaning {
            Meaning::RateChange if value < 0.0 => rate(seen.rate_mbps / (1.0 - value)),
            Meaning::RateChange => rate(seen.rate_mbps * (1.0 + value)),
            Meaning::WindowPower => window(seen.window_packets * libm::exp2(value)),
            Meaning::Rate => rate(value),
            Meaning::Window => window(value),
        }
    }
}

impl Settings {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let wrong = |problem| Problem::Settings { path: path.to_owned(), problem };
        let text = std::fs::read_to_string(path).map_err(|cause| {
            wrong(format!(
                "cannot be read: {cause}; give the model a file of that name with observations \
                 and output"
            ))
        })?;
        // The whole of such an error has the line with a mark below it.
        let raw: Raw = toml::from_str(&text).map_err(|cause| wrong(cause.to_string()))?;
        Self::of(raw).map_err(wrong)
    }

    fn of(raw: Raw) -> Result<Self, String> {
        let count = raw.observations.len();
        let place = |name: &String| {
            let found = OBSERVATIONS.iter().position(|(known, _)| known == name);
            let there = || OBSERVATIONS.map(|(name, _)| name).join(", ");
            found.ok_or_else(|| format!("no observation {name:?}; there are {}", there()))
        };
        let each =
            |given: Option<Vec<f64>>, default: f64| given.unwrap_or_else(|| vec![default; count]);
        let (mean, deviation) = (each(raw.mean, 0.0), each(raw.deviation, 1.0));
        let is_scale = |value: &f64| value.is_finite() && *value != 0.0;
        if count == 0 || !(1..=1000).contains(&raw.history) {
            return Err("give at least one observation, and a history of 1 to 1000".to_owned());
        }
        if [mean.len(), deviation.len()] != [count; 2] || !deviation.iter().all(is_scale) {
            let what = "mean and deviation need a number for each observation, and no 0";
            return Err(what.to_owned());
        }
        let scale = raw.scale.unwrap_or_else(|| raw.output.scale());
        let clip = raw.clip.unwrap_or(f64::INFINITY);
        if !is_scale(&scale) || clip.is_nan() || clip <= 0.0 {
            return Err("scale is a finite number other than 0, and clip is above 0".to_owned());
        }
        let every = Every::parse(&raw.interval);
        Ok(Self {
            observations: raw.observations.iter().map(place).collect::<Result<_, _>>()?,
            mean,
            deviation,
            history: raw.history,
            every: every.ok_or_else(|| Problem::Interval(raw.interval).to_string())?,
            output: Output { meaning: raw.output, scale, clip },
        })
    }

    /// How many numbers the model takes.
    pub(super) fn inputs(&self) -> usize {
        self.observations.len() * self.history
    }

    /// What the model sees of an interval.
    pub(super) fn scaled(&self, seen: &Observation) -> Vec<f32> {
        let values = seen.values();
        let scales = self.mean.iter().zip(&self.deviation);
        let scaled = self.observations.iter().zip(scales);
        scaled
            .map(|(&place, (mean, deviation))| ((values[place] - mean) / deviation) as f32)
            .collect()
    }
}
