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

#[cfg(test)]
mod tests {
    use super::*;

    fn direction() -> DirectionReport {
        DirectionReport {
            capacity_mbps: None,
            carried_mbps: 1.5,
            arrivals: 10,
            deliveries: 9,
            delivered_bytes: 13_500,
            drops: Drops::default(),
            queueing: None,
            one_way: None,
            late: None,
            calibration: None,
        }
    }

    #[test]
    fn a_report_has_what_there_is_and_no_more() {
        assert_eq!(direction().to_string(), "1.50 Mbit/s, 9 packets");
        let spread = Spread { mean_ms: 1.0, p50_ms: 2.0, p95_ms: 3.0, p99_ms: 4.0, max_ms: 5.0 };
        let full = DirectionReport {
            capacity_mbps: Some(12.0),
            drops: Drops {
                queue_full: 1,
                random_loss: 2,
                aqm: 3,
                policer: 4,
                before_link: 5,
                refused: 6,
            },
            queueing: Some(spread),
            one_way: Some(spread),
            late: Some(spread),
            calibration: Some(Calibration { span_s: 2.0, offered_mbps: 12.0, achieved_mbps: 11.4 }),
            ..direction()
        };
        let text = full.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(
            lines[0].starts_with("1.50 of 12.00 Mbit/s, 9 packets, 1 dropped at the full queue")
        );
        for part in [
            "2 lost at random",
            "3 dropped by the queue's management",
            "4 dropped by the policer",
            "5 LOST BEFORE THE LINK",
            "6 REFUSED",
        ] {
            assert!(lines[0].contains(part), "{text}");
        }
        assert_eq!(lines[1], "queueing delay p50 2.00 ms, p95 3.00 ms, max 5.00 ms");
        assert_eq!(lines[3], "timing error p50 2.000 ms, p99 4.000 ms, max 5.000 ms");
        assert!(lines[4].ends_with("achieved 11.400 Mbit/s (95.00%)"), "{text}");
        assert_eq!(lines.len(), 5);
    }

    /// Programs read these names.
    #[test]
    fn names_of_the_json_stay() {
        let report = Report {
            schema: SCHEMA,
            duration_s: 1.0,
            scheduling: Scheduling::RealTime,
            down: direction(),
            up: direction(),
        };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(
            (&json["schema"], &json["scheduling"]),
            (&"trimtab.emu/1".into(), &"real-time".into())
        );
        assert_eq!(json["down"]["delivered_bytes"], 13_500);
        assert_eq!(json["up"]["drops"]["before_link"], 0);
        assert!(json["down"]["calibration"].is_null());
        assert!(report.to_string().starts_with("link: 1.0 s, scheduling real-time\n  down  1.50"));
    }
}
