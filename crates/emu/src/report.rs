//! What an emulated link did, and how true it was to what it should have done.

use std::fmt;

use serde::Serialize;

/// The version of [`Report`] as JSON, in its field `schema`. Fields may be added without a new one.
pub const SCHEMA: &str = "trimtab.emu/1";

/// What a link did between [`start`](crate::Topology::start) and [`stop`](crate::Topology::stop).
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// How long it ran, in seconds.
    pub duration_s: f64,
    /// How the forwarding thread was scheduled.
    pub scheduling: Scheduling,
    /// From the server to the client.
    pub down: DirectionReport,
    /// From the client to the server.
    pub up: DirectionReport,
}

/// How the system schedules the thread that carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Before every ordinary thread (`SCHED_FIFO`): busy processors do not disturb it.
    RealTime,
    /// As the most important of the ordinary threads (nice -20).
    HighPriority,
    /// As any other: departures are late when the processors are busy.
    Ordinary,
}

/// One direction of a link. Rates and bytes count IP packets and the link's overhead per packet.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionReport {
    /// What the link could have carried, in Mbit/s; none when it has no limit.
    pub capacity_mbps: Option<f64>,
    /// What it carried, in Mbit/s.
    pub carried_mbps: f64,
    /// Packets that came to the link.
    pub arrivals: u64,
    /// Packets that the far end was given.
    pub deliveries: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that were lost, by reason.
    pub drops: Drops,
    /// From the arrival to the departure that the link decided on, without the propagation delay.
    pub queueing: Option<Spread>,
    /// From the arrival to the moment when the far end had the packet.
    pub one_way: Option<Spread>,
    /// How much later than the link decided the far end had the packet: the error of the emulation.
    pub late: Option<Spread>,
    /// The rate while the link was busy; none when it never was for a second without a break.
    pub calibration: Option<Calibration>,
}

/// Lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// No room in the link's queue.
    pub queue_full: u64,
    /// Random loss.
    pub random_loss: u64,
    /// Active queue management.
    pub aqm: u64,
    /// Above the rate of the policer.
    pub policer: u64,
    /// Lost by the kernel before the emulator read them. Not part of the model: should be 0.
    pub before_link: u64,
    /// Not taken by the kernel at the far end. Not part of the model: should be 0.
    pub refused: u64,
}

/// A distribution of times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Largest.
    pub max_ms: f64,
}

/// What the link offered and what it achieved over all spans of at least a second in which packets always waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The length of these spans together, in seconds.
    pub span_s: f64,
    /// What the trace or the constant rate offered meanwhile, in Mbit/s.
    pub offered_mbps: f64,
    /// What had really left, in Mbit/s.
    pub achieved_mbps: f64,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RealTime => "real-time",
            Self::HighPriority => "high priority",
            Self::Ordinary => "ordinary: busy processors disturb it, run it as root to mend that",
        })
    }
}

impl fmt::Display for Report {
    /// Some lines for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "link: {:.1} s, scheduling {}", self.duration_s, self.scheduling)?;
        write!(f, "  down  {}\n  up    {}", self.down, self.up)
    }
}

impl fmt::Display for DirectionReport {
    /// Some lines for a terminal; those after the first are indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.carried_mbps)?;
        if let Some(capacity) = self.capacity_mbps {
            write!(f, " of {capacity:.2}")?;
        }
        write!(f, " Mbit/s, {} packets", self.deliveries)?;
        self.drops.fmt(f)?;
        let delays = [("queueing delay", self.queueing), ("one-way delay", self.one_way)];
        for (name, Spread { p50_ms, p95_ms, max_ms, .. }) in
            delays.iter().filter_map(|(n, s)| Some((n, (*s)?)))
        {
            write!(
                f,
                "\n        {name} p50 {p50_ms:.2} ms, p95 {p95_ms:.2} ms, max {max_ms:.2} ms"
            )?;
        }
        if let Some(Spread { p50_ms, p99_ms, max_ms, .. }) = self.late {
            write!(
                f,
                "\n        timing error p50 {p50_ms:.3} ms, p99 {p99_ms:.3} ms, max {max_ms:.3} ms"
            )?;
        }
        if let Some(Calibration { span_s, offered_mbps, achieved_mbps }) = self.calibration {
            let share = achieved_mbps / offered_mbps * 100.0;
            write!(
                f,
                "\n        while busy ({span_s:.1} s): offered {offered_mbps:.3} Mbit/s, achieved {achieved_mbps:.3} Mbit/s ({share:.2}%)"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Drops {
    /// What there is, each after a comma; nothing when there is nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (packets, why) in [
            (self.queue_full, "dropped at the full queue"),
            (self.random_loss, "lost at random"),
            (self.aqm, "dropped by the queue's management"),
            (self.policer, "dropped by the policer"),
            (self.before_link, "LOST BEFORE THE LINK (the emulator was too slow)"),
            (self.refused, "REFUSED BY THE FAR END'S KERNEL"),
        ] {
            if packets > 0 {
                write!(f, ", {packets} {why}")?;
            }
        }
        Ok(())
    }
}
