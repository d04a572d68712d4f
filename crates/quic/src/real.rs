//! noq over real sockets as a datapath, and how true its runs were.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trimtab_emu::{Fidelity, ServerSide, Topology};
use trimtab_lab::run::course::Course;
use trimtab_lab::run::datapath::{Datapath, RunError, on_own_thread};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Measurement;
use trimtab_lab::scenario::{Job, Scenario};
use trimtab_noq::Qlog;

use crate::admission;
use crate::error::QuicError;
use crate::identity::Identity;
use crate::logs::{self, RunLogs};
use crate::real_world::{Pace, RealWorld};
use crate::run::QuicRun;

const NAME: &str = "quic";
/// How late timers of noq may be: what its pacer lets out at once takes longer on most links.
const LATE_MAX_MS: f64 = 1.0;
/// A thread that sleeps less than the rest of the time may limit what noq sends.
const AWAKE_MAX: f64 = 0.8;

/// How true all runs were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Truth {
    links: Fidelity,
    /// The 99th percentile of how late noq's timers were, in the worst run, in milliseconds.
    timers_late_p99_ms: f64,
    /// The share of the time in which noq's thread did not sleep, in the worst run.
    awake: f64,
}

/// noq over real sockets and an emulated link, in real time.
pub struct Real {
    identity: Identity,
    kernel: String,
    truth: Mutex<Truth>,
    qlog: Option<Qlog>,
}

impl Real {
    /// Checks that the scenario can be run here.
    ///
    /// # Errors
    /// It asks for TCP, a scheme needs the simulator, the rights for namespaces are missing, or the
    /// folder `QLOGDIR` cannot be made: one message that says what to do.
    pub fn new(scenario: &Scenario) -> Result<Self, QuicError> {
        admission::check(scenario, NAME)?;
        if !rustix::process::geteuid().is_root() {
            return Err(QuicError::NotRoot);
        }
        // Whether links can be made shows before the first run.
        drop(Topology::new(ServerSide::Private)?);
        let kernel = format!("Linux {}", rustix::system::uname().release().to_string_lossy());
        let (identity, qlog) = (Identity::new()?, logs::from_env()?);
        Ok(Self { identity, kernel, truth: Mutex::default(), qlog })
    }

    /// Logs each flow of each run there, and not where `QLOGDIR` says. Default: there, if it is set.
    #[must_use]
    pub fn with_qlog(self, qlog: impl Into<Option<Qlog>>) -> Self {
        Self { qlog: qlog.into(), ..self }
    }

    /// How true the links have been so far.
    pub fn fidelity(&self) -> Fidelity {
        lock(&self.truth).links
    }

    fn run(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, QuicError> {
        let mut topology = Topology::new(ServerSide::Private)?;
        let mut pace = Pace::default();
        let logs = RunLogs::new(self.qlog.as_ref(), prepared, job);
        let run = (prepared, job, logs);
        let world = RealWorld::begin(&self.identity, &mut topology, run, &mut pace)?;
        let run = QuicRun::new(world, prepared, job);
        let measurement = Course::new(prepared, job, run).measure();
        let report = topology.stop()?;
        logs.flush();
        let overflows = overflows(&topology)?;
        let mut truth = lock(&self.truth);
        truth.links.add(&report);
        truth.links.lost_elsewhere += overflows;
        let late_p99_ms = pace.late.quantile(0.99).as_millis_f64();
        truth.timers_late_p99_ms = truth.timers_late_p99_ms.max(late_p99_ms);
        truth.awake = truth.awake.max(pace.awake());
        measurement
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Real").field("truth", &self.truth).finish_non_exhaustive()
    }
}

impl Datapath for Real {
    fn name(&self) -> &'static str {
        NAME
    }

    fn system(&self) -> Option<String> {
        Some(self.kernel.clone())
    }

    /// One: runs at once take time from each other.
    fn jobs(&self) -> Option<usize> {
        Some(1)
    }

    /// Takes the scenario's duration, and what handshakes and outstanding requests take.
    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        on_own_thread(|| self.run(prepared, job), QuicError::Thread)
    }

    fn warnings(&self) -> Vec<String> {
        lock(&self.truth).warnings()
    }
}

impl Truth {
    fn warnings(&self) -> Vec<String> {
        let Self { links, timers_late_p99_ms, awake } = self;
        let mut warnings = Vec::new();
        if !links.is_good() {
            warnings.push(links.to_string());
        }
        if *timers_late_p99_ms > LATE_MAX_MS {
            warnings.push(format!(
                "this machine was too busy for noq's timers: in the worst run, they were up to \
                 {timers_late_p99_ms:.2} ms late at the 99th percentile; use fewer --jobs, or end \
                 other programs"
            ));
        }
        if *awake > AWAKE_MAX {
            warnings.push(format!(
                "noq's thread was busy for {:.0}% of the worst run, so it may have limited what was \
                 sent; use links of a lower rate, fewer flows or fewer --jobs",
                100.0 * awake
            ));
        }
        warnings
    }
}

/// Datagrams that found a socket full, in either namespace.
fn overflows(topology: &Topology) -> Result<u64, QuicError> {
    let mut all = 0;
    for namespace in [topology.server(), topology.client()] {
        all += counter(&namespace.proc_net("snmp")?, "Udp", "RcvbufErrors").unwrap_or(0);
    }
    Ok(all)
}

/// A counter of `/proc/net/snmp`: a line of names, then one of values, for each protocol.
fn counter(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    names.zip(values).find(|(n, _)| *n == name)?.1.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_of() {
        let good = Truth { timers_late_p99_ms: 0.3, ..Truth::default() };
        assert_eq!(good.warnings(), Vec::<String>::new());
        let late = Truth { timers_late_p99_ms: 4.5, ..good }.warnings();
        assert!(late[0].contains("4.50 ms late") && late[0].contains("fewer --jobs"), "{late:?}");
        let busy = Truth { awake: 0.93, ..good }.warnings();
        assert!(busy[0].contains("busy for 93%") && busy[0].contains("lower rate"), "{busy:?}");
        let links = Fidelity { runs: 1, late_p99_ms: 0.1, lost_elsewhere: 2 };
        let lost = Truth { links, ..good }.warnings();
        assert!(lost.len() == 1 && lost[0].contains("2 were lost elsewhere"), "{lost:?}");
    }

    #[test]
    fn counters_are_found_by_protocol_and_name() {
        let text =
            "Tcp: In Out\nTcp: 1 2\nUdp: In RcvbufErrors\nUdp: 3 4\nUdpLite: In\nUdpLite: 9\n";
        assert_eq!(counter(text, "Udp", "RcvbufErrors"), Some(4));
        assert_eq!(counter(text, "Udp", "Other"), None);
        assert_eq!(counter(text, "Icmp", "In"), None);
    }
}
