//! Live video: segments on a clock, a target latency, and a playback speed that catches up.
//!
//! The encoder finishes a segment every [`LiveConfig::segment`] and the server offers it then, not
//! earlier. The viewer joins at the target latency behind the live edge and asks for one segment at a
//! time, as soon as it is there. What a stall takes away in latency the player wins back by playing
//! faster: it follows dash.js (`CatchupController`, "Catchup Logic", 2022), whose speed is
//!
//! ```text
//! 1 − c + 2·c / (1 + e^(−5·Δ))    Δ: latency less the target, in seconds; c: the largest change
//! ```
//!
//! and 1 within 2% of the target. Looking at latency every 250 ms, never playing faster while less
//! than half a segment is buffered, and the default c are our own choices: at dash.js' c of 0.5
//! viewers notice. When latency exceeds the target by more than [`LiveConfig::skip`] (dash.js'
//! `maxDrift`, 12 s), the player drops what it has and joins anew at the target.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::draw::Draw;
use crate::player::Player;
use crate::viewing::{Choice, Viewing};
use crate::vod::{ABR, LADDER, abr, ladder};
use crate::{
    Abr, AppError, AppFactors, AppInfo, Application, Command, Concurrency, Form, Outcome, Playback,
    Recipe, RequestId, Setting, Settings, VodConfig,
};

/// Settings of [`Live`].
#[derive(Clone, Debug, PartialEq)]
pub struct LiveConfig {
    /// Bitrates that the stream comes in, lowest first, each above zero. Default: that of
    /// [`VodConfig`].
    pub ladder: Vec<Rate>,
    /// Playing time of a segment, 100 ms to 60 s. Default: 2 s.
    pub segment: Duration,
    /// How far behind the live edge the viewer wants to be, at least one segment. Default: 6 s, the
    /// three segments of HTTP Live Streaming's hold-back (draft-pantos-hls-rfc8216bis, 4.4.3.8).
    pub target: Duration,
    /// The largest change of the playback speed, 0 to 0.5. Default: 0.1.
    pub catchup: f64,
    /// How far latency may exceed the target before the player joins anew. Default: 12 s.
    pub skip: Duration,
    /// How long the viewer watches. Default: 120 s.
    pub length: Duration,
    /// The rule that chooses bitrates. Default: [`Vlc`](crate::Vlc).
    pub abr: Abr,
    /// Seed of the moment within a segment at which the viewer joins. Default: 0.
    pub seed: u64,
    /// Size of a request message. Default: 200 B.
    pub upload: Bytes,
}

impl Default for LiveConfig {
    fn default() -> Self {
        Self {
            ladder: VodConfig::default().ladder,
            segment: Duration::from_secs(2),
            target: Duration::from_secs(6),
            catchup: 0.1,
            skip: Duration::from_secs(12),
            length: Duration::from_secs(120),
            abr: Abr::default(),
            seed: 0,
            upload: Bytes::new(200),
        }
    }
}

/// How often the player looks at its latency.
const TICK: Duration = Duration::from_millis(250);
/// Deviation from the target, as a share of it, that leaves the speed at 1 (dash.js).
const CLOSE: f64 = 0.02;
/// Steepness of the speed over the deviation, per second (dash.js).
const STEEPNESS: f64 = 5.0;
/// How long the stream has been on when the viewer joins; any time beyond the largest target.
const BEFORE: Duration = Duration::from_secs(24 * 3600);

/// The player of a live stream.
#[derive(Clone, Debug)]
pub struct Live {
    config: LiveConfig,
    /// `None` before the first poll.
    session: Option<Session>,
    viewing: Viewing,
}

/// What there is from the first poll on.
#[derive(Clone, Copy, Debug)]
struct Session {
    start: Time,
    /// How much of the stream there was at the start.
    edge: Duration,
    player: Player,
    /// When the player looks at its latency again.
    tick: Time,
    /// The segment to ask for next, counted from the start of the stream.
    next: u64,
    /// Whether the viewer has left, so that nothing more is asked for.
    over: bool,
}

impl Live {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "live",
        about: "Live video: segments on a clock, a target latency",
        source: "dash.js, CatchupController; draft-pantos-hls-rfc8216bis, section 4.4.3.8",
        label: "live video service",
        users: "viewers of a live stream",
        experience: "Viewers watch an event as it happens. Experience per segment is the logarithm of its \
                     bitrate less 2.66 per second of stalling (Mortise, eq. 8), less 0.1 per second \
                     behind the live edge (our own price): higher is better, and it can be negative.",
        log: false,
        media: false,
        settings: &[
            ABR,
            LADDER,
            Setting {
                name: "segment",
                form: Form::Time,
                default: "2s",
                about: "playing time of a segment, 100 ms to 60 s",
            },
            Setting {
                name: "target",
                form: Form::Time,
                default: "6s",
                about: "how far behind the live edge the viewer wants to be, one segment to 10 min",
            },
            Setting {
                name: "catchup",
                form: Form::Number(0.0, 0.5),
                default: "0.1",
                about: "largest change of the playback speed",
            },
            Setting {
                name: "skip",
                form: Form::Time,
                default: "12s",
                about: "how far latency may exceed the target before the player joins anew",
            },
        ],
        models: &["vod", "vod-printed"],
        factors: &["C"],
        make: |settings| {
            let config = Self::configure(settings)?;
            Ok(Recipe::new(move |session| {
                let (length, seed) = (session.length, session.seed);
                Self::with(LiveConfig { length, seed, ..config.clone() }).into()
            }))
        },
    };

    /// A player that has asked for nothing yet.
    ///
    /// # Errors
    /// A setting is outside its range.
    pub fn new(config: LiveConfig) -> Result<Self, AppError> {
        config.check()?;
        Ok(Self::with(config))
    }

    fn with(config: LiveConfig) -> Self {
        Self { config, session: None, viewing: Viewing::default() }
    }

    fn configure(settings: &Settings) -> Result<LiveConfig, AppError> {
        let default = LiveConfig::default();
        let config = LiveConfig {
            ladder: ladder(settings),
            abr: abr(settings),
            segment: settings.time("segment").unwrap_or(default.segment),
            target: settings.time("target").unwrap_or(default.target),
            catchup: settings.number("catchup").unwrap_or(default.catchup),
            skip: settings.time("skip").unwrap_or(default.skip),
            ..default
        };
        config.check()?;
        Ok(config)
    }

    fn begin(&self, now: Time) -> Session {
        // Viewers do not join when a segment begins.
        let within = self.config.segment.mul_f64(Draw::new(self.config.seed, 7).unit());
        let mut session = Session {
            start: now,
            edge: BEFORE + within,
            player: Player::new(now),
            tick: now + TICK,
            next: 0,
            over: false,
        };
        session.next = self.join(&session, now);
        session
    }

    /// The segment from which a viewer who joins at `now` is at the target latency.
    fn join(&self, session: &Session, now: Time) -> u64 {
        let segment = self.config.segment.as_nanos();
        let edge = session.edge_at(now).as_nanos();
        let at_target = edge.saturating_sub(self.config.target.as_nanos()) / segment;
        // It is there: the target is at least a segment.
        at_target.min((edge / segment).saturating_sub(1))
    }

    /// When segment `index` is complete at the server.
    fn offered_at(&self, session: &Session, index: u64) -> Time {
        session.start + (self.config.segment * (index + 1) - session.edge)
    }

    /// How far the picture is behind the live edge. The player has everything up to `next`.
    fn latency(&self, session: &Session, now: Time) -> Duration {
        let playhead = self.config.segment * session.next - session.player.buffer;
        session.edge_at(now) - playhead
    }

    /// Latency while the last requested segment, if it is in download, is not there yet.
    fn latency_at(&self, session: &Session, now: Time) -> Duration {
        let missing = u64::from(self.viewing.is_busy());
        let next = session.next.saturating_sub(missing);
        self.latency(&Session { next, ..*session }, now)
    }

    /// The playback speed at a latency.
    fn speed(&self, latency: Duration, buffer: Duration) -> f64 {
        let (target, c) = (self.config.target.as_secs_f64(), self.config.catchup);
        let deviation = latency.as_secs_f64() - target;
        if deviation.abs() <= CLOSE * target {
            return 1.0;
        }
        let speed = 1.0 - c + 2.0 * c / (1.0 + libm::exp(-STEEPNESS * deviation));
        if buffer < self.config.segment.mul_f64(0.5) { speed.min(1.0) } else { speed }
    }

    /// The session as it will be at `now` if nothing arrives until then.
    fn session_at(&self, now: Time) -> Session {
        let mut session = self.session.unwrap_or_else(|| self.begin(now));
        while session.tick <= now {
            let tick = session.tick;
            session.player.advance(tick);
            session.tick = tick + TICK;
            if session.player.state != Playback::Playing {
                // Nothing moves until a segment arrives; the ticks stay on their grid.
                let ticks = now.since(tick).as_nanos() / TICK.as_nanos();
                session.tick = tick + TICK * (ticks + 1);
                break;
            }
            let latency = self.latency_at(&session, tick);
            session.player.speed = self.speed(latency, session.player.buffer);
        }
        session.player.advance(now);
        session
    }

    fn end(&self, session: &Session) -> Time {
        session.start + self.config.length
    }

    fn request(&mut self, now: Time, session: &mut Session) -> Command {
        session.next += 1;
        let choice = Choice {
            abr: &self.config.abr,
            ladder: &self.config.ladder,
            buffer: session.player.buffer,
            buffer_max: self.config.target,
            chunk_length: self.config.segment,
        };
        let segment = self.config.segment;
        let size = |bitrate: Rate| (bitrate * segment).max(Bytes::new(1));
        self.viewing.request(now, choice, (segment, self.config.upload), size)
    }
}

impl Session {
    /// How much of the stream there is.
    fn edge_at(&self, now: Time) -> Duration {
        self.edge + now.since(self.start)
    }
}

impl LiveConfig {
    /// Checks every setting against its range.
    ///
    /// # Errors
    /// One is outside.
    pub fn check(&self) -> Result<(), AppError> {
        // The ladder, the segment and the rule have the ranges of video on demand.
        let video = VodConfig {
            ladder: self.ladder.clone(),
            chunk_length: self.segment,
            buffer_max: self.segment,
            abr: self.abr,
            ..VodConfig::default()
        };
        video.check()?;
        let range = |name, given: String, wanted: String| {
            Err(AppError::Value { name, app: Live::INFO.name, given, wanted })
        };
        let longest = Duration::from_secs(600);
        if !(self.segment..=longest).contains(&self.target) {
            let wanted = format!("a time from one segment, {}, to {longest}", self.segment);
            return range("target", self.target.to_string(), wanted);
        }
        if !(0.0..=0.5).contains(&self.catchup) {
            return range("catchup", self.catchup.to_string(), "a number from 0 to 0.5".to_owned());
        }
        Ok(())
    }
}

impl Application for Live {
    fn poll(&mut self, now: Time) -> Option<Command> {
        let mut session = self.session_at(now);
        session.over |= now >= self.end(&session);
        let mut command = None;
        if session.over {
            session.player.complete();
        } else if !self.viewing.is_busy() {
            let latency = self.latency(&session, now);
            let joined = self.join(&session, now);
            if latency > self.config.target + self.config.skip && joined > session.next {
                session.next = joined;
                session.player.drop_buffer();
            }
            if now >= self.offered_at(&session, session.next) {
                command = Some(self.request(now, &mut session));
            }
        }
        self.session = Some(session);
        command
    }

    fn next_timer(&self) -> Option<Time> {
        let Some(session) = &self.session else {
            return Some(Time::ZERO);
        };
        if session.over {
            return None;
        }
        let end = self.end(session);
        match self.viewing.is_busy() {
            true => Some(end),
            false => Some(end.min(self.offered_at(session, session.next))),
        }
    }

    fn on_bytes(&mut self, _now: Time, id: RequestId, newly: Bytes) {
        self.viewing.on_bytes(id, newly);
    }

    fn on_complete(&mut self, now: Time, id: RequestId) {
        let mut session = self.session_at(now);
        let latency = Some(self.latency_at(&session, now));
        if self.viewing.complete(now, id, &mut session.player, latency).is_some() {
            session.player.play();
            self.session = Some(session);
        }
    }

    fn is_finished(&self) -> bool {
        self.session.is_some_and(|session| session.over) && !self.viewing.is_busy()
    }

    fn factors(&self, now: Time) -> AppFactors {
        self.viewing.factors(&self.session_at(now).player)
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::InOrder
    }

    fn outcome(&self, now: Time) -> Outcome {
        Outcome::Video(self.viewing.record(&self.session_at(now).player))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VideoRecord;

    fn secs(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }
    fn record(app: &Live, now: Time) -> VideoRecord {
        let Outcome::Video(record) = app.outcome(now) else { panic!() };
        record
    }

    /// Plays over a link on which a segment asked for at `now` takes `takes(now, size)`.
    fn play(config: LiveConfig, takes: impl Fn(Time, Bytes) -> Duration) -> (Live, Time) {
        let mut app = Live::new(config).unwrap();
        let (mut now, mut arrival) = (Time::ZERO, None);
        while !app.is_finished() {
            if let Some((at, id)) = arrival.filter(|&(at, _)| at <= now) {
                app.on_complete(at, id);
                arrival = None;
            }
            while let Some(Command::Request { id, size, .. }) = app.poll(now) {
                arrival = Some((now + takes(now, size), id));
            }
            let next = arrival.map(|(at, _)| at).into_iter().chain(app.next_timer()).min();
            match next {
                Some(next) if next > now => now = next,
                Some(_) | None if app.is_finished() => break,
                other => panic!("{now}: {other:?} does not lead on"),
            }
        }
        (app, now)
    }

    fn latencies(record: &VideoRecord) -> Vec<f64> {
        record.chunks.iter().filter_map(|c| Some(c.latency?.as_secs_f64())).collect()
    }

    #[test]
    fn segments_come_by_the_clock_and_the_viewer_stays_at_the_target() {
        let (app, now) = play(LiveConfig::default(), |_, _| secs(0.2));
        let record = record(&app, now);
        assert_eq!(record.stalls, 0);
        // A stream of 120 s has 60 segments; two or three were there at the start.
        assert!((60..=63).contains(&record.chunks.len()), "{}", record.chunks.len());
        let steady = &record.chunks[4..];
        for pair in steady.windows(2) {
            assert_eq!(pair[1].requested_at.since(pair[0].requested_at), secs(2.0), "on the clock");
        }
        for latency in &latencies(&record)[10..] {
            assert!((latency - 6.0).abs() <= 0.12 + 1e-9, "2% of 6 s: {latency}");
        }
    }

    #[test]
    fn latency_lost_in_a_stall_is_won_back_by_playing_faster() {
        // Nothing arrives from 30 s to 40 s.
        let outage = |now: Time, _| match now {
            now if (30..40).contains(&(now.as_millis() / 1000)) => {
                Time::from_secs(40).since(now) + secs(0.2)
            }
            _ => secs(0.2),
        };
        let (app, now) = play(LiveConfig::default(), outage);
        let seen = record(&app, now);
        assert_eq!(seen.stalls, 1);
        let (worst, last) = latencies(&seen)
            .into_iter()
            .fold((0.0f64, 0.0), |(worst, _), latency| (worst.max(latency), latency));
        let stalled = seen.stall_time.as_secs_f64();
        assert!(stalled > 3.0 && worst > 6.0 + 0.8 * stalled, "{stalled} {worst}");
        assert!((last - 6.0).abs() < 0.2, "back at the target: {last}");
        // Without a change of speed it never comes back.
        let (still, now) = play(LiveConfig { catchup: 0.0, ..LiveConfig::default() }, outage);
        let last = *latencies(&record(&still, now)).last().unwrap();
        assert!((last - 6.0 - stalled).abs() < 1.5, "{last}");
    }

    #[test]
    fn far_behind_the_player_joins_anew() {
        // Nothing arrives from 30 s to 60 s: latency exceeds 6 s + 12 s.
        let outage = |now: Time, _| match now.as_millis() / 1000 {
            30..60 => Time::from_secs(60).since(now) + secs(0.2),
            _ => secs(0.2),
        };
        let (app, now) = play(LiveConfig::default(), outage);
        let record = record(&app, now);
        let after: Vec<_> =
            record.chunks.iter().filter(|c| c.requested_at > Time::from_secs(60)).collect();
        assert!(after[1].latency.unwrap() < secs(8.5), "{:?}", after[1]);
        // 26 s of stall, of which one segment was on its way: 12 of 63 segments were left out.
        assert!((50..=53).contains(&record.chunks.len()), "{}", record.chunks.len());
        assert!(record.played < secs(100.0), "and not shown: {}", record.played);
    }

    #[test]
    fn a_slow_link_lowers_the_bitrate_rather_than_the_clock() {
        let (app, now) = play(LiveConfig::default(), |_, size| size / Rate::from_mbps(1.0));
        let record = record(&app, now);
        let low = record.chunks.iter().filter(|c| c.bitrate <= Rate::from_mbps(0.8)).count();
        assert!(low * 10 > record.chunks.len() * 8, "{low} of {}", record.chunks.len());
    }

    #[test]
    fn when_a_host_looks_does_not_matter() {
        let run = |looks: u64| {
            let mut app = Live::new(LiveConfig::default()).unwrap();
            let Some(Command::Request { id, .. }) = app.poll(Time::ZERO) else { panic!() };
            app.on_complete(Time::from_millis(700), id);
            let end = Time::from_millis(2900);
            (1..=looks).for_each(|i| {
                app.poll(Time::from_millis(700 + 2200 * i / looks));
            });
            (app.session_at(end).player.buffer, record(&app, end).played)
        };
        assert_eq!(run(1), run(50));
    }

    #[test]
    fn speeds_are_those_of_dash_js() {
        let app = Live::new(LiveConfig { catchup: 0.5, ..LiveConfig::default() }).unwrap();
        let speed = |latency| app.speed(secs(latency), secs(4.0));
        assert_eq!(speed(6.0), 1.0);
        assert_eq!(speed(6.1), 1.0, "within 2%");
        // 1 − 0.5 + 1 / (1 + e^(−5·0.2)) = 0.5 + 0.7311.
        assert!((speed(6.2) - 1.231_059).abs() < 1e-6);
        assert!((speed(5.8) - 0.768_941).abs() < 1e-6);
        assert!((speed(20.0) - 1.5).abs() < 1e-6);
        assert_eq!(app.speed(secs(20.0), secs(0.9)), 1.0, "little is buffered");
    }

    #[test]
    fn ranges() {
        let check = |change: fn(&mut LiveConfig)| {
            let mut config = LiveConfig::default();
            change(&mut config);
            config.check().map_err(|e| e.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        let e = check(|c| c.target = secs(1.0)).unwrap_err();
        assert_eq!(e, "`target` of live is 1s: it takes a time from one segment, 2s, to 600s");
        assert!(check(|c| c.catchup = f64::NAN).unwrap_err().contains("from 0 to 0.5"));
        assert!(check(|c| c.segment = secs(0.05)).unwrap_err().contains("100ms to 60s"));
        assert!(check(|c| c.ladder.clear()).unwrap_err().contains("the ladder"));
    }
}
