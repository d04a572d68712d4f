//! What is checked, and the scene in which a check puts it.

use trimtab_apps::{App, BulkConfig, DownloadConfig, Workload};
use trimtab_net::{Capacity, DelayConfig, LinkConfig, LossConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::check::{By, Check};
use crate::run::datapath::RunError;

/// Whose behaviour a congestion control is meant to have, which says what clauses apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// RFC 9002 §7, RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR version 1 (Linux `tcp_bbr.c`).
    Bbr1,
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr3,
    /// Another algorithm, for which only the clauses for all senders apply.
    Other,
}

impl Family {
    /// That of an algorithm of Trimtab or of a stack, by its name.
    pub fn named(algorithm: &str) -> Self {
        match algorithm {
            "newreno" => Self::Reno,
            "cubic" => Self::Cubic,
            "bbr" => Self::Bbr1,
            "bbr3" => Self::Bbr3,
            _ => Self::Other,
        }
    }

    /// Whether it is a version of BBR.
    pub fn is_bbr(self) -> bool {
        matches!(self, Self::Bbr1 | Self::Bbr3)
    }

    /// Whether RFC 9002 §7.3 describes its states: slow start, recovery, congestion avoidance.
    pub(crate) fn has_slow_start(self) -> bool {
        matches!(self, Self::Reno | Self::Cubic)
    }
}

/// A congestion control on a transport.
pub trait Subject: Send + Sync {
    /// As the user names it, e.g. `sim:cubic`.
    fn name(&self) -> &str;

    /// What clauses apply to it.
    fn family(&self) -> Family;

    /// Whether the algorithm and the transport are Trimtab's, so that what fails by them is a defect
    /// of ours.
    fn is_ours(&self, by: By) -> bool;

    /// Whether the transport obeys the controller's pacing rate.
    fn obeys_rate(&self) -> bool {
        true
    }

    /// What a full packet counts against the window.
    fn packet(&self) -> Bytes;

    /// Whether what the check is about can be seen there, else why it cannot.
    ///
    /// # Errors
    /// It cannot.
    fn observes(&self, check: &Check) -> Result<(), &'static str> {
        let _ = check;
        Ok(())
    }

    /// How many checks at once do not disturb each other; `None` for one per core. Where there is a
    /// number, time is real, and nothing else is checked meanwhile.
    fn at_once(&self) -> Option<usize> {
        None
    }

    /// What readers of the verdicts must know of all trials so far, such as a machine that was too
    /// busy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Begins a connection in a scene. In virtual time the same scene gives the same trial.
    ///
    /// # Errors
    /// The connection cannot be made.
    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError>;
}

/// A connection under observation.
pub trait Trial {
    /// Goes on up to and including `until`.
    ///
    /// # Errors
    /// The connection ended by itself.
    fn run_until(&mut self, until: Time) -> Result<(), RunError>;

    /// What can be seen of its sender now.
    fn look(&mut self) -> Look;
}

/// What can be seen of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When.
    pub at: Time,
    /// The congestion window.
    pub window: Bytes,
    /// Bytes in flight, as they count against the window.
    pub inflight: Bytes,
    /// Packets that left so far.
    pub sent: u64,
    /// Packets declared lost so far.
    pub lost: u64,
    /// Bytes that the receiving application has got so far.
    pub goodput: Bytes,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The controller's own pacing rate; `None` where it leaves that to the transport.
    pub pacing: Option<Rate>,
}

/// A path with one connection, over which a server answers a client. The request takes half a
/// round trip, so the first data leaves then.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The bottleneck.
    pub link: LinkConfig,
    /// Propagation there and back, half of it each way.
    pub rtt: DelayConfig,
    /// What the client asks for.
    pub app: App,
    /// Seed of the path's and the algorithm's randomness.
    pub seed: u64,
}

impl Scene {
    /// Bulk data over a path without losses and with room for all in its queue.
    pub(super) fn new(mbps: f64, rtt: Duration) -> Self {
        Self {
            link: LinkConfig::new(Capacity::Constant(Rate::from_mbps(mbps))),
            rtt: rtt.into(),
            app: App::bulk(&BulkConfig::default()),
            seed: 1,
        }
    }

    /// With room for so many packets in its queue.
    pub(super) fn buffer(mut self, packets: u32) -> Self {
        self.link.queue = QueueConfig::drop_tail_packets(packets);
        self
    }

    /// These packets of the server are lost, counted from 0.
    pub(super) fn losing(mut self, packets: &[u64]) -> Self {
        self.link.loss = LossConfig::Listed(packets.into());
        self
    }

    /// Each packet is lost with this probability.
    pub(super) fn lossy(mut self, probability: f64) -> Self {
        self.link.loss = LossConfig::Independent(probability);
        self
    }

    /// Packets are lost with this probability in this time, in seconds.
    pub(super) fn lossy_during(mut self, probability: f64, from: f64, until: f64) -> Self {
        let [from, until] = [from, until].map(Time::from_secs_f64);
        self.link.loss = LossConfig::During { probability, from, until };
        self
    }

    /// The propagation becomes this at a time, in seconds.
    pub(super) fn rtt_from(mut self, at: f64, then: Duration) -> Self {
        let first = self.rtt.at(Time::ZERO);
        let rest = Duration::from_secs(24 * 3600);
        self.rtt = DelayConfig::steps([(Duration::from_secs_f64(at), first), (rest, then)]);
        self
    }

    /// The propagation is this from one time to another, in seconds.
    pub(super) fn rtt_during(mut self, from: f64, until: f64, then: Duration) -> Self {
        let first = self.rtt.at(Time::ZERO);
        let [before, during] = [from, until - from].map(Duration::from_secs_f64);
        let rest = Duration::from_secs(24 * 3600);
        self.rtt = DelayConfig::steps([(before, first), (during, then), (rest, first)]);
        self
    }

    /// The client asks for responses of so many bytes at these times, in milliseconds.
    pub(super) fn asking(mut self, requests: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (mut text, mut before) = (String::new(), 0);
        for (at, size) in requests {
            text += &format!("{} {size}\n", at - before);
            before = at;
        }
        // Made of a list of this code's own: it is a workload.
        if let Ok(workload) = Workload::parse(&text) {
            self.app = App::download(DownloadConfig::new(workload));
        }
        self
    }

    /// The client asks for a response of this size again and again, from the start until a time.
    pub(super) fn asking_every(self, gap_ms: u64, size: u64, until_ms: u64) -> Self {
        self.asking((0..until_ms.div_ceil(gap_ms)).map(|number| (number * gap_ms, size)))
    }

    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}
