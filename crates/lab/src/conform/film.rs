//! What was seen of a trial, look by look.

use trimtab_units::{Bytes, Duration, Time};

use super::subject::{Look, Scene, Subject};
use crate::run::datapath::RunError;

/// A reduction of the window is a fall by more than this share from one look to the next.
const FALL: f64 = 0.1;

/// A trial as a series of looks.
pub(super) struct Film {
    pub(super) looks: Vec<Look>,
    /// What a full packet counts against the window.
    packet: Bytes,
}

/// A fall of the window from one look to the next, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    pub(super) at: Time,
    pub(super) before: f64,
    pub(super) after: f64,
}

/// Looks at a subject in a scene at every step until the end, in seconds.
pub(super) fn film(
    subject: &dyn Subject,
    scene: &Scene,
    seconds: f64,
    step: Duration,
) -> Result<Film, RunError> {
    let mut trial = subject.begin(scene)?;
    let end = Time::from_secs_f64(seconds);
    let mut looks = Vec::new();
    let mut at = Time::ZERO;
    while at < end {
        at += step;
        trial.run_until(at)?;
        looks.push(trial.look());
    }
    Ok(Film { looks, packet: subject.packet() })
}

impl Film {
    /// A size in packets.
    pub(super) fn packets(&self, bytes: Bytes) -> f64 {
        bytes.ratio(self.packet)
    }

    /// The last look at or before a time, in seconds.
    pub(super) fn at(&self, seconds: f64) -> &Look {
        let end = Time::from_secs_f64(seconds);
        let after = self.looks.partition_point(|look| look.at <= end);
        &self.looks[after.saturating_sub(1)]
    }

    /// The window at a time, in packets.
    pub(super) fn window(&self, seconds: f64) -> f64 {
        self.packets(self.at(seconds).window)
    }

    /// The looks from one time to another, in seconds.
    pub(super) fn between(&self, from: f64, to: f64) -> &[Look] {
        let [from, to] = [from, to].map(Time::from_secs_f64);
        let first = self.looks.partition_point(|look| look.at < from);
        let end = self.looks.partition_point(|look| look.at <= to);
        &self.looks[first..end.max(first)]
    }

    /// Payload that arrived from one time to another, in Mbit/s.
    pub(super) fn goodput(&self, from: f64, to: f64) -> f64 {
        let bytes = self.at(to).goodput - self.at(from).goodput;
        bytes.bits() / 1e6 / (to - from)
    }

    /// The median of the controller's pacing rate from one time to another, in Mbit/s; NaN where it
    /// gives none.
    pub(super) fn median_pacing(&self, from: f64, to: f64) -> f64 {
        let rates = self.between(from, to).iter().filter_map(|look| Some(look.pacing?.mbps()));
        median(rates.collect())
    }

    /// The falls of the window.
    pub(super) fn falls(&self) -> Vec<Fall> {
        let pairs = self.looks.windows(2);
        let falls = pairs.map(|pair| Fall {
            at: pair[1].at,
            before: self.packets(pair[0].window),
            after: self.packets(pair[1].window),
        });
        falls.filter(|fall| fall.after < fall.before * (1.0 - FALL)).collect()
    }
}

/// The middle value; NaN where there is none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
