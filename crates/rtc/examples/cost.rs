//! Processor time of the estimator, and of the steering inside it, per stream of 2 Mbit/s.
//!
//! ```text
//! cargo run --release -p trimtab-rtc --example cost
//! ```
//!
//! The stream, its receiver and the link run in virtual time. Each call of the estimator is timed. The
//! last column is the processor time of the whole process: both ends, and the link.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rtc_interceptor::{BandwidthEstimator, EstimatorStats, PacketReport};
use rustix::time::{ClockId, clock_gettime};
use support::{Setting, World};
use trimtab_rtc::Config;
use trimtab_rtc::units::{Rate, Time};

const SCHEMES: [&str; 5] = ["gcc", "mortise:gcc", "nada", "copa", "mortise"];
/// Of each scheme the run counts that took the least: other processes only ever add to it.
const ROUNDS: usize = 5;
const SECONDS: u64 = 120;

/// An estimator, and how long its calls took in all, in nanoseconds.
struct Timed<E> {
    inner: E,
    took: Arc<AtomicU64>,
}

impl<E> Timed<E> {
    fn add(&self, began: Instant) {
        let took = began.elapsed().as_nanos() as u64;
        self.took.fetch_add(took, Ordering::Relaxed);
    }
}

impl<E: BandwidthEstimator> BandwidthEstimator for Timed<E> {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        let began = Instant::now();
        self.inner.on_reports(now, reports);
        self.add(began);
    }

    fn target_bitrate(&self) -> f64 {
        let began = Instant::now();
        let target = self.inner.target_bitrate();
        self.add(began);
        target
    }

    fn handle_timeout(&mut self, now: Instant) {
        let began = Instant::now();
        self.inner.handle_timeout(now);
        self.add(began);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let began = Instant::now();
        let timeout = self.inner.poll_timeout();
        self.add(began);
        timeout
    }

    fn stats(&self) -> EstimatorStats {
        self.inner.stats()
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Shares of a core that the estimator and the whole process took, and the rate in Mbit/s.
fn run(scheme: &str) -> Result<(f64, f64, f64), trimtab_rtc::ConfigError> {
    let setting = Setting { content: Rate::from_mbps(2.0), ..Setting::of_mbps(3.0) };
    let config = Config::new(scheme)?.with_model("conference")?;
    let took = Arc::new(AtomicU64::new(0));
    let timed = Arc::clone(&took);
    let mut world = World::with(config, &setting, |inner| Timed { inner, took: timed });
    let before = processor_time();
    let seconds = world.run_until(Time::from_secs(SECONDS));
    let rate = support::mean(seconds, |second| second.arrived);
    let whole = (processor_time() - before).as_secs_f64();
    let own = took.load(Ordering::Relaxed) as f64 * 1e-9;
    Ok((own / SECONDS as f64, whole / SECONDS as f64, rate))
}

fn main() -> Result<(), trimtab_rtc::ConfigError> {
    println!("{:12} {:>8} {:>16} {:>16}", "scheme", "Mbit/s", "estimator", "all");
    for scheme in SCHEMES {
        let (mut own, mut whole, mut rate) = run(scheme)?;
        for _ in 1..ROUNDS {
            let next = run(scheme)?;
            (own, whole, rate) = (own.min(next.0), whole.min(next.1), next.2);
        }
        let share = |share: f64| format!("{:.3}% of a core", 100.0 * share);
        println!("{scheme:12} {rate:8.2} {:>16} {:>16}", share(own), share(whole));
    }
    Ok(())
}
