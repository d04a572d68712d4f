//! The seam between a comparison and what carries its packets.
//!
//! A new datapath is a crate that implements [`Datapath`] and [`Run`], and one line in the command's
//! table. [`Course`](crate::run::course::Course) is the loop around every [`Run`].

use std::error::Error;

use trimtab_apps::Outcome;
use trimtab_qoe::Sketch;
use trimtab_steer::Insight;
use trimtab_units::{Bytes, Rate, Time};

use crate::result::{SelectionsRecord, Series, SwitchRecord};
use crate::run::prepare::Prepared;
use crate::run::record::{Delays, Measurement};
use crate::scenario::Job;

/// Why a run could not be carried out. The message says what to do.
pub type RunError = Box<dyn Error + Send + Sync>;

/// What carries out the runs of a comparison.
pub trait Datapath: Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// Whether it has a transport of media, for applications that make no requests.
    fn carries_media(&self) -> bool {
        false
    }

    /// The system that carries the packets, for the record; `None` for the simulator.
    fn system(&self) -> Option<String> {
        None
    }

    /// How many runs at once without disturbing each other; `None` for one per core.
    fn jobs(&self) -> Option<usize> {
        None
    }

    /// What it makes of the scenario that is not as the scenario names it: told before the first run.
    fn remarks(&self, prepared: &Prepared) -> Vec<String> {
        let _ = prepared;
        Vec::new()
    }

    /// Carries out a run. Several threads may call it at once.
    ///
    /// # Errors
    /// The run cannot be set up, or the user asked to stop.
    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError>;

    /// What readers of the results must know of all runs so far, such as a machine that was too busy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Carries out a run on a thread of its own, which it may put before others. `panicked` is the error
/// where that thread panics.
///
/// # Errors
/// That of the run, or `panicked`.
pub fn on_own_thread<E: Into<RunError> + Send>(
    run: impl FnOnce() -> Result<Measurement, E> + Send,
    panicked: E,
) -> Result<Measurement, RunError> {
    let done = std::thread::scope(|scope| scope.spawn(run).join());
    done.unwrap_or(Err(panicked)).map_err(Into::into)
}

/// A run in progress, its flows numbered from 0: those of the scheme first, then its competitors'.
pub trait Run {
    /// Why it may fail.
    type Error;

    /// The time of the run; it begins at [`Time::ZERO`].
    fn now(&self) -> Time;

    /// Goes on until this time, or waits for it.
    ///
    /// # Errors
    /// The run failed, or the user asked to stop.
    fn advance(&mut self, until: Time) -> Result<(), Self::Error>;

    /// Payload that the application of a flow has got.
    fn goodput(&self, flow: usize) -> Bytes;

    /// Bytes that have left the bottleneck, those of all flows.
    fn carried(&self) -> Bytes;

    /// What the application of a flow has gone through by `now`.
    fn outcome(&self, flow: usize, now: Time) -> Outcome;

    /// The state of the first flow and of the bottleneck, at the end of a bin.
    fn sample(&mut self) -> Sample;

    /// The rate that the scheme gives the encoder of the first flow, headers included, at the end of a
    /// bin; `None` where there is none.
    fn target(&self) -> Option<Rate> {
        None
    }

    /// What each flow has sent, and what became of it.
    fn totals(&self) -> Vec<Totals>;

    /// What the changes of algorithm of the first flow cost. `endless`: its data has no end.
    fn switches(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        let _ = (series, endless);
        Vec::new()
    }

    /// What the steerings of the first `own` flows chose, where they choose among algorithms.
    fn selections(&self, own: usize) -> Option<SelectionsRecord> {
        let _ = own;
        None
    }
}

/// A point of a run's series: the first flow, and the bottleneck's queue.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Wait in the queue, in milliseconds; NaN where it is not known.
    pub queue_delay_ms: f64,
    /// Round-trip time, in milliseconds; NaN where it is not known.
    pub rtt_ms: f64,
    /// Congestion window, in bytes; NaN where it is not known.
    pub cwnd_bytes: f64,
    /// Copa's δ; NaN of other algorithms.
    pub delta: f64,
    /// What the steering knows.
    pub insight: Insight,
}

/// What a flow has sent, and what became of it.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// How many of them were retransmissions.
    pub retransmits: u64,
    /// How many of them were lost on the path.
    pub dropped: u64,
    /// Round-trip times.
    pub rtt: Delays,
    /// Each of these, in µs.
    pub rtts: Sketch,
    /// Waits in the bottleneck's queue.
    pub queue: Delays,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_of_a_run_is_an_error() {
        let panics = || -> Result<Measurement, &str> { std::panic::resume_unwind(Box::new(1)) };
        assert_eq!(on_own_thread(panics, "it panicked").unwrap_err().to_string(), "it panicked");
        let fails = || -> Result<Measurement, &str> { Err("it failed") };
        assert_eq!(on_own_thread(fails, "it panicked").unwrap_err().to_string(), "it failed");
    }
}
