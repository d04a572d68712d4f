//! What estimator, pacer and encoder have in common.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trimtab_stack::units::{self, Bytes, Rate, Time};
use trimtab_stack::{Repairs, SharedPath};

use crate::bitrates::Bitrates;
use crate::factory::{PACKET, PAYLOAD};

/// How much faster than the target packets leave where the algorithm has no pace (libwebrtc,
/// `PacingController`, `kDefaultPaceMultiplier`).
pub(crate) const PACE_FACTOR: f64 = 2.5;
/// What may leave at once, by the time that it takes at the pace (libwebrtc,
/// `PacerConfig::kDefaultTimeInterval`): most frames do.
const BURST: Duration = Duration::from_millis(40);
/// A controller of rates whose pace is less than twice its target means to spread frames: so much of
/// that leaves at once. Ours: what timers resolve.
const BURST_SMOOTH: Duration = Duration::from_millis(1);
/// The longest that the pacer may take for what waits (libwebrtc, `kMaxExpectedQueueLength`).
const QUEUE_MAX: units::Duration = units::Duration::from_secs(2);
/// What waits in the pacer longer than a frame at the target is taken off what the encoder gets …
const BACKLOG: units::Duration = units::Duration::from_millis(40);
/// … so that it is gone after this. libwebrtc pushes back likewise where a window is full
/// (`CongestionWindowPushbackController`); the times are ours.
const RELIEF: units::Duration = units::Duration::from_millis(250);
/// So many probes may be under way.
const PROBES_MAX: usize = 16;

/// One sender.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) path: SharedPath,
    pub(crate) bitrates: Bitrates,
    /// When it began.
    epoch: Instant,
    books: Mutex<Books>,
}

/// What estimator and pacer keep for each other.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// How many packets left. The next one gets this number, and so it does in the history of
    /// `rtc-interceptor`, which is the next in the chain.
    pub(crate) sent: u64,
    /// When a packet left first of those on which no feedback came.
    pub(crate) waiting_since: Option<Instant>,
    /// Bytes that wait in the pacer.
    pub(crate) queued: Bytes,
    /// What is spent on packets that were asked for again.
    pub(crate) repairs: Repairs,
    /// What the probe that waits needs beyond what waits in the pacer.
    pub(crate) wanted: Wanted,
    /// Packets of probes, by the numbers from the first to the last.
    probes: VecDeque<Span>,
}

/// What a probe needs to be sent: so many bytes on the wire, and so many packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) bytes: Bytes,
    pub(crate) packets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
    id: u32,
}

impl Books {
    /// The packet that leaves now belongs to this probe.
    pub(crate) fn mark_probe(&mut self, id: u32) {
        let number = self.sent;
        match self.probes.back_mut() {
            Some(span) if span.id == id => span.last = number,
            _ => {
                if self.probes.len() == PROBES_MAX {
                    self.probes.pop_front();
                }
                self.probes.push_back(Span { first: number, last: number, id });
            }
        }
    }

    /// The probe of a packet.
    pub(crate) fn probe_of(&self, number: u64) -> Option<u32> {
        let of = |span: &&Span| (span.first..=span.last).contains(&number);
        self.probes.iter().find(of).map(|span| span.id)
    }
}

impl Shared {
    pub(crate) fn new(path: SharedPath, bitrates: Bitrates, now: Instant) -> Self {
        Self { path, bitrates, epoch: now, books: Mutex::default() }
    }

    /// The time since it began.
    fn time(&self, now: Instant) -> Time {
        let since = now.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Whether a packet that was asked for may leave again.
    pub(crate) fn may_repair(&self, now: Instant, bytes: Bytes) -> bool {
        let target = self.target();
        self.books().repairs.ask(self.time(now), bytes, target)
    }

    /// A packet of video leaves.
    pub(crate) fn on_video(&self, now: Instant, bytes: Bytes, again: bool) {
        self.books().repairs.on_sent(self.time(now), bytes, again);
    }

    /// The data, also after a panic elsewhere: every change is complete when the lock is released.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn target(&self) -> Rate {
        self.bitrates.clamp(self.path.lock().target())
    }

    /// How much of the pace may leave at once.
    pub(crate) fn burst(&self) -> Duration {
        let path = self.path.lock();
        match (path.pacing_rate(), path.own_target()) {
            (Some(pace), Some(target)) if pace < target.mul_f64(2.0) => BURST_SMOOTH,
            _ => BURST,
        }
    }

    /// The rate at which packets leave while so many bytes wait.
    pub(crate) fn pace(&self, queued: Bytes) -> Rate {
        let given = self.path.lock().pacing_rate();
        let rate = given.unwrap_or_else(|| self.target().mul_f64(PACE_FACTOR));
        rate.max(self.bitrates.least).max(queued / QUEUE_MAX)
    }
}

/// What an encoder follows. Cheap to clone; every method takes a lock for some microseconds and may
/// be called from any thread.
#[derive(Clone, Debug)]
pub struct Target(pub(crate) Arc<Shared>);

impl Target {
    /// The bitrate to encode at, all headers included: 58 bytes of each packet. It is in the range of
    /// [`Bitrates`], always. It is lower than the algorithm's target while packets wait in the pacer
    /// for more than 40 ms, and by the share of what is sent again, at most by half.
    pub fn bitrate(&self) -> Rate {
        let target = self.0.target();
        let (queued, repairs) = {
            let books = self.0.books();
            (books.queued, books.repairs.share())
        };
        let relief = (queued - target * BACKLOG) / RELIEF;
        self.0.bitrates.clamp(Some((target - relief).mul_f64(1.0 - repairs)))
    }

    /// How long the pacer would take at the target for what waits in it. An encoder that leaves
    /// out frames while this is long keeps the delay short.
    pub fn backlog(&self) -> Duration {
        let queued = self.0.books().queued;
        Duration::from_nanos((queued / self.0.target()).as_nanos())
    }

    /// So many bytes behind the next frame, of which this is the size, would let a probe of the path
    /// leave with it. A sender may append them as filler that a decoder passes over, e.g. H.264's
    /// NAL units of type 12, in packets of 1200 bytes. Zero while no probe waits. Probes are what
    /// finds capacity fast; an algorithm grows without them as well.
    pub fn filler(&self, frame: Bytes) -> Bytes {
        let Wanted { bytes, packets } = self.0.books().wanted;
        let own = frame.get().div_ceil(PAYLOAD.into());
        let full = Bytes::new(PACKET.into());
        let on_wire = frame + (full - Bytes::new(PAYLOAD.into())) * own;
        let by_bytes = (bytes - on_wire).get().div_ceil(full.get());
        Bytes::new(PAYLOAD.into()) * by_bytes.max(packets.saturating_sub(own))
    }
}
