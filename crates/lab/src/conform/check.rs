//! What a check is, and what it finds.

use super::subject::{Family, Subject};
use crate::run::datapath::RunError;

/// A behaviour that can be checked from outside.
#[derive(Debug)]
pub struct Check {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where the behaviour is described.
    pub clause: &'static str,
    /// The behaviour, in a sentence.
    pub about: &'static str,
    /// The path and the application, and what is measured there.
    pub scene: &'static str,
    /// What brings the behaviour about.
    pub by: By,
    /// Whether it applies, else why it does not.
    pub(super) applies: fn(&dyn Subject) -> Result<(), &'static str>,
    /// Measures it.
    pub(super) measure: fn(&dyn Subject) -> Result<Finding, RunError>,
}

/// What brings a behaviour about, and so has the defect where it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The congestion control algorithm.
    Algorithm,
    /// The transport that it runs on.
    Transport,
}

/// What was measured, and within which bounds it conforms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// What was measured; NaN where the scene did not come about, which does not conform.
    pub value: f64,
    /// The least that conforms.
    pub least: f64,
    /// The most that conforms.
    pub most: f64,
    /// The unit of all three.
    pub unit: &'static str,
}

impl Finding {
    pub(super) fn new(value: f64, least: f64, most: f64, unit: &'static str) -> Self {
        Self { value, least, most, unit }
    }

    /// Whether it conforms.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.value)
    }
}

/// All senders.
pub(super) fn all(_: &dyn Subject) -> Result<(), &'static str> {
    Ok(())
}

/// Senders with the states of RFC 9002 §7.3.
pub(super) fn slow_starters(subject: &dyn Subject) -> Result<(), &'static str> {
    subject
        .family()
        .has_slow_start()
        .then_some(())
        .ok_or("it has other states than those of RFC 9002 §7.3")
}

/// Reno.
pub(super) fn reno(subject: &dyn Subject) -> Result<(), &'static str> {
    (subject.family() == Family::Reno).then_some(()).ok_or("it is not Reno")
}

/// CUBIC.
pub(super) fn cubic(subject: &dyn Subject) -> Result<(), &'static str> {
    (subject.family() == Family::Cubic).then_some(()).ok_or("it is not CUBIC")
}

/// All versions of BBR.
pub(super) fn bbr(subject: &dyn Subject) -> Result<(), &'static str> {
    subject.family().is_bbr().then_some(()).ok_or("it is not BBR")
}

/// All versions of BBR, where their pacing rate is obeyed.
pub(super) fn paced_bbr(subject: &dyn Subject) -> Result<(), &'static str> {
    bbr(subject)?;
    subject.obeys_rate().then_some(()).ok_or("its transport does not obey its pacing rate")
}

/// BBR from version 3 on.
pub(super) fn bbr3(subject: &dyn Subject) -> Result<(), &'static str> {
    (subject.family() == Family::Bbr3).then_some(()).ok_or("it is not BBR version 3")
}
