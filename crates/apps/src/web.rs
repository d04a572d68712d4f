//! Web traffic: small requests and responses on concurrent streams, in bursts that a user's clicks
//! begin.
//!
//! Follows Floo §4.2 and Fig. 5 (35 million messages of a mobile web service), the traffic that Floo's
//! own "Application S" and Mortise's Appendix D generate. Requests go by schedule, whether or not
//! earlier responses have arrived, and the server answers at once.
//!
//! | what | the paper says | we draw |
//! |---|---|---|
//! | response | more than 70 % below 10 KB | 96.6 %: log-normal, median 5 KB, σ = 1 |
//! | | 3.4 % hold more than 60 % of the bytes | 3.4 %: Pareto, α = 1.2, 120 KB to 5 MB |
//! | request | over 80 % below 10 KB | log-normal, median 2 KB, σ = 1.7, up to 100 KB |
//! | gap | 38.4 % are 0 | 38.4 %: 0 |
//! | | 80 % below 44 ms | 41.6 %: uniform, 0 to 44 ms |
//! | | none above 1 s (filtered out as clicks) | 20 %: log-uniform, 44 ms to 1 s |
//! | connection | lasts 206 s on average | 206 s, or exponential with that mean |
//!
//! What we draw has 73 % of the responses below 10 KB, 62 % of the bytes in the largest 3.4 %, a mean
//! response of 21 KB, and 2.4 Mbit/s within a burst. The pauses between clicks are our own choice; see
//! [`Clicks`].

use trimtab_units::{Bytes, Duration, Time};

use crate::draw::Draw;
use crate::requests::{Requests, response_methods};
use crate::{AppInfo, Application, Command, Concurrency, Form, Recipe, Setting};

/// Settings of [`Web`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebConfig {
    /// Seed of all that is drawn. Default: 0.
    pub seed: u64,
    /// How long the client goes on sending requests. `None` draws an exponential time with a mean of
    /// 206 s. Default: 206 s, so that runs with different seeds compare.
    pub length: Option<Duration>,
    /// The user's pauses. `None` for one long burst, as in the emulations of both papers. Default:
    /// [`Clicks::default`].
    pub clicks: Option<Clicks>,
    /// How responses share the connection. Default: [`Concurrency::Streams`] (Floo §4.1 runs on QUIC).
    pub concurrency: Concurrency,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            length: Some(LENGTH_MEAN),
            clicks: Some(Clicks::default()),
            concurrency: Concurrency::Streams,
        }
    }
}

/// A user who pauses between clicks. Floo filters these pauses out and gives only their least length,
/// 1 s, so the rest is our choice: a click brings a geometric number of requests, and the pause before
/// the next one, counted from the last request, is log-uniform between 1 s and `pause_max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clicks {
    /// Mean number of requests per click, at least 1. Default: 20.
    pub requests: f64,
    /// Longest pause, at least 1 s. Default: 20 s, as for Mortise's workload
    /// ([`CdnDistribution`](crate::CdnDistribution)).
    pub pause_max: Duration,
}

impl Default for Clicks {
    fn default() -> Self {
        Self { requests: 20.0, pause_max: Duration::from_secs(20) }
    }
}

/// Floo §4.2.
const LENGTH_MEAN: Duration = Duration::from_secs(206);
/// A message is at least this long: it has a header.
const MESSAGE_MIN: f64 = 100.0;

/// So many gaps are drawn until one is longer than the time since the last request. In a pause of 19.9
/// s, of at most 20 s, one of 12,000 is; where none is, the client asks when it would have.
const REDRAWS: usize = 100_000;

/// A client of a mobile web service.
#[derive(Clone, Debug)]
pub struct Web {
    config: WebConfig,
    gaps: Draw,
    sizes: Draw,
    /// When the session began, at the first poll, and when it ends.
    span: Option<(Time, Time)>,
    /// When the next request is due.
    due: Time,
    requests: Requests,
}

impl Web {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "web",
        about: "Web pages: several responses at once",
        source: "Floo, section 4.2 and Fig. 5; Mortise, Appendix D",
        label: "web pages",
        users: "readers of web pages",
        experience: "Readers open pages made of several responses at once. Experience is how soon they \
                     are complete (Mortise, eq. 22): the negative of the mean completion time, so \
                     nearer to zero is better.",
        log: false,
        media: false,
        settings: &[Setting {
            name: "pauses",
            form: Form::Flag,
            default: "true",
            about: "whether the user pauses between clicks, up to 20 s; false makes one long burst",
        }],
        models: &["web", "download", "conference", "conference-printed"],
        factors: &["R", "Rbar"],
        make: |settings| {
            let default = WebConfig::default();
            let clicks = default.clicks.filter(|_| settings.flag("pauses") != Some(false));
            Ok(Recipe::new(move |session| {
                let (seed, length) = (session.seed, Some(session.length));
                Self::new(&WebConfig { seed, length, clicks, ..default }).into()
            }))
        },
    };

    /// A client that has sent nothing yet.
    pub fn new(config: &WebConfig) -> Self {
        Self {
            config: *config,
            gaps: Draw::new(config.seed, 4),
            sizes: Draw::new(config.seed, 5),
            span: None,
            due: Time::ZERO,
            requests: Requests::default(),
        }
    }

    /// When the next request is due, drawn anew: given that it was not due by `now`.
    fn redraw_due(&mut self, now: Time) {
        let Some(last) = self.requests.records().last() else { return };
        let (from, clicks) = (last.scheduled_at, self.config.clicks);
        let mut drawn = (0..REDRAWS).map(|_| from + gap(&mut self.gaps, clicks));
        let due = drawn.find(|&due| due > now);
        self.due = due.unwrap_or(self.due);
    }

    fn begin(&mut self, now: Time) {
        let length = self.config.length.unwrap_or_else(|| {
            let mut draw = Draw::new(self.config.seed, 6);
            LENGTH_MEAN.mul_f64(draw.exponential())
        });
        self.span = Some((now, now + length));
        self.due = now;
    }

    /// Whether the next request comes within the session. The first always does.
    fn wants_more(&self) -> bool {
        self.span.is_none_or(|(start, end)| self.due < end || self.due == start)
    }
}

/// The time between two requests.
fn gap(draw: &mut Draw, clicks: Option<Clicks>) -> Duration {
    if let Some(clicks) = clicks
        && draw.unit() * clicks.requests.max(1.0) < 1.0
    {
        let longest = clicks.pause_max.as_millis_f64().max(1000.0);
        return Duration::from_millis_f64(draw.log_uniform(1000.0, longest));
    }
    Duration::from_millis_f64(match draw.unit() {
        p if p < 0.384 => 0.0,
        p if p < 0.80 => draw.uniform(0.0, 44.0),
        _ => draw.log_uniform(44.0, 1000.0),
    })
}

fn response_size(draw: &mut Draw) -> Bytes {
    let size =
        if draw.unit() < 0.034 { draw.pareto(1.2, 120e3, 5e6) } else { draw.log_normal(5e3, 1.0) };
    Bytes::from_f64(size.max(MESSAGE_MIN))
}

fn request_size(draw: &mut Draw) -> Bytes {
    Bytes::from_f64(draw.log_normal(2e3, 1.7).clamp(MESSAGE_MIN, 100e3))
}

impl Application for Web {
    fn poll(&mut self, now: Time) -> Option<Command> {
        if self.span.is_none() {
            self.begin(now);
        }
        if self.due > now || !self.wants_more() {
            return None;
        }
        let size = response_size(&mut self.sizes);
        let upload = request_size(&mut self.sizes);
        let id = self.requests.send(now, self.due, size);
        let gap = gap(&mut self.gaps, self.config.clicks);
        self.due += gap;
        Some(Command::Request { id, size, upload })
    }

    fn next_timer(&self) -> Option<Time> {
        self.wants_more().then_some(self.due)
    }

    fn is_finished(&self) -> bool {
        self.span.is_some() && !self.wants_more() && self.requests.is_idle()
    }

    fn concurrency(&self) -> Concurrency {
        self.config.concurrency
    }

    fn redraw(&mut self, now: Time, seed: u64) {
        (self.gaps, self.sizes) = (Draw::new(seed, 4), Draw::new(seed, 5));
        self.redraw_due(now);
    }

    response_methods!(self.requests, logged);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, RequestId};

    const DRAWS: usize = 20_000;

    fn share(of: &[f64], f: impl Fn(f64) -> bool) -> f64 {
        of.iter().filter(|&&x| f(x)).count() as f64 / of.len() as f64
    }

    #[test]
    fn responses_meet_the_published_points() {
        // The share of bytes in a heavy tail varies from sample to sample: five samples.
        for seed in 0..5 {
            let mut draw = Draw::new(seed, 5);
            let mut sizes: Vec<f64> =
                (0..DRAWS).map(|_| response_size(&mut draw).as_f64()).collect();
            let small = share(&sizes, |s| s < 10e3);
            assert!((small - 0.730).abs() < 0.013, "below 10 KB: {small}");
            sizes.sort_by(|a, b| b.total_cmp(a));
            let largest: f64 = sizes[..DRAWS * 34 / 1000].iter().sum();
            let bytes = largest / sizes.iter().sum::<f64>();
            assert!((0.60..0.70).contains(&bytes), "bytes in the largest 3.4 %: {bytes}");
            assert!(sizes[0] <= 5e6 && sizes[DRAWS - 1] >= 100.0);
        }
    }

    #[test]
    fn requests_are_small() {
        let mut draw = Draw::new(1, 5);
        let sizes: Vec<f64> = (0..DRAWS).map(|_| request_size(&mut draw).as_f64()).collect();
        let small = share(&sizes, |s| s < 10e3);
        assert!((small - 0.828).abs() < 0.011, "below 10 KB: {small}");
        assert!(sizes.iter().all(|s| (100.0..=100e3).contains(s)));
    }

    #[test]
    fn gaps_within_a_burst_meet_the_published_points() {
        let mut draw = Draw::new(1, 4);
        let ms: Vec<f64> = (0..DRAWS).map(|_| gap(&mut draw, None).as_millis_f64()).collect();
        assert!((share(&ms, |g| g == 0.0) - 0.384).abs() < 0.014);
        assert!((share(&ms, |g| g < 44.0) - 0.80).abs() < 0.012);
        assert!(ms.iter().all(|&g| g <= 1000.0));
    }

    #[test]
    fn pauses_come_between_clicks() {
        let mut draw = Draw::new(2, 4);
        let clicks = Clicks::default();
        let ms: Vec<f64> =
            (0..DRAWS).map(|_| gap(&mut draw, Some(clicks)).as_millis_f64()).collect();
        assert!((share(&ms, |g| g > 1000.0) - 0.05).abs() < 0.007, "one in twenty");
        assert!(ms.iter().all(|&g| g <= 20_000.0));
        let within: Vec<f64> = ms.iter().copied().filter(|&g| g <= 1000.0).collect();
        assert!((share(&within, |g| g < 44.0) - 0.80).abs() < 0.012, "bursts stay as they are");
    }

    /// Runs a session in which every response takes 100 ms.
    fn session(config: &WebConfig, start: Time) -> (Web, Vec<crate::RequestRecord>) {
        let mut app = Web::new(config);
        let mut now = start;
        let mut arrivals: Vec<(Time, RequestId)> = Vec::new();
        while !app.is_finished() {
            for &(_, id) in arrivals.iter().filter(|&&(at, _)| at <= now) {
                app.on_complete(now, id);
            }
            arrivals.retain(|&(at, _)| at > now);
            while let Some(Command::Request { id, .. }) = app.poll(now) {
                arrivals.push((now + Duration::from_millis(100), id));
            }
            match arrivals.iter().map(|&(at, _)| at).chain(app.next_timer()).min() {
                Some(next) => now = next,
                None => break,
            }
        }
        let Outcome::Requests(records) = app.outcome(now) else { panic!() };
        (app, records)
    }

    #[test]
    fn a_session_keeps_to_its_length_and_schedule() {
        let start = Time::from_secs(3);
        let (app, records) = session(&WebConfig::default(), start);
        assert!(app.is_finished());
        assert!(records.iter().all(|r| r.sent_at == r.scheduled_at && r.completed_at.is_some()));
        let last = records.last().unwrap().sent_at.since(start);
        assert!(last < LENGTH_MEAN && last > Duration::from_secs(180));
        assert_eq!(session(&WebConfig::default(), start).1, records, "same seed, same session");
        let other = WebConfig { seed: 1, ..WebConfig::default() };
        assert_ne!(session(&other, start).1, records);
    }

    /// 44 ms after the last request the next comes log-uniformly up to a second, so half of them come
    /// by 210 ms.
    #[test]
    fn a_future_drawn_anew_begins_where_the_past_ends() {
        let mut app = Web::new(&WebConfig { clicks: None, ..WebConfig::default() });
        while app.due < Time::from_secs(20) {
            let due = app.due;
            while app.poll(due).is_some() {}
        }
        let past = app.requests.records().to_vec();
        let last = past.last().unwrap().scheduled_at;
        let now = last + Duration::from_millis(44);
        let redrawn = |seed| {
            let mut fork = app.clone();
            fork.redraw(now, seed);
            assert_eq!(fork.requests.records(), past);
            fork
        };
        let dues: Vec<f64> =
            (0..400).map(|seed| redrawn(seed).due.since(last).as_millis_f64()).collect();
        assert!(dues.iter().all(|&due| due > 44.0 && due <= 1000.0));
        assert!((share(&dues, |due| due < 209.8) - 0.5).abs() < 0.1);
        let sizes = |seed| {
            let mut fork = redrawn(seed);
            let due = fork.due;
            fork.poll(due).map(|Command::Request { size, .. }| size)
        };
        assert_eq!(sizes(1), sizes(1));
        assert_ne!(sizes(1), sizes(2));
    }

    #[test]
    fn drawn_lengths_have_the_published_mean() {
        let n = 2000;
        let total: f64 = (0..n)
            .map(|seed| {
                let mut app = Web::new(&WebConfig { seed, length: None, ..WebConfig::default() });
                app.begin(Time::ZERO);
                app.span.map_or(0.0, |(_, end)| end.as_millis_f64() / 1000.0)
            })
            .sum();
        // Four standard errors of an exponential: 206 / sqrt(2000) · 4 = 18.
        assert!((total / n as f64 - 206.0).abs() < 18.5, "mean length {} s", total / n as f64);
    }
}
