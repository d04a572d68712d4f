//! A network for unit tests of the rivals that have one.

use std::sync::Mutex;
use std::vec::Vec;

use super::link::MSS;
use crate::RateSample;
use crate::actor::Actor;
use trimtab_units::{Bytes, Duration};

/// Gives the same action each time, and keeps what it saw.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) action: f64,
    pub(crate) seen: Mutex<Vec<Vec<f64>>>,
}

impl Actor for Told {
    fn act(&self, history: &[f64]) -> f64 {
        self.seen.lock().unwrap().push(history.to_vec());
        self.action
    }
}

impl Told {
    /// How often it was asked.
    pub(crate) fn times(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// One packet delivered at 12 Mbit/s.
pub(crate) fn delivered() -> RateSample {
    RateSample {
        delivered: MSS,
        interval: Duration::from_millis(1),
        prior_delivered: Bytes::ZERO,
        app_limited: false,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
    }
}
