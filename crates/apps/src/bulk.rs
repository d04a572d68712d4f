//! Bulk data: one response that keeps the sender busy (the fairness tests of Mortise §5.5).
//!
//! A client that ends cannot take back a huge response. So it asks for piece after piece, each
//! early enough to keep the sender busy, and what is on its way at the end is about two seconds of
//! data.

use trimtab_units::{Bytes, Duration, Time};

use crate::requests::Requests;
use crate::{AppFactors, AppInfo, Application, Command, Concurrency, Outcome, Recipe, RequestId};

/// Settings of [`Bulk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkConfig {
    /// Size of the response. Default: 1 PB, which a link of 100 Gbit/s sends in 22 hours, so endless
    /// for every run, and far from where sums of sizes saturate.
    pub size: Bytes,
    /// Size of the request message. Default: 200 B.
    pub upload: Bytes,
    /// How long the client goes on asking for pieces, in place of one response of `size`. Default:
    /// `None`, one response.
    pub length: Option<Duration>,
}

/// The least data that is outstanding between pieces: enough for slow start over a long round trip.
const PIECE_MIN: Bytes = Bytes::new(256_000);
/// How many seconds' worth of what arrives is outstanding: longer than any round trip with its
/// queue.
const PIECES_AHEAD: u64 = 2;
/// The time over which arrivals are counted.
const WINDOW: Duration = Duration::from_secs(1);

impl Default for BulkConfig {
    fn default() -> Self {
        Self { size: Bytes::new(1_000_000_000_000_000), upload: Bytes::new(200), length: None }
    }
}

/// One request for a huge response, or for piece after piece.
#[derive(Clone, Debug)]
pub struct Bulk {
    config: BulkConfig,
    requests: Requests,
    /// When the client began; its first poll.
    start: Option<Time>,
    /// Whether it has stopped asking.
    ended: bool,
    arrivals: Arrivals,
}

/// What arrived in this window and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    since: Time,
    now: Bytes,
    before: Bytes,
}

impl Arrivals {
    fn add(&mut self, now: Time, newly: Bytes) {
        let passed = now.since(self.since);
        if passed >= WINDOW {
            self.before = if passed < WINDOW + WINDOW { self.now } else { Bytes::ZERO };
            (self.since, self.now) = (now, Bytes::ZERO);
        }
        self.now += newly;
    }
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
        media: false,
        settings: &[],
        // They steer. A transfer without an end has no completion time and no picture, so it is scored
        // by its throughput (Mortise Fig. 15 has both).
        models: &["download", "vod"],
        factors: &[],
        make: |_| Ok(Recipe::new(|_| Self::new(&BulkConfig::default()).into())),
    };

    /// A client that has not asked yet.
    pub fn new(config: &BulkConfig) -> Self {
        Self {
            config: *config,
            requests: Requests::default(),
            start: None,
            ended: false,
            arrivals: Arrivals::default(),
        }
    }

    /// When the client stops asking, once it has begun; `None` for one response.
    fn end(&self) -> Option<Time> {
        Some(self.start? + self.config.length?)
    }

    /// The next piece, where too little is outstanding.
    fn piece(&self) -> Option<Bytes> {
        let recent = self.arrivals.now.max(self.arrivals.before);
        let target = PIECE_MIN.max(recent * PIECES_AHEAD);
        let missing = self.requests.factors().outstanding;
        (missing <= target / 2).then(|| target - missing)
    }

    fn asked(&self) -> bool {
        !self.requests.records().is_empty()
    }
}

impl Application for Bulk {
    fn poll(&mut self, now: Time) -> Option<Command> {
        self.start.get_or_insert(now);
        let BulkConfig { size, upload, .. } = self.config;
        let size = match self.end() {
            Some(end) => {
                self.ended = now >= end;
                self.piece().filter(|_| !self.ended)?
            }
            None => Some(size).filter(|_| !self.asked())?,
        };
        let id = self.requests.send(now, now, size);
        Some(Command::Request { id, size, upload })
    }

    fn next_timer(&self) -> Option<Time> {
        if !self.asked() {
            return Some(Time::ZERO);
        }
        self.end().filter(|_| !self.ended)
    }

    fn is_finished(&self) -> bool {
        self.asked() && self.requests.is_idle() && (self.ended || self.config.length.is_none())
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::InOrder
    }

    fn outcome(&self, _now: Time) -> Outcome {
        Outcome::Endless
    }

    fn on_first_byte(&mut self, now: Time, id: RequestId) {
        self.requests.first_byte(now, id);
    }

    fn on_bytes(&mut self, now: Time, id: RequestId, newly: Bytes) {
        self.arrivals.add(now, newly);
        self.requests.bytes(id, newly);
    }

    fn on_complete(&mut self, now: Time, id: RequestId) {
        self.requests.complete(now, id);
    }

    fn factors(&self, _now: Time) -> AppFactors {
        self.requests.factors()
    }
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

    /// A link of 1 MB/s that delivers 10 kB every 10 ms is never idle, and idle soon after the end.
    #[test]
    fn pieces_keep_the_sender_busy_until_the_end() {
        let length = Some(Duration::from_secs(5));
        let mut app = Bulk::new(&BulkConfig { length, ..BulkConfig::default() });
        let (mut waiting, mut idle) = (std::collections::VecDeque::new(), None);
        for tick in 0..1000 {
            let now = Time::from_millis(10 * tick);
            while let Some(Command::Request { id, size, .. }) = app.poll(now) {
                waiting.push_back((id, size));
            }
            let mut room = Bytes::new(10_000);
            while let Some((id, left)) = waiting.front_mut().filter(|_| !room.is_zero()) {
                let newly = room.min(*left);
                (*left, room) = (*left - newly, room - newly);
                app.on_bytes(now, *id, newly);
                if left.is_zero() {
                    app.on_complete(now, *id);
                    waiting.pop_front();
                }
            }
            if !room.is_zero() && idle.is_none() {
                idle = Some(now);
            }
        }
        let idle = idle.unwrap();
        assert!(idle >= Time::from_secs(5) && idle < Time::from_secs(8), "idle at {idle:?}");
        assert!(app.is_finished() && app.next_timer().is_none());
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
