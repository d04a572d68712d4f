//! C2TCP: CUBIC that watches the round-trip time as `CoDel` watches a queue. A round-trip time that
//! stays above a setpoint starts the window over; one below it lets the window grow faster.
//!
//! Read first: Abbasloo, Xu and Chao, "C2TCP: A Flexible Cellular TCP to Meet Stringent Delay
//! Requirements", JSAC 37:4 (2019), and the authors' patch of Linux's `tcp_cubic.c` ("the patch"
//! below, with its `server-standalone.cc`). "IFIP" is its first form, IFIP Networking 2018. Where
//! this differs:
//!
//! * The share of the setpoint in the round-trip time is a real number. The patch divides whole
//!   milliseconds, and counts one packet for each acknowledgement, however many it acknowledges.
//! * A window that is not used does not grow (RFC 9002 §7.8), nor does one in loss recovery.
//! * CUBIC below it is that of RFC 9438, with HyStart++ in the first slow start.
//! * A window that starts over keeps two packets, where the patch keeps one.
//! * Congestion marks (ECN) bound the window (`ceiling.rs`). Below the setpoint it grows by two
//!   packets in a round trip, and CUBIC's answer alone would leave it 2.5 times CUBIC's share.
//! * The setpoint follows the target inside the algorithm. The patch leaves that to a program which
//!   asks the kernel once in a period.

use trimtab_units::{Bytes, Duration, Time};

use super::Cubic;
use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout,
};

/// The setpoint is between so many times the least round-trip time (`TARGET_RATIO_MIN` and
/// `TARGET_RATIO_MAX` of the patch's `define.h`).
const ALPHA: (f64, f64) = (1.0, 10.0);
/// Without a target of its own an application wants an average of so many times the least
/// round-trip time (`server-standalone.cc`).
const TARGET: f64 = 2.0;
/// How often the setpoint follows the average ("Report Period: 1 sec" there).
const PERIOD: Duration = Duration::from_secs(1);

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "c2tcp",
    about: "CUBIC that starts its window over while the round-trip time stays above a setpoint, \
            which follows an average that the application wants",
    source: "Abbasloo, Xu and Chao, JSAC 2019; IFIP Networking 2018",
    knobs: C2tcp::KNOBS,
    presets: &[],
    build: |config| C2tcp::new(config).into(),
};

knobs! {
    /// The values of its knobs.
    struct Values {
        alpha: f64 = 2.0, 1.0..=10.0, "1",
            "the first setpoint, over the least round-trip time; more bears longer queues";
        target: f64 = 0.0, 0.0..=10_000.0, "ms",
            "average round-trip time that the setpoint is moved for; 0: twice the least one; more \
             trades delay for throughput";
        adapt: bool = 1.0, 0.0..=1.0, "1",
            "1: the setpoint follows the target, as in 2019; 0: it stays, as in 2018";
    }
}

/// What the round-trip times say of the queue.
///
/// ```text
///             above the setpoint               above it for an interval
///   Good ───────────────────────▶ Suspected ───────────────────────────▶ Bad ──┐
///    ▲                                │                                   │ ▲  │ start over,
///    └────── at or below it ──────────┴───────────────────────────────────┘ └──┘ sooner each time
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Good,
    /// Above it, and at this time it will have been for an interval.
    Suspected {
        until: Time,
    },
    /// The window started over so many times, and does again after this time.
    Bad {
        count: u32,
        next: Time,
    },
}

/// The round-trip times of a period.
#[derive(Clone, Copy, Debug)]
struct Average {
    since: Option<Time>,
    sum: Duration,
    samples: u64,
}

impl Average {
    const NONE: Self = Self { since: None, sum: Duration::ZERO, samples: 0 };

    /// The average once a period is over; the next one then begins.
    fn add(&mut self, now: Time, rtt: Duration) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        self.sum += rtt;
        self.samples += 1;
        if now.since(since) < PERIOD {
            return None;
        }
        let average = self.sum / self.samples;
        *self = Self { since: Some(now), ..Self::NONE };
        Some(average)
    }
}

/// α after a period with that average (JSAC §IV; `server-standalone.cc`): a little more where the
/// application would bear more delay, less at twice the excess where it does not.
fn adapted(alpha: f64, average: Duration, target: Duration) -> f64 {
    let (average, target) = (average.as_secs_f64().max(1e-9), target.as_secs_f64());
    let share = if average > target {
        1.0 - 2.0 * (average - target) / average
    } else {
        1.0 + (target - average) / (2.0 * average)
    };
    (alpha * share).clamp(ALPHA.0, ALPHA.1)
}

/// The C2TCP state machine: that of CUBIC, and the condition of the path.
#[derive(Clone, Debug)]
pub struct C2tcp {
    cubic: Cubic,
    values: Values,
    /// The setpoint over the least round-trip time.
    alpha: f64,
    min_rtt: Duration,
    condition: Condition,
    average: Average,
    /// Acknowledged bytes, weighted, that have not yet grown the window (`snd_cwnd_cnt`).
    credit: Bytes,
    /// What congestion marks leave.
    ceiling: Ceiling,
    /// Since the window started over it has not come back to its threshold.
    refilling: bool,
}

impl C2tcp {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        Self {
            cubic: Cubic::new(config),
            alpha: values.alpha,
            values,
            min_rtt: Duration::MAX,
            condition: Condition::Good,
            average: Average::NONE,
            credit: Bytes::ZERO,
            ceiling: Ceiling::default(),
            refilling: false,
        }
    }

    /// What the round-trip time should stay below (JSAC §IV: Setpoint = α · minRTT). It is the
    /// interval, too (the patch's `c2tcp_interval`).
    fn setpoint(&self) -> Duration {
        self.min_rtt.mul_f64(self.alpha)
    }

    fn on_knob(&mut self, place: usize) {
        if place == const { Knob::place(Values::KNOBS, "alpha") } {
            self.alpha = self.values.alpha;
        }
    }

    /// A round-trip time (the patch's `c2tcp_pkts_acked()`; IFIP, Algorithm 1).
    fn watch(&mut self, ack: &Ack, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        if let Some(average) = self.average.add(ack.now, rtt)
            && self.values.adapt
        {
            let wanted = Duration::from_millis_f64(self.values.target);
            let target = if wanted.is_zero() { self.min_rtt.mul_f64(TARGET) } else { wanted };
            self.alpha = adapted(self.alpha, average, target);
        }
        let setpoint = self.setpoint();
        if rtt <= setpoint {
            self.condition = Condition::Good;
            self.grow(ack, setpoint.ratio(rtt.max(Duration::from_nanos(1))));
            return;
        }
        match self.condition {
            Condition::Good => self.condition = Condition::Suspected { until: ack.now + setpoint },
            Condition::Suspected { until } if ack.now > until => self.start_over(1, ack.now),
            Condition::Bad { count, next } if ack.now > next => {
                self.start_over(count.saturating_add(1), ack.now);
            }
            Condition::Suspected { .. } | Condition::Bad { .. } => {}
        }
    }

    /// Good condition: `setpoint / rtt` packets in a round trip, on top of CUBIC's growth.
    fn grow(&mut self, ack: &Ack, share: f64) {
        let window = &mut self.cubic.window;
        if !ack.cwnd_limited || self.cubic.episode.recovering() {
            return;
        }
        // No acknowledgement is for more than a few windows; the bound keeps the loop short.
        self.credit += ack.acked.mul_f64(share).min(window.size * 8);
        while self.credit >= window.size {
            self.credit -= window.size;
            window.set(window.size + window.mss);
        }
    }

    /// Bad condition: CUBIC's threshold, and slow start from the least window. The next time is
    /// `interval / √count` later (the control law of `CoDel`, RFC 8289 §5.4).
    fn start_over(&mut self, count: u32, now: Time) {
        let wait = self.setpoint().mul_f64(1.0 / libm::sqrt(f64::from(count)));
        self.condition = Condition::Bad { count, next: now + wait };
        // A threshold that the window has not come back to is no sign of what the path carries.
        let ssthresh = self.cubic.decrease();
        // One packet alone waits for the receiver's delayed acknowledgement, some 40 ms in Linux: on a short
        // path that round-trip time is above the setpoint, so the window would start over for ever.
        let least = self.cubic.window.min.max(self.cubic.window.mss * 2);
        self.cubic.window.retreat(least, ssthresh.max(self.cubic.window.mss * 2));
        self.cubic.before = None;
        self.credit = Bytes::ZERO;
        self.refilling = true;
    }

    /// Keeps the window below what marks left of it (RFC 3168 §5), and the threshold with it.
    fn bound(&mut self) {
        let window = &mut self.cubic.window;
        if window.size > self.ceiling.get() {
            window.set(self.ceiling.get());
            window.ssthresh = window.ssthresh.min(window.size);
        }
    }

    /// What was seen so far is of another path, or of another algorithm's queue.
    fn forget(&mut self) {
        self.condition = Condition::Good;
        self.average = Average::NONE;
        self.credit = Bytes::ZERO;
        self.refilling = false;
    }
}

impl CongestionControl for C2tcp {
    fn on_sent(&mut self, sent: &Sent) {
        self.cubic.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.cubic.window.size >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.cubic.window.mss);
        self.cubic.on_ack(ack);
        if let Some(rtt) = ack.rtt {
            self.watch(ack, rtt);
        }
        self.bound();
        self.refilling &= self.cubic.window.in_slow_start();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cubic.on_loss(loss);
    }

    fn on_marked(&mut self, marked: &Marked) {
        let window = &self.cubic.window;
        self.ceiling.on_marked(marked, window.size, window.mss);
        self.cubic.on_marked(marked);
        self.bound();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.cubic.on_timeout(timeout);
        self.forget();
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.cubic.on_mtu(limits);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.cubic.on_spurious_loss(now);
        self.bound();
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.cubic.on_idle(idle);
    }

    fn window(&self) -> Bytes {
        self.cubic.window()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.cubic.ssthresh()
    }

    /// The slow start after a window that started over drains the queue: it searches for nothing.
    fn phase(&self) -> Phase {
        match self.cubic.phase() {
            Phase::SlowStart if self.refilling => Phase::Drain,
            phase => phase,
        }
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for C2tcp {
    /// The queue of the algorithm before it is no reason to start over at once.
    fn take_over(&mut self, from: &HandOver) {
        self.cubic.take_over(from);
        self.min_rtt = from.min_rtt;
        self.alpha = self.values.alpha;
        self.forget();
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.cubic.inherit(window, srtt);
    }

    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.cubic.retreat(from, ssthresh);
        self.min_rtt = from.min_rtt;
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, hand_over, lost};

    const MSS: Bytes = Bytes::new(1500);
    const BASE: Duration = Duration::from_millis(40);

    fn set(cca: &mut C2tcp, knob: &str, value: f64) {
        crate::set_knob(cca, knob, value).unwrap();
    }

    /// Past slow start with a window of so many packets on a path of 40 ms, with a setpoint of 80
    /// that stays.
    fn settled(packets: u64) -> C2tcp {
        let mut cca = C2tcp::new(&Config::with_mss(MSS, 0));
        set(&mut cca, "adapt", 0.0);
        cca.take_over(&HandOver { min_rtt: BASE, ..hand_over(MSS * packets, BASE) });
        cca
    }

    fn ms(ms: u64) -> Time {
        Time::from_secs(30) + Duration::from_millis(ms)
    }

    /// One packet, acknowledged `now` ms after 30 s, with that round-trip time in ms.
    fn ack(cca: &mut C2tcp, now: u64, rtt: u64) {
        let rtt = Duration::from_millis(rtt);
        cca.on_ack(&acked(ms(now), ms(now) - rtt, MSS, rtt));
    }

    /// IFIP, Algorithm 1: the first time above the setpoint starts an interval; only at its end the
    /// window starts over. The next times follow after I/√1, I/√2 and I/√3.
    #[test]
    fn a_round_trip_time_that_stays_high_starts_the_window_over_sooner_each_time() {
        let mut cca = settled(100);
        let mut times = std::vec![];
        for now in 0..400 {
            let before = cca.condition;
            ack(&mut cca, now, 100);
            if let (Condition::Bad { count, .. }, true) = (cca.condition, cca.condition != before) {
                times.push((count, now));
            }
        }
        // The interval is 80 ms: 80, 80/√1, 80/√2, 80/√3, 80/√4, each on the next millisecond.
        assert_eq!(times, [(1, 81), (2, 162), (3, 219), (4, 266), (5, 307), (6, 343), (7, 376)]);
    }

    /// The patch: the threshold is CUBIC's, the window is the least.
    #[test]
    fn the_window_starts_over_below_cubics_threshold() {
        let mut cca = settled(100);
        (0..=80).for_each(|now| ack(&mut cca, now, 100));
        assert!(cca.window() >= MSS * 100, "not before an interval is over");
        let before = cca.window();
        ack(&mut cca, 81, 100);
        assert_eq!(cca.window(), MSS * 2);
        let share = cca.ssthresh().unwrap().ratio(before);
        assert!((share - 0.7).abs() < 0.001, "{share} of {before}");
        assert_eq!((cca.phase(), cca.is_converged()), (Phase::Drain, false));
        cca.on_spurious_loss(ms(81));
        assert_eq!(cca.window(), MSS * 2, "that was no loss");
        (82..150).for_each(|now| ack(&mut cca, now, 40));
        assert_eq!(cca.phase(), Phase::Steady, "68 packets acknowledged in slow start");
    }

    #[test]
    fn one_round_trip_time_below_the_setpoint_ends_a_suspicion() {
        let mut cca = settled(100);
        for now in 0..1000 {
            ack(&mut cca, now, if now % 70 == 0 { 80 } else { 200 });
            assert!(cca.window() >= MSS * 100, "{now} ms");
        }
    }

    /// IFIP: `cwnd += target / rtt` in a round trip below the target. With a setpoint of twice the
    /// round-trip time that is two packets, where CUBIC, which then lags behind, adds one.
    #[test]
    fn below_the_setpoint_the_window_grows_faster_than_cubics() {
        let (mut c2tcp, mut cubic) = (settled(100), Cubic::new(&Config::with_mss(MSS, 0)));
        cubic.take_over(&hand_over(MSS * 100, BASE));
        let mut now = ms(0);
        for _ in 0..10 {
            now += BASE;
            for _ in 0..100 {
                c2tcp.on_ack(&acked(now, now - BASE, MSS, BASE));
                cubic.on_ack(&acked(now, now - BASE, MSS, BASE));
            }
        }
        let grown = [c2tcp.window(), cubic.window()].map(|window| window.ratio(MSS) - 100.0);
        assert!((17.5..=21.0).contains(&grown[0]), "{grown:?} packets in ten round trips");
        assert!((8.0..=11.0).contains(&grown[1]), "{grown:?} packets in ten round trips");
        let before = c2tcp.window();
        c2tcp.on_ack(&Ack { cwnd_limited: false, ..acked(now, now - BASE, MSS * 400, BASE) });
        assert_eq!(c2tcp.window(), before, "it is not used");
    }

    /// `server-standalone.cc`: α (1 + (T - avg) / 2 avg) below the target, α (1 - 2 (avg - T) / avg)
    /// above it, from 1 to 10.
    #[test]
    fn the_setpoint_follows_the_average() {
        let ms = Duration::from_millis;
        for (average, target, alpha) in
            [(50, 100, 3.0), (100, 100, 2.0), (125, 100, 1.2), (400, 100, 1.0), (1, 100, 10.0)]
        {
            let got = adapted(2.0, ms(average), ms(target));
            assert!((got - alpha).abs() < 1e-9, "{average} ms for {target} ms: {got}");
        }
        let mut cca = settled(100);
        set(&mut cca, "adapt", 1.0);
        set(&mut cca, "target", 50.0);
        // The path has 40 ms and the average is 60: from 2 to 2 (1 - 2/6) in the first period.
        (0..=1000).step_by(10).for_each(|now| ack(&mut cca, now, 60));
        assert!((cca.alpha - 4.0 / 3.0).abs() < 1e-9, "{}", cca.alpha);
        assert_eq!(crate::get_knob(&cca, "alpha"), Some(2.0), "what was asked for stays");
        set(&mut cca, "alpha", 3.0);
        assert_eq!(cca.alpha, 3.0);
    }

    #[test]
    fn losses_are_cubics() {
        let mut cca = settled(100);
        cca.on_loss(&lost(ms(10), ms(5)));
        assert_eq!((cca.window(), cca.phase()), (MSS * 70, Phase::Recovery));
        cca.on_spurious_loss(ms(20));
        assert_eq!(cca.window(), MSS * 100);
    }
}
