//! File downloads: requests by schedule.
//!
//! The client sends each request at its scheduled time, whether or not earlier responses have
//! arrived, so a slow network builds up a backlog instead of slowing the user down (Mortise §4 (1),
//! Appendix B; the same client made the project's measurements of Linux TCP).
//!
//! With a closed loop the client asks for the next file only after the response is there and the
//! workload's gap has passed, as a person does who looks at one file before the next. On a link
//! that is too slow users then ask for less, and no backlog grows.

use std::path::Path;

use trimtab_units::{Bytes, Time};

use crate::draw::Draw;
use crate::requests::{Requests, response_methods};
use crate::{
    App, AppError, AppInfo, Application, CdnDistribution, Command, Concurrency, Form, Recipe,
    Setting, Settings, Workload,
};

/// Settings of [`Download`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadConfig {
    /// The requests.
    pub workload: Workload,
    /// Size of a request message. Default: 200 B.
    pub upload: Bytes,
    /// How responses share the connection. Default: [`Concurrency::InOrder`], as in the paper (one
    /// TCP connection).
    pub concurrency: Concurrency,
    /// When the next request goes. Default: [`Loop::Open`], as in the paper.
    pub pacing: Loop,
}

/// When a client sends its next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loop {
    /// At its scheduled time, whatever has arrived.
    #[default]
    Open,
    /// Once the response before is there and the workload's gap has passed since (think time).
    Closed,
}

impl DownloadConfig {
    /// The workload with the other settings at their defaults.
    pub fn new(workload: Workload) -> Self {
        Self {
            workload,
            upload: Bytes::new(200),
            concurrency: Concurrency::InOrder,
            pacing: Loop::Open,
        }
    }
}

/// A client that sends the requests of a workload at their times.
#[derive(Clone, Debug)]
pub struct Download {
    config: DownloadConfig,
    /// Time 0 of the workload: the first poll.
    start: Option<Time>,
    requests: Requests,
}

impl Download {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "download",
        about: "A download service: files of many sizes, one after the other",
        source: "Mortise, section 4 (1) and Appendix B",
        label: "download service",
        users: "users of a download service",
        experience: "Users ask for files of many sizes and wait for each. Experience is size over \
                     waiting time, in Mbit/s, less a penalty when much had to be sent again (Mortise, \
                     eq. 6): higher is better.",
        log: true,
        media: false,
        settings: &[
            Setting {
                name: "workload",
                form: Form::File,
                default: "drawn from the distribution of Mortise's appendix B",
                about: "requests to replay, lines of `interval_ms size_bytes`",
            },
            Setting {
                name: "size",
                form: Form::Sizes,
                default: "none",
                about: "one request instead, its size log-uniform between two sizes",
            },
            Setting {
                name: "loop",
                form: Form::Choice(&["open", "closed"]),
                default: "open",
                about: "open sends each request at its time; closed waits for the response, then \
                        for the gap",
            },
        ],
        models: &["download", "web", "conference", "conference-printed"],
        factors: &["R", "Rbar"],
        make: Self::recipe,
    };

    fn recipe(settings: &Settings) -> Result<Recipe, AppError> {
        let workload = settings.file("workload").map(read).transpose()?;
        let (app, first, second) = (Self::INFO.name, "workload", "size");
        let pacing = match settings.choice("loop") {
            Some("closed") => Loop::Closed,
            _ => Loop::Open,
        };
        let client = move |workload| {
            let config = DownloadConfig { pacing, ..DownloadConfig::new(workload) };
            App::from(Self::new(config))
        };
        match (workload, settings.sizes("size")) {
            (Some(_), Some(_)) => Err(AppError::Both { app, first, second }),
            (Some(workload), None) => Ok(Recipe::new(move |_| client(workload.clone()))),
            (None, Some((least, most))) => {
                let (least, most) = (least.as_f64(), most.as_f64());
                Ok(Recipe::new(move |session| {
                    let drawn = || Draw::new(session.seed, 8).unit();
                    let at = session.quantile.unwrap_or_else(drawn);
                    let size = least * libm::pow(most / least, at);
                    client(Workload::single(Bytes::from_f64(size)))
                }))
            }
            (None, None) => Ok(Recipe::new(move |session| {
                let cdn = CdnDistribution::default();
                client(Workload::draw(&cdn, session.length, session.seed))
            })),
        }
    }

    /// A client that has sent nothing yet.
    pub fn new(config: DownloadConfig) -> Self {
        Self { config, start: None, requests: Requests::default() }
    }

    /// The next request of the workload and when it is due.
    fn next(&self) -> Option<(Time, Bytes)> {
        let (workload, sent) = (self.config.workload.requests(), self.requests.records());
        let request = workload.get(sent.len())?;
        let due = match (self.config.pacing, sent.last()) {
            (Loop::Open, _) | (Loop::Closed, None) => self.start? + request.at,
            // While the response is outstanding, nothing is due.
            (Loop::Closed, Some(last)) => {
                last.completed_at? + (request.at - workload[sent.len() - 1].at)
            }
        };
        Some((due, request.size))
    }
}

fn read(path: &Path) -> Result<Workload, AppError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| AppError::WorkloadFile { path: path.to_owned(), cause })?;
    Workload::parse(&text).map_err(|problem| AppError::Workload { path: path.to_owned(), problem })
}

impl Application for Download {
    fn poll(&mut self, now: Time) -> Option<Command> {
        self.start.get_or_insert(now);
        let (due, size) = self.next().filter(|&(due, _)| due <= now)?;
        let id = self.requests.send(now, due, size);
        Some(Command::Request { id, size, upload: self.config.upload })
    }

    fn next_timer(&self) -> Option<Time> {
        if self.start.is_none() {
            return Some(Time::ZERO);
        }
        self.next().map(|(due, _)| due)
    }

    fn is_finished(&self) -> bool {
        self.start.is_some() && self.next().is_none() && self.requests.is_idle()
    }

    fn concurrency(&self) -> Concurrency {
        self.config.concurrency
    }

    /// The gaps and sizes to come are drawn from all of the workload, each by itself.
    fn redraw(&mut self, now: Time, seed: u64) {
        let Some(start) = self.start else { return };
        let sent = self.requests.records().len();
        self.config.workload = self.config.workload.redrawn(sent, now.since(start), seed);
    }

    response_methods!(self.requests, logged);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trimtab_units::Duration;

    use super::*;
    use crate::{Outcome, RequestId};

    fn client(text: &str) -> Download {
        Download::new(DownloadConfig::new(Workload::parse(text).unwrap()))
    }

    fn records(app: &Download) -> Vec<crate::RequestRecord> {
        match app.outcome(Time::ZERO) {
            Outcome::Requests(records) => records,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn concurrent_requests_leave_at_once_and_the_rest_on_time() {
        let mut app = client("0 10\n0 20\n30 40\n");
        let start = Time::from_secs(2);
        let sizes: Vec<_> = std::iter::from_fn(|| app.poll(start))
            .map(|Command::Request { size, .. }| size.get())
            .collect();
        assert_eq!(sizes, [10, 20]);
        let due = start + Duration::from_millis(30);
        assert_eq!(app.next_timer(), Some(due));
        assert_eq!(app.poll(due - Duration::from_nanos(1)), None);
        assert!(app.poll(due).is_some(), "sent although nothing has arrived");
        assert_eq!(app.next_timer(), None);
        assert!(!app.is_finished());
    }

    #[test]
    fn one_request_of_a_size_between_two() {
        let mut settings = Settings::default();
        let sizes = ["100kB", "400kB"].map(str::to_owned).to_vec();
        settings.set("size", crate::Value::List(sizes));
        let recipe = Download::recipe(&settings).unwrap();
        let size = |seed, quantile| {
            let length = Duration::from_secs(10);
            let mut app = recipe.client(&crate::Session { length, seed, quantile });
            let Some(Command::Request { size, .. }) = app.poll(Time::ZERO) else { panic!() };
            assert_eq!(app.next_timer(), None, "one request");
            size.get()
        };
        assert_eq!([0.0, 0.5, 1.0].map(|q| size(1, Some(q))), [100_000, 200_000, 400_000]);
        assert_ne!(size(1, None), size(2, None), "drawn");
        settings.set("workload", crate::Value::Text("/nowhere".to_owned()));
        let e = Download::recipe(&settings).unwrap_err().to_string();
        assert!(e.starts_with("/nowhere: the workload cannot be read"), "{e}");
    }

    #[test]
    fn a_future_drawn_anew_keeps_the_past() {
        let mut app = client("0 10\n300 20\n700 30\n5000 40\n200 50\n900 60\n");
        for ms in [0, 300] {
            app.poll(Time::from_millis(ms)).unwrap();
        }
        // Two seconds after the second request only the gap of 5 s is left.
        let now = Time::from_millis(2300);
        let redrawn = |seed| {
            let mut fork = app.clone();
            fork.redraw(now, seed);
            assert_eq!(records(&fork), records(&app));
            assert_eq!(fork.next_timer(), Some(Time::from_millis(5300)));
            let at = Time::from_secs(60);
            std::iter::from_fn(|| fork.poll(at))
                .map(|Command::Request { size, .. }| size.get())
                .collect::<Vec<_>>()
        };
        assert_eq!(redrawn(1), redrawn(1));
        assert!((2..20).any(|seed| redrawn(seed) != redrawn(1)));
        assert!(redrawn(1).iter().all(|size| (10..=60).contains(size)));
    }

    #[test]
    fn unfinished_requests_stay_visible() {
        let mut app = client("0 10\n0 20\n");
        while app.poll(Time::ZERO).is_some() {}
        app.on_first_byte(Time::from_millis(20), RequestId(0));
        app.on_complete(Time::from_millis(25), RequestId(0));
        let r = records(&app);
        assert_eq!(r[0].first_byte_at, Some(Time::from_millis(20)));
        assert_eq!(r[0].completion_time(), Some(Duration::from_millis(25)));
        assert_eq!((r[1].first_byte_at, r[1].completion_time()), (None, None));
        assert!(!app.is_finished());
        app.on_complete(Time::from_millis(26), RequestId(1));
        assert!(app.is_finished());
    }

    proptest! {
        /// A closed loop has at most one request outstanding, leaves the workload's gap after each
        /// response, and asks for the same sizes in the same order as an open one.
        #[test]
        fn a_closed_loop_waits_and_asks_for_the_same(
            lines in prop::collection::vec((0u64..500, 1u64..1_000_000), 1..60),
            delays_ms in prop::collection::vec(0u64..2000, 60),
        ) {
            let text: String = lines.iter().map(|(g, s)| format!("{g} {s}\n")).collect();
            let workload = Workload::parse(&text).unwrap();
            let config = DownloadConfig { pacing: Loop::Closed, ..DownloadConfig::new(workload) };
            let mut app = Download::new(config);
            let mut now = Time::from_secs(1);
            app.poll(now - Duration::from_nanos(1));
            let mut due = now - Duration::from_nanos(1);
            for (i, (gap, size)) in lines.iter().enumerate() {
                due += Duration::from_millis(*gap);
                if i > 0 {
                    prop_assert_eq!(app.next_timer(), Some(due));
                }
                now = now.max(due);
                if let Some(Command::Request { id, .. }) = app.poll(now) {
                    prop_assert_eq!(id, RequestId(i as u32));
                }
                prop_assert_eq!(app.poll(now + Duration::from_secs(9)), None, "one at a time");
                prop_assert_eq!(app.next_timer(), None);
                prop_assert!(!app.is_finished());
                let record = records(&app)[i];
                prop_assert_eq!(record.size.get(), *size);
                now += Duration::from_millis(delays_ms[i]);
                app.on_complete(now, RequestId(i as u32));
                due = now;
            }
            prop_assert_eq!(records(&app).len(), lines.len());
            prop_assert!(app.is_finished());
        }

        /// A carrier that obeys `next_timer` sends every request at its exact time, whatever arrives when.
        #[test]
        fn the_schedule_is_exact(
            lines in prop::collection::vec((0u64..500, 1u64..1_000_000), 1..60),
            start_ns in 0u64..10_000_000_000,
            delays_ms in prop::collection::vec(0u64..2000, 60),
        ) {
            let text: String = lines.iter().map(|(g, s)| format!("{g} {s}\n")).collect();
            let mut app = client(&text);
            let start = Time::from_nanos(start_ns);
            let mut arrivals: Vec<(Time, RequestId)> = Vec::new();
            let mut now = start;
            loop {
                while let Some(Command::Request { id, .. }) = app.poll(now) {
                    let delay = Duration::from_millis(delays_ms[id.0 as usize]);
                    arrivals.push((now + delay, id));
                }
                for &(_, id) in arrivals.iter().filter(|&&(at, _)| at <= now) {
                    app.on_complete(now, id);
                }
                arrivals.retain(|&(at, _)| at > now);
                let next = arrivals.iter().map(|&(at, _)| at).chain(app.next_timer()).min();
                let Some(next) = next else { break };
                prop_assert!(next > now);
                now = next;
            }
            prop_assert!(app.is_finished());
            let mut at = start;
            let records = records(&app);
            prop_assert_eq!(records.len(), lines.len());
            for (record, (gap, size)) in records.iter().zip(&lines) {
                at += Duration::from_millis(*gap);
                prop_assert_eq!((record.scheduled_at, record.sent_at), (at, at));
                prop_assert_eq!(record.size.get(), *size);
                let delay = Duration::from_millis(delays_ms[record.id.0 as usize]);
                prop_assert_eq!(record.completion_time(), Some(delay));
            }
        }
    }
}
