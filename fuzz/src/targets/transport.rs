//! The tracker of a transport's packets: whatever a transport calls, in whatever order, every byte
//! that was sent has one fate, and no algorithm panics at the events or falls below its smallest
//! window.

use trimtab_cc::transport::{Packet, Tracker};
use trimtab_cc::{ALGORITHMS, Config, CongestionControl, Controller};
use trimtab_units::{Bytes, Duration, Time};

struct Connection {
    cca: Controller,
    tracker: Tracker,
    packets: Vec<Packet>,
    now: Time,
}

impl Connection {
    /// One call: what, which packet, and how much later or how large.
    fn step(&mut self, what: u8, which: u8, amount: u8) {
        let Self { cca, tracker, packets, now } = self;
        let which = usize::from(which) % packets.len().max(1);
        let rtt = Duration::from_millis(u64::from(amount));
        match (what % 11, packets.get_mut(which)) {
            (0, _) => *now += rtt,
            (1, _) => {
                let (packet, sent) = tracker.on_sent(*now, Bytes::new(u64::from(amount) * 100));
                packets.push(packet);
                cca.on_sent(&sent);
            }
            (2, Some(packet)) => {
                tracker.on_acked(packet);
            }
            (3, Some(packet)) => {
                if let Some(lost) = tracker.on_lost(*now, packet, amount.is_multiple_of(2)) {
                    cca.on_packet_lost(&lost);
                }
            }
            (4, _) => {
                if let Some(loss) = tracker.end_losses(*now) {
                    cca.on_loss(&loss);
                    if amount == 0 {
                        cca.on_timeout(&loss.timeout());
                    }
                }
            }
            (5, _) => {
                if let Some(ack) = tracker.end_ack(*now, rtt, rtt / 2) {
                    cca.on_ack(&ack);
                }
            }
            (6, Some(packet)) => {
                if let Some(discarded) = tracker.on_discarded(*now, packet) {
                    cca.on_discarded(&discarded);
                }
            }
            (7, Some(packet)) => tracker.restore(packet),
            (8, _) => {
                if let Some(marked) = tracker.on_ce_count(*now, u64::from(amount)) {
                    cca.on_marked(&marked);
                }
            }
            (9, Some(packet)) => {
                tracker.on_acked(&mut packet.part(Bytes::new(u64::from(amount))));
            }
            (10, _) if amount < 4 => tracker.on_path_change(),
            (10, _) if amount < 64 => {
                let mss = Bytes::new(u64::from(amount) * 100);
                cca.on_mtu(&Config::with_mss(mss, 0));
            }
            (10, _) if amount < 128 => tracker.on_app_limited(),
            (10, _) => tracker.on_window_limited(),
            _ => {}
        }
    }

    fn check(&self) {
        let tracker = &self.tracker;
        let kept = tracker.lost() - tracker.spurious();
        let fates = [tracker.inflight(), tracker.delivered(), kept, tracker.discarded()];
        assert_eq!(tracker.sent(), fates.into_iter().sum());
        assert!(!self.cca.window().is_zero());
    }
}

pub(crate) fn target(bytes: &[u8]) {
    let Some((&which, steps)) = bytes.split_first() else { return };
    let algorithm = &ALGORITHMS[usize::from(which) % ALGORITHMS.len()];
    let mut connection = Connection {
        cca: (algorithm.build)(&Config::default()),
        tracker: Tracker::new(),
        packets: Vec::new(),
        now: Time::ZERO,
    };
    for step in steps.chunks_exact(3) {
        connection.step(step[0], step[1], step[2]);
        connection.check();
    }
}
