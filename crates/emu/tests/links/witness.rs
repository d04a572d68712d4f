//! How punctual the machine itself is: what a thread that only sleeps sees, on each processor,
//! scheduled as the emulator is.
#![expect(unsafe_code, reason = "sched_setscheduler(2) has no wrapper")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

const SLEEP: Duration = Duration::from_micros(300);
/// What a punctual machine needs for waking up.
const WAKING: Duration = Duration::from_micros(200);

/// Threads that watch the clock, until it ends.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<f64>>>,
    start: Instant,
}

impl Witness {
    pub(crate) fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let watch = |processor| {
            let stop = stop.clone();
            thread::spawn(move || watch(processor, &stop))
        };
        Self { threads: (0..processors).map(watch).collect(), stop, start: Instant::now() }
    }

    /// How late the machine is in 1 of 100 moments, in milliseconds: whatever is due in the midst
    /// of a stall is late by its rest.
    pub(crate) fn end(self) -> f64 {
        let time_ms = self.start.elapsed().as_secs_f64() * 1e3;
        self.stop.store(true, Ordering::Relaxed);
        let stalls: Vec<f64> = self.threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        p99(&stalls, time_ms)
    }
}

/// The stalls of a processor, in milliseconds; none where the thread may not be scheduled first,
/// since ordinary ones would delay it.
fn watch(processor: usize, stop: &AtomicBool) -> Vec<f64> {
    let mut only = CpuSet::new();
    only.set(processor);
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads one `struct sched_param`; 0 is the calling thread.
    let is_first = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) } == 0;
    let mut stalls = Vec::new();
    if !is_first || sched_setaffinity(None, &only).is_err() {
        return stalls;
    }
    while !stop.load(Ordering::Relaxed) {
        let due = Instant::now() + SLEEP;
        thread::sleep(SLEEP);
        let late = due.elapsed();
        if late > WAKING {
            stalls.push(late.as_secs_f64() * 1e3);
        }
    }
    stalls
}

fn p99(stalls_ms: &[f64], time_ms: f64) -> f64 {
    let later_than = |late: f64| stalls_ms.iter().map(|stall| (stall - late).max(0.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, stalls_ms.iter().copied().fold(0.0, f64::max));
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if later_than(middle) > 0.01 * time_ms { low = middle } else { high = middle }
    }
    high
}

#[test]
fn a_stall_makes_late_what_is_due_in_it() {
    assert_eq!(p99(&[], 3000.0), 0.0);
    // 30 ms are 1% of 3 s: of a stall of 100 ms the last 30 ms are behind one that is late by 70.
    assert!((p99(&[100.0], 3000.0) - 70.0).abs() < 1e-6);
    assert!((p99(&[50.0, 50.0], 3000.0) - 35.0).abs() < 1e-6);
    assert!(p99(&[0.5; 10], 3000.0) < 1e-6);
}
