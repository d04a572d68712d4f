//! Bulk data: one response that keeps the sender busy (the fairness tests of Mortise §5.5).

use trimtab_units::{Bytes, Time};

use crate::requests::{Requests, response_methods};
use crate::{AppInfo, Application, Command, Concurrency, Outcome, Recipe};

/// Settings of [`Bulk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkConfig {
    /// Size of the response. Default: 1 PB, which a link of 100 Gbit/s sends in 22 hours, so endless
    /// for every run, and far from where sums of sizes saturate.
    pub size: Bytes,
    /// Size of the request message. Default: 200 B.
    pub upload: Bytes,
}

impl Default for BulkConfig {
    fn default() -> Self {
        Self { size: Bytes::new(1_000_000_000_000_000), upload: Bytes::new(200) }
    }
}

/// One request for a huge response.
#[derive(Clone, Debug)]
pub struct Bulk {
    config: BulkConfig,
    requests: Requests,
}

impl Bulk {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "bulk",
        about: "One endless transfer per flow",
        source: "Mortise, section 5.5",
        label: "bulk transfer",
        users: "bulk transfers",
        experience: "One endless transfer per flow, to see how links are shared.",
        log: false,
        settings: &[],
        // They steer. A transfer without an end has no completion time and no picture, so it is scored
        // by its throughput (Mortise Fig. 15 has both).
        models: &["download", "vod"],
        factors: &[],
        make: |_| Ok(Recipe::new(|_| Self::new(&BulkConfig::default()).into())),
    };

    /// A client that has not asked yet.
    pub fn new(config: &BulkConfig) -> Self {
        Self { config: *config, requests: Requests::default() }
    }

    fn asked(&self) -> bool {
        !self.requests.records().is_empty()
    }
}

impl Application for Bulk {
    fn poll(&mut self, now: Time) -> Option<Command> {
        if self.asked() {
            return None;
        }
        let BulkConfig { size, upload } = self.config;
        let id = self.requests.send(now, now, size);
        Some(Command::Request { id, size, upload })
    }

    fn next_timer(&self) -> Option<Time> {
        (!self.asked()).then_some(Time::ZERO)
    }

    fn is_finished(&self) -> bool {
        self.asked() && self.requests.is_idle()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::InOrder
    }

    fn outcome(&self, _now: Time) -> Outcome {
        Outcome::Endless
    }

    response_methods!(self.requests);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_once_and_ends_with_its_response() {
        let mut app = Bulk::new(&BulkConfig { size: Bytes::new(5000), ..BulkConfig::default() });
        assert_eq!(app.next_timer(), Some(Time::ZERO));
        let start = Time::from_millis(7);
        let Some(Command::Request { id, size, upload }) = app.poll(start) else { panic!() };
        assert_eq!((size.get(), upload.get()), (5000, 200));
        assert_eq!((app.poll(start), app.next_timer()), (None, None));
        app.on_bytes(start, id, Bytes::new(2000));
        assert_eq!(app.factors(start).outstanding, Bytes::new(3000));
        assert!(!app.is_finished());
        app.on_complete(Time::from_millis(9), id);
        assert!(app.is_finished());
    }

    #[test]
    fn endless_by_default() {
        let Some(Command::Request { size, .. }) =
            Bulk::new(&BulkConfig::default()).poll(Time::ZERO)
        else {
            panic!()
        };
        let day = trimtab_units::Duration::from_secs(22 * 3600);
        assert!(size > trimtab_units::Rate::from_mbps(100_000.0) * day);
    }
}
