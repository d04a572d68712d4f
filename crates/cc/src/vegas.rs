//! Vegas: keeps two to four packets in the queue, told from the round-trip time.
//!
//! Read first: Brakmo, O'Malley and Peterson, "TCP Vegas", SIGCOMM 1994. The form is that of Linux's
//! `net/ipv4/tcp_vegas.c`: `diff` is the window times the queueing delay over the *base* round-trip
//! time (the paper divides by the present one), and slow start doubles every round trip (the
//! paper's every other).

use trimtab_units::{Bytes, Duration};

use crate::episode::Episode;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::round::Round;
use crate::window::{Window, repair_methods, window_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Timeout};

/// Fewer samples than this in a round may all be of delayed acknowledgements: such a round grows as
/// Reno's (tcp_vegas.c `tcp_vegas_cong_avoid()`).
const SAMPLES_MIN: u32 = 3;
/// A round-trip time is at least this, so that dividing by one is safe.
const RTT_FLOOR: Duration = Duration::from_micros(1);

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "vegas",
    about: "delay-based: keeps two to four packets in the queue; starves next to loss-based flows",
    source: "Brakmo, O'Malley and Peterson, SIGCOMM 1994; Linux tcp_vegas.c",
    knobs: Vegas::KNOBS,
    presets: &[],
    build: |config| Vegas::new(config).into(),
};

knobs! {
    /// The values of Vegas's knobs. Defaults: tcp_vegas.c `alpha`, `beta`, `gamma`.
    struct Values {
        alpha: f64 = 2.0, 0.5..=32.0, "packets",
            "grows while fewer packets than this are queued; more keeps more in the queue";
        beta: f64 = 4.0, 0.5..=64.0, "packets",
            "shrinks while more packets than this are queued";
        gamma: f64 = 1.0, 0.5..=32.0, "packets",
            "slow start ends once more packets than this are queued; more overshoots more";
    }
}

/// The Vegas state machine: that of `NewReno`, but each round trip without loss is judged by its
/// least round-trip time.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: Window,
    episode: Episode,
    round: Round,
    values: Values,
    /// Least round-trip time since the start or the last idle time.
    base_rtt: Duration,
    /// Least of this round, and of how many samples.
    round_min: Duration,
    samples: u32,
}

impl Vegas {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        Self {
            window: Window::new(config),
            episode: Episode::default(),
            round: Round::default(),
            values: Values::default(),
            base_rtt: Duration::MAX,
            round_min: Duration::MAX,
            samples: 0,
        }
    }

    /// tcp_vegas.c `vegas_enable()`.
    fn start_round(&mut self) {
        self.round_min = Duration::MAX;
        self.samples = 0;
    }

    /// Once per round trip: by the packets that are queued (tcp_vegas.c `tcp_vegas_cong_avoid()`).
    fn adjust(&mut self, ack: &Ack) {
        if self.samples < SAMPLES_MIN {
            if ack.cwnd_limited {
                self.window.grow_reno(ack.acked);
            }
            return;
        }
        let Values { alpha, beta, gamma } = self.values;
        let queued = diff(self.window.packets(), self.base_rtt, self.round_min);
        let packet = self.window.mss;
        if self.window.in_slow_start() {
            if queued > gamma {
                let target = self.window.size.mul_f64(self.base_rtt.ratio(self.round_min));
                self.window.set(self.window.size.min(target + packet));
                self.lower_threshold();
            } else if ack.cwnd_limited {
                self.window.slow_start(ack.acked);
            }
        } else if queued > beta {
            self.window.set((self.window.size - packet).max(packet * 2));
            self.lower_threshold();
        } else if queued < alpha && ack.cwnd_limited {
            self.window.set(self.window.size + packet);
        }
        // Three quarters stay reachable by slow start (Linux's `tcp_current_ssthresh`).
        self.window.ssthresh = self.window.ssthresh.max(self.window.size.mul_f64(0.75));
    }

    /// Below the window, so that it is not slow start's.
    fn lower_threshold(&mut self) {
        let below = self.window.size - self.window.mss;
        self.window.ssthresh = self.window.ssthresh.min(below.max(self.window.min));
    }
}

/// Packets in the queue: the paper's Diff as tcp_vegas.c `tcp_vegas_cong_avoid()` has it.
fn diff(window: f64, base: Duration, rtt: Duration) -> f64 {
    window * (rtt - base).ratio(base)
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        // tcp_vegas.c `tcp_vegas_pkts_acked()`.
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.max(RTT_FLOOR);
            self.base_rtt = self.base_rtt.min(rtt);
            self.round_min = self.round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        let recovering = self.episode.on_ack(ack);
        let ended = self.round.ends(ack);
        if recovering {
            self.start_round(); // rounds in recovery say nothing
        } else if ended {
            self.adjust(ack);
            self.start_round();
        } else if self.window.in_slow_start() && ack.cwnd_limited {
            self.window.slow_start(ack.acked);
        }
    }

    /// RFC 5681 eq. 4 (`tcp_reno_ssthresh()`).
    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            self.window.reduce(self.window.size / 2);
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.window.size / 2));
        self.start_round();
    }

    /// tcp_vegas.c `tcp_vegas_cwnd_event()`.
    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
        self.base_rtt = Duration::MAX; // the path may be another
        self.start_round();
    }

    window_methods!(self);

    repair_methods!(self);

    knob_methods!(self.values);
}

impl Migrate for Vegas {
    /// Nothing moves for a round trip: what is in flight was sent by another.
    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.window.take_over(from.window);
        self.base_rtt = from.min_rtt;
        self.round = Round::beginning(from);
        self.start_round();
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.window.set(window);
    }

    /// The losses of the jump stay those of one episode.
    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.window.retreat(from.window, ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;
    use crate::testing::link::{Link, MSS, run};
    use trimtab_units::{Rate, Time};

    /// expected.md V1.
    #[test]
    fn diff_is_as_in_linux() {
        let ms = Duration::from_millis;
        for (window, base, rtt, want) in
            [(20.0, 50, 55, 2.0), (20.0, 50, 60, 4.0), (40.0, 20, 22, 4.0)]
        {
            assert!((diff(window, ms(base), ms(rtt)) - want).abs() < 1e-9);
        }
    }

    /// The window, in packets, after one round of ten samples with `rtt` on a path of 50 ms.
    fn after_a_round(window: u64, rtt: Duration, slow_start: bool) -> f64 {
        let config = Config { initial_window: MSS * window, ..Config::with_mss(MSS, 0) };
        let mut vegas = Vegas::new(&config);
        if !slow_start {
            vegas.window.ssthresh = vegas.window.size;
        }
        vegas.base_rtt = Duration::from_millis(50);
        vegas.round.ends(&acked(Time::from_millis(50), Time::from_millis(1), MSS, rtt));
        let unlimited = |sent: u64| Ack {
            cwnd_limited: false,
            ..acked(Time::from_millis(100), Time::from_millis(sent), MSS, rtt)
        };
        for _ in 0..9 {
            vegas.on_ack(&unlimited(50));
        }
        vegas.on_ack(&Ack { cwnd_limited: true, ..unlimited(51) });
        vegas.window.packets()
    }

    /// expected.md V3.
    #[test]
    fn once_per_round_by_one_packet() {
        let us = Duration::from_micros;
        assert_eq!(after_a_round(20, us(54_999), false), 21.0, "fewer than 2 queued");
        assert_eq!(after_a_round(20, us(55_000), false), 20.0, "2 queued");
        assert_eq!(after_a_round(20, us(60_000), false), 20.0, "4 queued");
        assert_eq!(after_a_round(20, us(60_001), false), 19.0, "more than 4 queued");
    }

    #[test]
    fn slow_start_ends_with_a_packet_in_the_queue() {
        let us = Duration::from_micros;
        assert_eq!(after_a_round(20, us(52_500), true), 21.0, "1 queued: slow start goes on");
        // 2 queued: to what the path holds, and a packet.
        let left = after_a_round(20, us(55_000), true);
        assert!((left - (20.0 * 50.0 / 55.0 + 1.0)).abs() < 1e-3, "{left}");
    }

    /// expected.md V2. For one flow: of several, those that never see the empty queue take what the
    /// others left in it for the path, and keep more.
    #[test]
    fn two_to_four_packets_queue() {
        for mbps in [12.0, 48.0] {
            // Slow start, which sees a round late what it did, is drained at a packet per round.
            let from = Time::from_millis(20_000);
            let link = Link { rate: Rate::from_mbps(mbps), from, ..Link::fast() };
            let seen = run(link, &[("vegas", Time::ZERO)], |_, _, _| {});
            // A packet arrives at a queue from which it is itself missing.
            assert!(seen.queue_mean > 1.0 && seen.queue_mean < 4.0, "{mbps} Mbit/s: {seen:?}");
            assert!(seen.shares[0] > 0.99, "{mbps} Mbit/s: {seen:?}");
        }
    }

    #[test]
    fn after_a_hand_over_nothing_moves_for_a_round_trip() {
        let rtt = Duration::from_micros(37_500);
        let mut vegas = Vegas::new(&Config::with_mss(MSS, 0));
        let record = crate::testing::hand_over(MSS * 150, rtt);
        vegas.take_over(&record);
        assert_eq!(vegas.base_rtt, Duration::from_millis(20));
        let ack = |sent: Time, packets: u64| Ack {
            delivered: record.delivered + MSS * packets,
            inflight: MSS * 150,
            ..acked(record.now + rtt, sent, MSS, rtt)
        };
        for packet in 1..=150 {
            vegas.on_ack(&ack(record.now - Duration::from_millis(1), packet));
            assert_eq!(vegas.window(), MSS * 150);
        }
        vegas.on_ack(&ack(record.now + Duration::from_millis(1), 151));
        assert_eq!(vegas.window(), MSS * 149, "70 queued: one packet less");
    }

    use crate::testing::{lost, timed_out};
    use crate::{Phase, set_knob};

    /// tcp_vegas.c `tcp_vegas_cong_avoid()`: with two samples or fewer a round grows as Reno's,
    /// since all of them may have been delayed.
    #[test]
    fn a_round_of_two_samples_grows_as_renos() {
        let rtt = Duration::from_millis(90);
        let after = |samples: u64, cwnd_limited: bool| {
            let mut vegas = Vegas::new(&Config::with_mss(MSS, 0));
            vegas.window.ssthresh = vegas.window.size;
            vegas.base_rtt = Duration::from_millis(50);
            vegas.round.ends(&acked(Time::from_millis(50), Time::from_millis(1), MSS, rtt));
            let ack = |sent: u64, packets: u64| Ack {
                cwnd_limited,
                ..acked(Time::from_millis(100), Time::from_millis(sent), MSS * packets, rtt)
            };
            for _ in 1..samples {
                vegas.on_ack(&ack(50, 1));
            }
            vegas.on_ack(&ack(51, 10));
            vegas.window.packets()
        };
        assert_eq!(after(2, true), 11.0, "a window acknowledged");
        assert_eq!(after(2, false), 10.0, "it is not used");
        assert_eq!(after(3, true), 9.0, "8 of 10 packets are queued");
    }

    /// Below the window, so that it is not slow start's, and at least three quarters of it
    /// (`tcp_current_ssthresh()`).
    #[test]
    fn the_threshold_stays_just_below_a_window_that_shrinks() {
        let rtt = Duration::from_millis(90);
        let mut vegas = Vegas::new(&Config::with_mss(MSS, 0));
        vegas.window.ssthresh = MSS * 5;
        vegas.base_rtt = Duration::from_millis(50);
        for round in 1..=20u64 {
            let (now, sent) = (Time::from_millis(100 * round), Time::from_millis(100 * round - 99));
            for _ in 0..3 {
                vegas.on_ack(&acked(now, sent, MSS, rtt));
            }
            if round == 1 {
                continue; // the first acknowledgement ended a round of one sample
            }
            let window = vegas.window();
            assert!(vegas.window.ssthresh < window || window == MSS * 2, "{round}");
            assert!(vegas.window.ssthresh >= window.mul_f64(0.75), "{round}");
        }
        assert!(vegas.window() < MSS * 6, "{}", vegas.window());
    }

    /// RFC 5681 eq. 4 and §3.1, RFC 9438 §4.9: losses are answered as NewReno answers them.
    #[test]
    fn losses_halve_and_can_be_taken_back() {
        let mut vegas = Vegas::new(&Config::with_mss(MSS, 0));
        vegas.on_loss(&lost(Time::from_millis(9), Time::from_millis(1)));
        assert_eq!((vegas.window(), vegas.phase()), (MSS * 5, Phase::Recovery));
        vegas.on_loss(&lost(Time::from_millis(10), Time::from_millis(2)));
        assert_eq!(vegas.window(), MSS * 5, "the same episode");
        vegas.on_spurious_loss(Time::from_millis(11));
        assert_eq!((vegas.window(), vegas.phase()), (MSS * 10, Phase::SlowStart));
        vegas.samples = 7;
        vegas.on_timeout(&timed_out(Time::from_millis(400)));
        assert_eq!((vegas.window(), vegas.ssthresh(), vegas.samples), (MSS * 2, Some(MSS * 5), 0));
    }

    /// The path after an idle time may be another, so its base is measured anew.
    #[test]
    fn an_idle_time_forgets_the_base() {
        let (ms, at) = (Duration::from_millis, Time::from_millis);
        let mut vegas = Vegas::new(&Config::with_mss(MSS, 0));
        vegas.on_ack(&acked(at(50), at(1), MSS, ms(30)));
        assert_eq!((vegas.base_rtt, vegas.round_min, vegas.samples), (ms(30), Duration::MAX, 0));
        vegas.on_ack(&acked(at(60), at(1), MSS, ms(40)));
        assert_eq!((vegas.base_rtt, vegas.round_min, vegas.samples), (ms(30), ms(40), 1));
        vegas.on_idle(&Idle { now: at(900), idle: ms(800), rto: ms(200) });
        assert_eq!((vegas.base_rtt, vegas.samples), (Duration::MAX, 0));
        vegas.on_ack(&acked(at(1000), at(950), MSS, Duration::ZERO));
        assert_eq!(vegas.base_rtt, RTT_FLOOR, "a link without delay divides by no zero");
    }

    /// The three knobs are the thresholds of `diff`: with twenty packets queued of eighty the
    /// window grows below alpha and shrinks above beta.
    #[test]
    fn alpha_and_beta_move_where_it_rests() {
        let rtt = Duration::from_micros(62_500);
        let after = |alpha: f64, beta: f64| {
            let config = Config { initial_window: MSS * 80, ..Config::with_mss(MSS, 0) };
            let mut vegas = Vegas::new(&config);
            set_knob(&mut vegas, "alpha", alpha).unwrap();
            set_knob(&mut vegas, "beta", beta).unwrap();
            vegas.window.ssthresh = vegas.window.size;
            vegas.base_rtt = Duration::from_millis(50);
            vegas.round.ends(&acked(Time::from_millis(50), Time::from_millis(1), MSS, rtt));
            for sent in [50, 50, 51] {
                let (now, sent) = (Time::from_millis(120), Time::from_millis(sent));
                vegas.on_ack(&acked(now, sent, MSS, rtt));
            }
            vegas.window.packets()
        };
        assert_eq!((after(20.1, 30.0), after(20.0, 30.0)), (81.0, 80.0));
        assert_eq!((after(2.0, 20.0), after(2.0, 19.9)), (80.0, 79.0));
    }
}
