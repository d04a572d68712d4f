//! Sessions of players: from the data of their requests to statistics of each interval.
//!
//! What follows from version 1 of CMCD, and what does not:
//!
//! * **Bitrate**: what was asked for, weighted by how long it plays. What was shown may be less,
//!   where a player gives requests up.
//! * **Stalls**: a request shows *whether* playback stalled since the one before it (`bs`), and not
//!   how often or how long.
//! * **Stalled time**: between two requests of one track as much media was played as the buffer
//!   lost: `bl` of the first and its `d`, less `bl` of the second. The rest of the time between
//!   both, playback stood still, and counts as stalled where the second has `bs`. `bl` is rounded
//!   to 100 ms, so each stall is known to 100 ms. A pause by the viewer in the same gap counts,
//!   too, up to a minute. A stall that ends the session is not known, since no request follows it.
//! * **Startup**: no key has it. `su` means that playback has not begun when a request is made, so
//!   the first request of media without it is an upper limit: until then from the first request of
//!   the session. It is as long as a download too large at most, and more where a player loads
//!   before the viewer asks it to play.
//!
//! Where a player also sends reports (version 2), these show what was played and not what was asked
//! for, each stall, and the startup itself. Then they count, and not the requests.

use std::collections::BTreeMap;

use trimtab_fleet_client::edge::{Interval, Key};
use trimtab_units::{Duration, Rate, Time};

use crate::viewing::{Shown, Viewing, startup};
use crate::{Cmcd, Event, ObjectType};

/// A session without a request for so long is forgotten.
pub const IDLE: Duration = Duration::from_secs(600);
/// Sessions at a time, some 600 bytes each. Those beyond are not counted.
pub const SESSIONS_MAX: usize = 100_000;
/// Parts of one session that wait for their intervals to be over.
const SLOTS_MAX: usize = 8;
/// No stall is believed to be longer: the viewer has gone, or has paused.
const STALL_MAX: Duration = Duration::from_secs(60);
/// What no player of today asks for, or has in its buffer.
pub(crate) const BITRATE_MAX: Rate = Rate::from_bits_per_sec(1_000_000_000);
pub(crate) const MEDIA_MAX: Duration = Duration::from_secs(3600);

/// One request, with what the player sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// When it came, since 1970.
    pub started: Time,
    /// When it was served, since 1970.
    pub ended: Time,
    /// What the player sent.
    pub data: &'a Cmcd,
}

/// Where a request counts: an interval of the service, and what was in force when it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// The interval.
    pub interval: Interval,
    /// The version of the configuration.
    pub version: u64,
    /// When the interval ends, since 1970.
    pub ends: Time,
}

/// What one session shows of one slot. What it does not show is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Mean bitrate of the video that was asked for, or of the audio without video.
    pub bitrate: Option<Rate>,
    /// Share of the time that playback stood still, 0 to 1; `None` where the player does not send
    /// its buffer.
    pub rebuffering: Option<f64>,
    /// Requests before which playback had stalled.
    pub stalls: u64,
    /// From the first request to the first that playback did not wait for: at most so long.
    pub startup: Option<Duration>,
}

/// The last request of a track.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Time,
    buffer: Option<Duration>,
    duration: Option<Duration>,
    /// Speed of playback.
    speed: f64,
}

/// What the requests of one track show of one slot.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    /// Of those whose duration is known: seconds, and Mbit/s times seconds.
    seconds: f64,
    megabits: f64,
    /// Of all with a bitrate: their number, and the sum of Mbit/s.
    rated: u64,
    mbps: f64,
    stalls: u64,
    played: Duration,
    stalled: Duration,
    /// There was a stall of unknown length.
    is_blind: bool,
}

/// Video or both, and audio.
type Tracks<T> = [T; 2];

#[derive(Clone, Debug, Default)]
struct Part {
    tracks: Tracks<Sums>,
    startup: Option<Duration>,
    /// What reports show; none where there was none.
    shown: Option<Box<Shown>>,
}

#[derive(Clone, Debug)]
struct Session {
    /// The first request, while playback has not begun; none where it had when it was first seen.
    begins: Option<Time>,
    seen: Time,
    last: Tracks<Option<Last>>,
    /// Whether a request that is for no media said that playback had stalled: hls.js sends `bs` with
    /// the init segment of the quality that it changes to. The next one for media counts it.
    starved: Tracks<bool>,
    /// Of a player that sends reports.
    viewing: Option<Box<Viewing>>,
    /// A few at most: of the intervals and versions that are not over.
    parts: Vec<(Slot, Part)>,
}

/// Sessions by aggregate and `sid`, and what they show of slots that are not over yet. No clock.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    of: BTreeMap<Key, BTreeMap<String, Session>>,
    len: usize,
    turned_away: u64,
}

impl Sessions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Requests that were not counted, since there are [`SESSIONS_MAX`] other sessions.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Takes in a request of an aggregate; `None` where it is unknown what was in force. A request
    /// without `sid` is of no session, and left out.
    pub fn on_request(&mut self, key: &Key, request: Request<'_>, slot: Option<Slot>) {
        let Some(id) = &request.data.session else { return };
        let Some(session) = self.session(key, id, || Session::new(request)) else { return };
        session.on_request(request, slot);
    }

    /// Takes in a report of an aggregate that arrived at a time. `slot` is where counts what
    /// happened at another: at the same, or before where the report was on its way for long.
    pub fn on_event(
        &mut self,
        key: &Key,
        event: &Event,
        arrived: Time,
        slot: impl FnOnce(Time) -> Option<Slot>,
    ) {
        let new = || Session::seen_at(arrived);
        let Some(session) = self.session(key, &event.session, new) else { return };
        session.on_event(event, arrived, slot);
    }

    fn session(
        &mut self,
        key: &Key,
        id: &str,
        new: impl FnOnce() -> Session,
    ) -> Option<&mut Session> {
        let is_known = self.of.get(key).is_some_and(|of| of.contains_key(id));
        if !is_known && self.len == SESSIONS_MAX {
            self.turned_away += 1;
            return None;
        }
        self.len += usize::from(!is_known);
        let of = self.of.entry(key.clone()).or_default();
        Some(of.entry(id.to_owned()).or_insert_with(new))
    }

    /// What sessions showed of the slots that ended `wait` or longer ago, which are over for these
    /// books. Sessions without a request for [`IDLE`] are forgotten.
    pub fn take_over(&mut self, now: Time, wait: Duration) -> Vec<(Key, Slot, Statistics)> {
        let mut over = Vec::new();
        for (key, sessions) in &mut self.of {
            sessions.retain(|_, session| {
                let has_video = session.last[0].is_some();
                session.parts.retain(|(slot, part)| {
                    let is_over = now >= slot.ends + wait;
                    if let Some(shown) = is_over.then(|| part.statistics(has_video)).flatten() {
                        over.push((key.clone(), *slot, shown));
                    }
                    !is_over
                });
                let stays = now.since(session.seen) < IDLE || !session.parts.is_empty();
                self.len -= usize::from(!stays);
                stays
            });
        }
        self.of.retain(|_, sessions| !sessions.is_empty());
        over
    }
}

/// The track of a request; none where it is for no media.
fn track(data: &Cmcd) -> Option<usize> {
    match data.object {
        Some(ObjectType::Video | ObjectType::Muxed) => Some(0),
        Some(ObjectType::Audio) => Some(1),
        None if data.bitrate.is_some() || data.duration.is_some() => Some(0),
        _ => None,
    }
}

impl Session {
    fn new(request: Request<'_>) -> Self {
        let is_begin = request.data.is_urgent || track(request.data).is_none();
        Self { begins: is_begin.then_some(request.started), ..Self::seen_at(request.ended) }
    }

    fn seen_at(seen: Time) -> Self {
        Self {
            begins: None,
            seen,
            last: [None; 2],
            starved: [false; 2],
            viewing: None,
            parts: Vec::new(),
        }
    }

    fn on_event(&mut self, event: &Event, arrived: Time, slot: impl FnOnce(Time) -> Option<Slot>) {
        self.seen = self.seen.max(arrived);
        let between = match &mut self.viewing {
            Some(viewing) => viewing.on_event(event, arrived),
            viewing => {
                *viewing = Some(Box::new(Viewing::new(event, arrived)));
                Some((arrived, Shown::started(startup(event))))
            }
        };
        let Some((at, shown)) = between.filter(|(_, shown)| *shown != Shown::default()) else {
            return;
        };
        let Some(part) = slot(at).and_then(|slot| self.part(slot)) else { return };
        part.shown.get_or_insert_default().add(&shown);
    }

    fn on_request(&mut self, request: Request<'_>, slot: Option<Slot>) {
        let data = request.data;
        self.seen = self.seen.max(request.ended);
        let Some(track) = track(data) else {
            if data.is_starved {
                self.starved = [true; 2];
            }
            return;
        };
        let begun = if data.is_urgent { None } else { self.begins.take() };
        let is_starved = std::mem::take(&mut self.starved[track]) || data.is_starved;
        let last = self.last[track];
        let now = Last::of(request, is_starved);
        if last.is_none_or(|last| last.at < now.at) {
            self.last[track] = Some(now);
        }
        let Some(part) = slot.and_then(|slot| self.part(slot)) else { return };
        part.startup = part.startup.or(begun.map(|begun| request.started.since(begun)));
        let gap = last.and_then(|last| last.until(&now, data, is_starved));
        part.tracks[track].add(data, is_starved, gap);
    }

    /// The part of a slot, a new one where there is room.
    fn part(&mut self, slot: Slot) -> Option<&mut Part> {
        let at = self.parts.iter().position(|(of, _)| *of == slot);
        if at.is_none() {
            if self.parts.len() == SLOTS_MAX {
                return None;
            }
            // Most have one or two.
            self.parts.reserve_exact(1);
            self.parts.push((slot, Part::default()));
        }
        let at = at.unwrap_or(self.parts.len() - 1);
        Some(&mut self.parts[at].1)
    }
}

/// What happened between two requests of a track.
#[derive(Clone, Copy, Debug)]
struct Gap {
    played: Duration,
    stalled: Duration,
}

impl Last {
    fn of(request: Request<'_>, is_starved: bool) -> Self {
        let data = request.data;
        let speed = data.playback_rate.unwrap_or(1.0).min(16.0);
        let until = data.deadline.map(|deadline| deadline.mul_f64(speed));
        // Where playback has stalled and the player gives no buffer, none is the least that is
        // known.
        let empty = is_starved.then_some(Duration::ZERO);
        let buffer = data.buffer.or(until).or(empty).filter(|buffer| *buffer <= MEDIA_MAX);
        let duration = data.duration.filter(|duration| *duration <= MEDIA_MAX);
        Self { at: request.started, buffer, duration, speed }
    }

    /// `None` where it is unknown: keys are missing, the viewer paused or sought, or requests
    /// overtook each other.
    fn until(&self, now: &Self, data: &Cmcd, is_starved: bool) -> Option<Gap> {
        let is_sought = data.is_urgent && !is_starved;
        if is_sought || self.speed <= 0.0 || now.at <= self.at {
            return None;
        }
        let all = now.at.since(self.at);
        // Durations end at zero.
        let media = self.buffer? + self.duration? - now.buffer?;
        let played = media.mul_f64(1.0 / self.speed).min(all);
        let stalled = if is_starved { (all - played).min(STALL_MAX) } else { Duration::ZERO };
        Some(Gap { played, stalled })
    }
}

impl Sums {
    fn add(&mut self, data: &Cmcd, is_starved: bool, gap: Option<Gap>) {
        self.requests += 1;
        let bitrate = data.bitrate.filter(|rate| !rate.is_zero() && *rate <= BITRATE_MAX);
        if let Some(mbps) = bitrate.map(Rate::mbps) {
            self.rated += 1;
            self.mbps += mbps;
            let seconds = data.duration.filter(|duration| *duration <= MEDIA_MAX);
            let seconds = seconds.map_or(0.0, Duration::as_secs_f64);
            self.seconds += seconds;
            self.megabits += mbps * seconds;
        }
        self.stalls += u64::from(is_starved);
        match gap {
            Some(gap) => {
                self.played += gap.played;
                self.stalled += gap.stalled;
            }
            None => self.is_blind |= is_starved,
        }
    }

    fn bitrate(&self) -> Option<Rate> {
        let mbps = if self.seconds > 0.0 {
            self.megabits / self.seconds
        } else if self.rated > 0 {
            self.mbps / self.rated as f64
        } else {
            return None;
        };
        Some(Rate::from_mbps(mbps))
    }

    fn rebuffering(&self) -> Option<f64> {
        let all = self.played + self.stalled;
        (!self.is_blind && !all.is_zero()).then(|| self.stalled.ratio(all))
    }
}

impl Part {
    fn statistics(&self, has_video: bool) -> Option<Statistics> {
        let sums = &self.tracks[usize::from(!has_video)];
        let is_any = sums.requests > 0 || self.startup.is_some();
        let requested = is_any.then(|| Statistics {
            bitrate: sums.bitrate(),
            rebuffering: sums.rebuffering(),
            stalls: sums.stalls,
            startup: self.startup,
        });
        let Some(shown) = &self.shown else { return requested };
        let requested = requested.unwrap_or_default();
        Some(Statistics {
            bitrate: shown.bitrate().or(requested.bitrate),
            rebuffering: shown.rebuffering().or(requested.rebuffering),
            stalls: shown.stalls,
            startup: shown.startup.or(requested.startup),
        })
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
