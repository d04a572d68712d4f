//! BBRv3 in the kernel's hands: its inputs, and how long a probe waits, drawn as the Rust algorithm
//! draws it, from the same seed.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg32;
use trimtab_cc::{LostPacket, Marked, Sent};

use super::bbr3_core::CoreBbr3;
use super::driver::{Acked, Path};

pub(super) struct SocketBbr3 {
    pub(super) core: CoreBbr3,
    rng: Pcg32,
}

impl SocketBbr3 {
    /// With the seed of the Rust algorithm.
    pub(super) fn new(core: CoreBbr3, seed: u64) -> Self {
        let mut socket = Self { core, rng: Pcg32::seed_from_u64(seed) };
        socket.draw();
        socket
    }

    fn draw(&mut self) {
        let round = self.rng.random_range::<u64, _>(0..=1) == 1;
        let share = self.rng.random_range::<f64, _>(0.0..1.0);
        self.core.draw(round, (share * 4_294_967_296.0) as u32);
    }

    pub(super) fn draw_if_used(&mut self) {
        if self.core.is_drawn() {
            self.draw();
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent, first: bool) {
        if first {
            self.core.on_first_sent(sent.now.as_nanos() / 1000, sent.app_limited);
            self.draw_if_used();
        }
    }

    pub(super) fn on_ack(&mut self, path: &Path, acked: &Acked) {
        let ack = &acked.ack;
        let sample = ack.rate;
        let packets = |bytes: trimtab_units::Bytes| bytes.get() / path.mss;
        self.core.on_ack(&[
            path.now,
            acked.newest_sent_us,
            path.srtt,
            acked.rtt_us,
            acked.packets,
            path.delivered,
            acked.prior_delivered,
            acked.inflight,
            acked.rate.0,
            acked.rate.1,
            sample.map_or(0, |sample| packets(sample.tx_in_flight)),
            sample.map_or(0, |sample| packets(sample.lost)),
            sample.is_some_and(|sample| sample.app_limited).into(),
            ack.cwnd_limited.into(),
            ack.in_recovery.into(),
            0,
        ]);
        self.draw_if_used();
    }

    pub(super) fn on_lost(&mut self, path: &Path, lost: &LostPacket) {
        let packets = |bytes: trimtab_units::Bytes| bytes.get() / path.mss;
        self.core.on_lost(&[
            path.now,
            packets(lost.bytes),
            packets(lost.tx_in_flight),
            packets(lost.lost_since_sent),
            packets(lost.delivered_at_send),
            lost.app_limited.into(),
            lost.new_range.into(),
        ]);
        self.draw_if_used();
    }

    pub(super) fn on_marked(&mut self, path: &Path, marked: &Marked) {
        let prior = marked.prior_inflight.get() / path.mss;
        self.core.on_marked(path.now, marked.newest_sent_at.as_micros(), prior as u32);
    }

    pub(super) fn on_spurious_loss(&mut self) {
        self.core.on_spurious_loss();
        self.draw_if_used();
    }

    pub(super) fn on_idle(&mut self, path: &Path) {
        self.core.on_idle(path.now);
        self.draw_if_used();
    }
}
