//! Python classes: a class is asked once per monitor interval, and for every acknowledgement, loss
//! and timeout that it has a method for.
//!
//! Each thread of a comparison has a Python process, which holds the controllers of its connections
//! by number (`worker.rs`, `worker.py`). Copies are made by `copy.deepcopy`.

mod worker;

use std::sync::atomic::{AtomicU64, Ordering};

use trimtab_cc::{Ack, Config, Knob, Loss, Plugin, Timeout};
use trimtab_steer::scheme::PluginSettings;
use trimtab_units::{Bytes, Duration, Time};

use crate::decided::{Answer, Decided, Policy, Terms};
use crate::error::Problem;
use crate::fault::Fault;
use crate::monitor::{Every, Observation};
use crate::{Loaded, leak};
use worker::{Description, Request, Shared, Source, Worker, lock};

/// A class that is loaded.
#[derive(Debug)]
struct Class {
    /// Its number among those that this process has loaded.
    plugin: u64,
    source: Source,
    description: Description,
    terms: Terms,
}

/// Loads a class, by a worker that ends once it has described it.
pub(crate) fn load(settings: &PluginSettings, fault: &'static Fault) -> Result<Loaded, Problem> {
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let path = settings.path.canonicalize();
    let path = path.map_err(|cause| Problem::File { path: settings.path.clone(), cause })?;
    let source = Source { path, class: settings.class.clone().unwrap_or_default() };
    let (worker, description) = Worker::start(&source)?;
    let every = Every::parse(&description.interval)
        .ok_or_else(|| Problem::Interval(description.interval.clone()))?;
    let knobs: &'static [Knob] = knobs(&description)?.leak();
    let manages_recovery = description.manages_recovery;
    let plugin = LOADED.fetch_add(1, Ordering::Relaxed);
    drop(worker);
    let (name, about) = (description.name.clone(), description.about.clone());
    let terms = Terms { every, knobs, manages_recovery, fault };
    let class: &'static Class = Box::leak(Box::new(Class { plugin, source, description, terms }));
    let build = move |config: &Config| -> Box<dyn Plugin> {
        Box::new(Decided::new(Controller::create(class, config), &class.terms, config))
    };
    Ok(Loaded { name, about, knobs: knobs.to_vec(), forks: true, build: Box::new(build) })
}

fn knobs(description: &Description) -> Result<Vec<Knob>, Problem> {
    let read = |(number, knob): (usize, &(String, f64, f64, f64, String, String))| {
        let (name, default, min, max, unit, about) = knob.clone();
        if !(min.is_finite() && max.is_finite() && min <= default && default <= max) {
            return Err(Problem::BadKnob { number });
        }
        Ok(Knob { name: leak(name), unit: leak(unit), min, max, default, about: leak(about) })
    };
    description.knobs.iter().enumerate().map(read).collect()
}

/// An instance of a class, in a worker.
#[derive(Debug)]
struct Controller {
    class: &'static Class,
    worker: Shared,
    number: u32,
}

impl Controller {
    fn create(class: &'static Class, config: &Config) -> Result<Self, String> {
        let worker = worker::of_this_thread(class.plugin, &class.source)?;
        let number = lock(&worker).number();
        let sizes = [config.mss, config.initial_window, config.min_window];
        let [mss, initial_window, min_window] = sizes.map(Bytes::as_f64);
        // A float has no room for 64 bits.
        let [high, low] = [config.seed >> 32, config.seed & 0xffff_ffff].map(|half| half as f64);
        let values = [mss, initial_window, min_window, high, low];
        lock(&worker).ask(Request::New, number, &values)?;
        Ok(Self { class, worker, number })
    }

    /// Asks the class, where it has a method for that.
    fn ask(&self, event: Request, values: &[f64]) -> Result<Option<Answer>, String> {
        if !self.class.description.takes(event) {
            return Ok(None);
        }
        lock(&self.worker).ask(event, self.number, values).map(Some)
    }
}

/// As the class's deep copy. Where that fails, the fault is noted, and the copy fails when it is
/// asked.
impl Clone for Controller {
    fn clone(&self) -> Self {
        let mut worker = lock(&self.worker);
        let number = worker.number();
        if let Err(what) = worker.ask(Request::Copy, self.number, &[f64::from(number)]) {
            self.class.terms.fault.note(format!("it cannot be copied: {what}"));
        }
        drop(worker);
        Self { class: self.class, worker: self.worker.clone(), number }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // A worker that has gone holds none.
        let _ = lock(&self.worker).tell(Request::Drop, self.number, &[]);
    }
}

fn ms(time: Time) -> f64 {
    time.since(Time::ZERO).as_millis_f64()
}

impl Policy for Controller {
    fn on_interval(&mut self, seen: &Observation) -> Result<Answer, String> {
        Ok(self.ask(Request::Interval, &seen.values())?.unwrap_or_default())
    }

    fn on_ack(&mut self, ack: &Ack) -> Result<Answer, String> {
        let values: [f64; worker::ACK.len()] = [
            ms(ack.now),
            ack.acked.as_f64(),
            ack.rtt.map_or(f64::NAN, Duration::as_millis_f64),
            ack.srtt.as_millis_f64(),
            ack.min_rtt.as_millis_f64(),
            ack.inflight.as_f64(),
            ack.delivered.as_f64(),
            ms(ack.newest_sent_at),
            ack.rate.map_or(f64::NAN, |sample| sample.rate().mbps()),
            f64::from(u8::from(ack.cwnd_limited)),
            f64::from(u8::from(ack.in_recovery)),
        ];
        Ok(self.ask(Request::Ack, &values)?.unwrap_or_default())
    }

    fn on_loss(&mut self, loss: &Loss) -> Result<Answer, String> {
        let values: [f64; worker::LOSS.len()] =
            [ms(loss.now), loss.lost.as_f64(), ms(loss.newest_sent_at), loss.inflight.as_f64()];
        Ok(self.ask(Request::Loss, &values)?.unwrap_or_default())
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Result<Option<Answer>, String> {
        let values: [f64; worker::TIMEOUT.len()] =
            [ms(timeout.now), timeout.prior_inflight.as_f64()];
        self.ask(Request::Timeout, &values)
    }

    fn on_knob(&mut self, index: usize, value: f64) -> Result<(), String> {
        let mut worker = lock(&self.worker);
        worker.ask(Request::Knob, self.number, &[index as f64, value]).map(|_| ())
    }
}
