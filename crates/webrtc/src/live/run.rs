//! A run of a comparison: a call to a browser, bin by bin.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trimtab_apps::Outcome;
use trimtab_lab::run::datapath::{Run, Sample, Totals};
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_lab::run::record::Delays;
use trimtab_rtc::units::{Bytes, Rate, Time};
use trimtab_sim::Histogram;

use super::studio::Studio;
use super::watch::Watch;
use super::{Called, Live};
use crate::error::WebrtcError;
use crate::virtual_time::sample;

/// A call, and what is measured of it.
pub(crate) struct CallRun<'a> {
    /// `None` once it has ended.
    live: Option<Live<'a>>,
    studio: &'a Studio,
    watch: Arc<Mutex<Watch>>,
    end: Time,
    rtt: Histogram,
    called: Option<Called>,
}

impl<'a> CallRun<'a> {
    pub(crate) fn new(
        live: Live<'a>,
        studio: &'a Studio,
        watch: Arc<Mutex<Watch>>,
        end: Time,
    ) -> Self {
        Self { live: Some(live), studio, watch, end, rtt: Histogram::default(), called: None }
    }

    fn metrics(&self) -> Option<trimtab_rtc::Metrics> {
        match (&self.live, &self.called) {
            (Some(live), _) => live.handle().metrics(),
            (None, called) => called.as_ref()?.metrics.clone(),
        }
    }
}

pub(crate) fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run for CallRun<'_> {
    type Error = WebrtcError;

    fn now(&self) -> Time {
        self.live.as_ref().map_or(self.end, Live::now)
    }

    fn advance(&mut self, until: Time) -> Result<(), WebrtcError> {
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(WebrtcError::Interrupted);
        }
        if let Some(live) = &mut self.live {
            live.run_until(until.min(self.end))?;
        }
        if until >= self.end
            && let Some(live) = self.live.take()
        {
            self.called = Some(live.end(self.studio)?);
        }
        Ok(())
    }

    /// What the receiver has reported as arrived.
    fn goodput(&self, _: usize) -> Bytes {
        self.metrics().map_or(Bytes::ZERO, |metrics| metrics.delivered)
    }

    fn carried(&self) -> Bytes {
        lock(&self.watch).carried
    }

    fn outcome(&self, _: usize, _: Time) -> Outcome {
        let record = match (&self.live, &self.called) {
            (Some(live), _) => live.record(),
            (None, Some(called)) => called.record.clone(),
            (None, None) => unreachable!("a call is under way or has ended"),
        };
        Outcome::Call(record)
    }

    fn sample(&mut self) -> Sample {
        let queue_delay_ms = lock(&self.watch).take_queue_delay_ms();
        sample(self.metrics(), queue_delay_ms, &mut self.rtt)
    }

    fn target(&self) -> Option<Rate> {
        self.metrics()?.target
    }

    fn totals(&self) -> Vec<Totals> {
        let watch = lock(&self.watch);
        vec![Totals {
            packets: watch.packets,
            retransmits: self.called.as_ref().map_or(0, |called| called.retransmits),
            dropped: watch.dropped,
            rtt: Delays::from(&self.rtt),
            rtts: self.rtt.micros().clone(),
            queue: Delays::from(&watch.queue),
        }]
    }
}
