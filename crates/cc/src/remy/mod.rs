//! RemyCC: a table that a program has made says what an acknowledgement does to window and pacing.
//!
//! Read first: Winstein and Balakrishnan, "TCP ex Machina: Computer-Generated Congestion Control",
//! SIGCOMM 2013, §4.1 and §4.2. [`Memory`] is what a sender remembers, [`Whisker`] a rule, [`Table`]
//! the rules. The crate `trimtab-steer` reads tables from the files that Remy writes (`.dna`).
//! Where the paper is silent, this does as the authors' program (`src/memory.cc`, `src/rat.cc`,
//! `src/whisker.hh`). Where it differs:
//!
//! * An acknowledgement of several packets counts as so many, with equal gaps. The authors' receiver
//!   acknowledges each packet.
//! * Arrivals are those of acknowledgements at the sender, as in the paper. The authors' simulator
//!   has those of packets at the receiver.
//! * The pause between packets is the pacing rate, which the transport keeps.
//! * The window that is used is never below the transport's least one. A rule may shrink the table's
//!   own to zero, as there.
//! * Where no rule fits, window and pacing stay. The authors' program ends.
//! * A timeout and an idle sender begin anew, as the paper's "on" periods do. Losses change nothing
//!   (§4.1).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`). No rule knows them.

mod table;

pub use table::{AXES, Domain, MEMORY_MAX, Table, TableError, WINDOW_MAX, Whisker};

use alloc::sync::Arc;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Marked, Phase, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "remycc";
/// What a new gap takes of the averages (§4.1: 1/8), and of the slow one (`memory.cc`: 1/256).
const GAIN: f64 = 1.0 / 8.0;
const GAIN_SLOW: f64 = 1.0 / 256.0;
/// An acknowledgement counts as so many packets at most: by then the averages have forgotten all else.
const PACKETS_MAX: u64 = 256;

/// What a sender remembers (§4.1), in ms but for the ratio. All is zero before the second packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    axes: [f64; AXES],
    /// When the last packet was sent and acknowledged.
    last: Option<(Time, Time)>,
    least: Duration,
}

impl Memory {
    /// The values by which a rule is found: the average gap between the sending of acknowledged
    /// packets, that between acknowledgements, the ratio of the last round-trip time to the least
    /// one, the slow average of the second, the last round-trip time above the least one, and the
    /// second times the packets that an acknowledgement is ahead of the last.
    pub fn axes(&self) -> &[f64; AXES] {
        &self.axes
    }

    /// For how many packets an acknowledgement counts.
    fn packets(&self, ack: &Ack, mss: Bytes) -> u64 {
        match self.last {
            Some(_) => ack.acked.get().div_ceil(mss.get().max(1)).clamp(1, PACKETS_MAX),
            None => 1,
        }
    }

    /// `Memory::packets_received()`, for packet `number` of those of an acknowledgement.
    fn receive(&mut self, rtt: Duration, gaps: (f64, f64), number: u64) {
        let [send, received, _, slow, ..] = self.axes;
        let send = (1.0 - GAIN) * send + GAIN * gaps.0;
        let received = (1.0 - GAIN) * received + GAIN * gaps.1;
        let slow = (1.0 - GAIN_SLOW) * slow + GAIN_SLOW * gaps.1;
        self.least = self.least.min(rtt);
        let above = (rtt - self.least).as_millis_f64();
        let ratio = rtt.as_millis_f64() / self.least.as_millis_f64().max(1e-6);
        self.axes = [send, received, ratio, slow, above, received * number as f64];
    }
}

knobs! {
    /// The value of its knob.
    struct Values {
        cap: f64 = 1_000_000.0, 4.0..=1_000_000.0, "packets",
            "no window is larger, whatever the table says";
    }
}

/// The RemyCC state machine.
#[derive(Clone, Debug)]
pub struct Remy {
    config: Config,
    values: Values,
    table: Arc<Table>,
    memory: Memory,
    /// In packets.
    window: u32,
    /// The least pause between packets in ms.
    pause: f64,
    ceiling: Ceiling,
}

impl Remy {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by this table.
    pub fn new(config: &Config, table: Arc<Table>) -> Self {
        let mut new = Self {
            config: *config,
            values: Values::default(),
            table,
            memory: Memory::default(),
            window: 0,
            pause: 0.0,
            ceiling: Ceiling::default(),
        };
        new.begin();
        new
    }

    /// What the connection remembers.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// `Rat::reset()`: the first window is that of the rule for an empty memory.
    fn begin(&mut self) {
        self.memory = Memory::default();
        (self.window, self.pause) = (0, 0.0);
        self.apply();
    }

    /// Does as the rule for the present memory says.
    fn apply(&mut self) {
        if let Some(whisker) = self.table.find(&self.memory.axes) {
            self.window = whisker.window(self.window);
            self.pause = whisker.pause_ms;
        }
    }

    fn mss(&self) -> Bytes {
        self.config.mss.max(Bytes::new(1))
    }

    fn set_bytes(&mut self, window: Bytes) {
        self.window = (window.get() / self.mss().get()).min(u64::from(WINDOW_MAX)) as u32;
    }
}

impl CongestionControl for Remy {
    fn on_ack(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.window() >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        let Some(rtt) = ack.rtt else { return };
        let packets = self.memory.packets(ack, self.config.mss);
        match self.memory.last {
            None => {
                self.memory.least = rtt;
                self.apply();
            }
            Some((sent, received)) => {
                let gap = |now: Time, last: Time| now.since(last).as_millis_f64() / packets as f64;
                let gaps = (gap(ack.newest_sent_at, sent), gap(ack.now, received));
                for number in 1..=packets {
                    self.memory.receive(rtt, gaps, number);
                    self.apply();
                }
            }
        }
        self.memory.last = Some((ack.newest_sent_at, ack.now));
    }

    fn on_loss(&mut self, _loss: &crate::Loss) {}

    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window(), self.config.mss);
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.begin();
    }

    fn on_mtu(&mut self, limits: &Config) {
        let window = self.mss() * u64::from(self.window);
        self.config = *limits;
        self.set_bytes(window);
        self.ceiling.on_mtu(self.config.mss);
    }

    fn on_idle(&mut self, _idle: &Idle) {
        self.begin();
    }

    fn window(&self) -> Bytes {
        let packets = u64::from(self.window).min(self.values.cap as u64);
        (self.mss() * packets).min(self.ceiling.get()).max(self.config.min_window)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let pause = Duration::from_secs_f64(self.pause / 1000.0);
        (!pause.is_zero()).then(|| self.mss() / pause)
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values);
}

impl Migrate for Remy {
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_window(self.window(), path)
    }

    /// The memory is its own, and begins empty.
    fn take_over(&mut self, from: &HandOver) {
        self.inherit(from.window, from.srtt);
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.set_bytes(window);
    }
}

#[cfg(test)]
mod tests;
