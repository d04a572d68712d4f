//! BBR in the kernel's hands: its inputs besides those of `trimtab_cc`.
//!
//! When the pacer lets the next packet go, and the state of recovery; and where the gain cycle
//! begins, drawn as the Rust algorithm draws it, from the same seed.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg32;
use trimtab_cc::{Phase, Sent};
use trimtab_units::{Rate, Time};

use super::bbr_core::CoreBbr;
use super::driver::{Acked, Path};
use crate::layout;

/// `enum tt_bbr_recovery`.
const OPEN: u64 = 0;
const REPAIRING: u64 = 1;
const TIMEOUT: u64 = 2;
/// Where the gain cycle may begin: `TT_BBR_PHASES` but one.
const DRAWS: u8 = 7;

pub(super) struct SocketBbr {
    pub(super) core: CoreBbr,
    /// When the pacer lets the next packet go.
    next: Time,
    rng: Pcg32,
    recovery: u64,
}

impl SocketBbr {
    /// With the seed of the Rust algorithm.
    pub(super) fn new(core: CoreBbr, seed: u64) -> Self {
        let rng = Pcg32::seed_from_u64(seed);
        let mut socket = Self { core, next: Time::ZERO, rng, recovery: OPEN };
        socket.draw();
        socket
    }

    fn draw(&mut self) {
        self.core.draw(self.rng.random_range(0..DRAWS).into());
    }

    pub(super) fn draw_if_used(&mut self) {
        if self.core.is_drawn() {
            self.draw();
        }
    }

    /// A packet left at this pacing rate of the Rust side.
    pub(super) fn on_sent(&mut self, sent: &Sent, first: bool, rate: Rate) {
        if first {
            self.core.on_first_sent(sent.now.as_nanos() / 1000, sent.app_limited);
            self.draw_if_used();
        }
        self.next = self.next.max(sent.now) + sent.bytes / rate;
    }

    pub(super) fn on_ack(&mut self, path: &Path, acked: &Acked) {
        if acked.packets > 0 {
            self.recovery = match (acked.ack.in_recovery, self.recovery) {
                (false, _) => OPEN,
                (true, TIMEOUT) => TIMEOUT,
                (true, _) => REPAIRING,
            };
        }
        self.core.on_ack(&[
            path.now,
            self.next.since(acked.ack.now).as_nanos(),
            path.mss,
            path.srtt,
            acked.rtt_us,
            acked.packets,
            acked.losses,
            path.delivered,
            acked.prior_delivered,
            path.lost,
            acked.inflight,
            acked.prior_inflight,
            acked.rate.0,
            acked.rate.1,
            self.recovery,
            acked.ack.rate.is_some_and(|sample| sample.app_limited).into(),
            (acked.packets == 0).into(),
            0,
        ]);
        self.draw_if_used();
    }

    /// The kernel asks for the threshold where a recovery begins.
    pub(super) fn on_loss(&mut self) {
        if self.recovery == OPEN {
            self.core.on_loss();
        }
    }

    pub(super) fn on_timeout(&mut self, path: &Path) {
        self.core.on_loss();
        self.core.on_timeout(path.now, 0, path.delivered as u32, path.lost as u32);
        self.recovery = TIMEOUT;
        self.draw_if_used();
    }

    pub(super) fn on_idle(&mut self, path: &Path) {
        self.core.on_idle(path.now);
        self.draw_if_used();
    }
}

/// A phase as a slot has it.
pub(super) fn phase_number(phase: Phase) -> u32 {
    match phase {
        Phase::SlowStart => layout::PHASE_SLOW_START,
        Phase::Drain => layout::PHASE_DRAIN,
        Phase::Steady => layout::PHASE_STEADY,
        Phase::Recovery => layout::PHASE_RECOVERY,
        Phase::ProbeRtt => layout::PHASE_PROBE_RTT,
    }
}
