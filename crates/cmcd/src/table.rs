//! What a log shows, without an engine.

use std::collections::BTreeMap;

use serde::Serialize;
use trimtab_fleet_client::edge::{Interval, Key};
use trimtab_units::{Duration, Rate, Time};

use crate::{LineError, Reader, Request, Sessions, Slot, Statistics};

/// So long after the end of an interval a line may come, where files of several servers are joined.
const WAIT: Duration = Duration::from_secs(60);

/// What sessions of one aggregate showed in one interval: means over sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// When the interval begins, in seconds since 1970.
    pub interval_s: u64,
    /// The clients' subnet.
    pub prefix: String,
    /// Sessions that showed something.
    pub sessions: u64,
    /// Mean bitrate in Mbit/s.
    pub bitrate_mbps: Option<f64>,
    /// Mean share of the time that playback stood still, 0 to 1.
    pub rebuffering: Option<f64>,
    /// Stalls of all sessions.
    pub stalls: u64,
    /// Mean startup time in seconds.
    pub startup_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        self.sum += value.unwrap_or(0.0);
        self.count += u64::from(value.is_some());
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sessions: u64,
    stalls: u64,
    bitrate: Mean,
    rebuffering: Mean,
    startup: Mean,
}

/// Statistics for each interval and aggregate, from the lines of a log.
#[derive(Clone, Debug)]
pub struct Table {
    reader: Reader,
    length: Duration,
    sessions: Sessions,
    sums: BTreeMap<(Interval, Key), Sums>,
    until: Time,
    /// Lines that could not be read, and why the last of them could not.
    pub unreadable: (u64, Option<LineError>),
}

impl Table {
    /// For intervals of a length, which is not zero.
    pub fn new(reader: Reader, length: Duration) -> Self {
        Self {
            reader,
            length,
            sessions: Sessions::default(),
            sums: BTreeMap::new(),
            until: Time::ZERO,
            unreadable: (0, None),
        }
    }

    /// Takes in a line. Lines are in the order of time, to a minute.
    pub fn on_line(&mut self, text: &str) {
        let (key, line) = match self.reader.read(text) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                self.unreadable = (self.unreadable.0 + 1, Some(error));
                return;
            }
        };
        let Some(data) = &line.data else { return };
        let interval = Interval::at(line.ended, self.length);
        let slot = Slot { interval, version: 0, ends: interval.end(self.length) };
        let request = Request { started: line.started, ended: line.ended, data };
        self.sessions.on_request(&key, request, Some(slot));
        // As seldom as intervals end.
        if Interval::at(self.until, self.length) < interval {
            self.until = line.ended;
            self.add(line.ended);
        }
    }

    fn add(&mut self, now: Time) {
        for (key, slot, shown) in self.sessions.take_over(now, WAIT) {
            let Statistics { bitrate, rebuffering, stalls, startup } = shown;
            let sums = self.sums.entry((slot.interval, key)).or_default();
            sums.sessions += 1;
            sums.stalls += stalls;
            sums.bitrate.add(bitrate.map(Rate::mbps));
            sums.rebuffering.add(rebuffering);
            sums.startup.add(startup.map(Duration::as_secs_f64));
        }
    }

    /// All rows, by interval and subnet.
    pub fn rows(mut self) -> Vec<Row> {
        self.add(Time::from_nanos(u64::MAX));
        let row = |((interval, key), sums): ((Interval, Key), Sums)| Row {
            interval_s: interval.start(self.length).as_nanos() / 1_000_000_000,
            prefix: key.prefix.to_string(),
            sessions: sums.sessions,
            bitrate_mbps: sums.bitrate.value(),
            rebuffering: sums.rebuffering.value(),
            stalls: sums.stalls,
            startup_s: sums.startup.value(),
        };
        self.sums.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fields;

    #[test]
    fn a_log_has_rows_by_interval_and_subnet() {
        let (service, path) = ("tv".parse().unwrap(), String::new());
        let (prefix, together) = ([24, 48], trimtab_fleet_client::edge::Together::default());
        let reader = Reader { service, prefix, together, path, fields: Fields::default() };
        let mut table = Table::new(reader, Duration::from_secs(60));
        for (second, address, cmcd) in [
            (0, "203.0.113.7", "bl=0,br=1000,d=4000,ot=v,sid=\"a\",su"),
            (2, "203.0.113.7", "bl=4000,br=3000,d=4000,ot=v,sid=\"a\""),
            (3, "203.0.113.8", "br=6000,d=4000,ot=v,sid=\"a\""),
            (12, "203.0.113.7", "bl=0,br=2000,bs,d=4000,ot=v,sid=\"a\""),
            (13, "198.51.100.1", "br=500,d=4000,ot=v,sid=\"b\""),
            (200, "198.51.100.1", "br=700,d=4000,ot=v,sid=\"b\""),
        ] {
            table.on_line(
                &serde_json::json!({
                    "msec": 1_795_320_000 + second, "remote_addr": address, "request_uri": "/",
                    "status": 200, "http_cmcd_object": cmcd,
                })
                .to_string(),
            );
        }
        table.on_line("?");
        assert_eq!(table.unreadable.0, 1);
        let rows = table.rows();
        let of: Vec<_> = rows.iter().map(|row| (row.interval_s, &*row.prefix)).collect();
        let (first, last) = (1_795_320_000, 1_795_320_180);
        let (one, other) = ("203.0.113.0/24", "198.51.100.0/24");
        assert_eq!(of, [(first, other), (first, one), (last, other)]);
        // Both clients of the subnet sent the same `sid`: by one of them it would not be known
        // twice.
        let Row { sessions, bitrate_mbps, rebuffering, stalls, startup_s, .. } = &rows[1];
        assert_eq!((*sessions, *stalls, *startup_s), (1, 1, Some(2.0)));
        assert_eq!(*bitrate_mbps, Some(3.0));
        // The request at 3 s has no buffer, so the length of the stall is unknown.
        assert_eq!(*rebuffering, None);
        assert_eq!(rows[2].bitrate_mbps, Some(0.7));
    }
}
