//! Random lives of a congestion control algorithm: a sender with a trivial account of what is in
//! flight does random things in a random order, most of which no transport would do.

use std::collections::VecDeque;

use trimtab_cc::{
    Ack, Algorithm, Config, CongestionControl, Controller, Idle, Loss, LostPacket, Marked, Phase,
    RateSample, Sent, Timeout,
};
use trimtab_units::{Bytes, Duration, Rate, Time};

pub(crate) const MSS: Bytes = Bytes::new(1500);

/// What may happen. Counts and choices are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Sends packets, as far as the window lets it.
    Send {
        packets: u8,
        app_limited: bool,
    },
    /// Acknowledges packets, the oldest first or, out of order, the newest.
    Ack {
        packets: u8,
        newest: bool,
        cwnd_limited: bool,
        in_recovery: bool,
        timed: bool,
    },
    /// Declares the oldest packets lost.
    Lose {
        packets: u8,
    },
    /// Writes everything off.
    Timeout,
    Spurious,
    /// An acknowledgement tells of congestion marks.
    Mark,
    Idle {
        ms: u16,
    },
    /// Time passes, and the timer is called if it is due.
    Pass {
        us: u32,
    },
    /// The same, for long.
    Jump {
        secs: u32,
    },
    /// Turns a knob; `at` is the place in its range.
    Knob {
        index: u8,
        at: u8,
    },
    /// Full-size packets count as so many bytes.
    Mtu {
        mss: u16,
    },
}

#[derive(Clone, Debug)]
struct Packet {
    sent_at: Time,
    delivered: Bytes,
    delivered_at: Time,
    tx_in_flight: Bytes,
    lost: Bytes,
    app_limited: bool,
}

/// What a transport sees of an algorithm: window, rate, threshold, phase, and timer.
pub(crate) type Face = (Bytes, Option<Rate>, Option<Bytes>, Phase, Option<Time>);

/// The sender.
#[derive(Clone, Debug)]
pub(crate) struct Sender<C = Controller> {
    pub(crate) cca: C,
    config: Config,
    pub(crate) now: Time,
    outstanding: VecDeque<Packet>,
    delivered: Bytes,
    delivered_at: Time,
    lost: Bytes,
    srtt: Duration,
    min_rtt: Duration,
    last_was_lost: bool,
}

/// Half the lives with the window of one packet that TCP allows, some with packets that count as a
/// byte: windows of a million.
pub(crate) fn config(seed: u64) -> Config {
    let mss = if seed % 8 == 2 { Bytes::new(1) } else { MSS };
    let mut config = Config::with_mss(mss, seed);
    if seed % 2 == 1 {
        config.min_window = mss;
    }
    config
}

impl Sender {
    pub(crate) fn new(algorithm: &Algorithm, seed: u64) -> Self {
        let config = config(seed);
        Self::with((algorithm.build)(&config), config)
    }
}

impl<C: CongestionControl> Sender<C> {
    pub(crate) fn with(cca: C, config: Config) -> Self {
        Self {
            cca,
            config,
            now: Time::ZERO,
            outstanding: VecDeque::new(),
            delivered: Bytes::ZERO,
            delivered_at: Time::ZERO,
            lost: Bytes::ZERO,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            last_was_lost: false,
        }
    }

    /// The smallest window that the transport allows.
    pub(crate) fn least_window(&self) -> Bytes {
        self.config.min_window
    }

    fn inflight(&self) -> Bytes {
        MSS * self.outstanding.len() as u64
    }

    /// Does it, and checks what must hold after anything.
    pub(crate) fn step(&mut self, op: Op) {
        match op {
            Op::Send { packets, app_limited } => self.send(packets, app_limited),
            Op::Ack { packets, newest, cwnd_limited, in_recovery, timed } => {
                self.ack(packets, newest, cwnd_limited, in_recovery, timed);
            }
            Op::Lose { packets } => self.lose(packets),
            Op::Timeout => self.time_out(),
            Op::Spurious => self.cca.on_spurious_loss(self.now),
            Op::Mark => self.mark(),
            Op::Idle { ms } => self.idle(Duration::from_millis(ms.into())),
            Op::Pass { us } => self.pass(Duration::from_micros(us.into())),
            Op::Jump { secs } => self.pass(Duration::from_secs(secs.into())),
            Op::Knob { index, at } => self.turn(index, at),
            Op::Mtu { mss } => self.resize(Bytes::new(mss.into())),
        }
        self.check(op);
    }

    fn check(&self, op: Op) {
        let Self { cca, config, .. } = self;
        assert!(cca.window() >= config.min_window, "{op:?}: window {}", cca.window());
        if let Some(rate) = cca.pacing_rate() {
            assert!(rate > Rate::ZERO && rate < Rate::MAX, "{op:?}: pacing at {rate}");
        }
        if let Some(ssthresh) = cca.ssthresh() {
            assert!(ssthresh >= config.min_window, "{op:?}: threshold {ssthresh}");
        }
        for (index, knob) in cca.knobs().iter().enumerate() {
            let value = cca.knob(index).expect("a declared knob has a value");
            assert!(knob.check(value).is_ok(), "{op:?}: {} is {value}", knob.name);
        }
        assert!(cca.knob(cca.knobs().len()).is_none());
    }

    fn send(&mut self, packets: u8, app_limited: bool) {
        for _ in 0..packets {
            if self.inflight() + MSS > self.cca.window() || self.outstanding.len() > 300 {
                return;
            }
            if self.outstanding.is_empty() {
                self.delivered_at = self.now;
            }
            let inflight = self.inflight() + MSS;
            self.outstanding.push_back(Packet {
                sent_at: self.now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                tx_in_flight: inflight,
                lost: self.lost,
                app_limited,
            });
            self.cca.on_sent(&Sent { now: self.now, bytes: MSS, inflight, app_limited });
        }
    }

    fn ack(
        &mut self,
        packets: u8,
        newest: bool,
        cwnd_limited: bool,
        in_recovery: bool,
        timed: bool,
    ) {
        let prior_inflight = self.inflight();
        let mut last = None;
        let mut acked = Bytes::ZERO;
        for _ in 0..packets {
            let next =
                if newest { self.outstanding.pop_back() } else { self.outstanding.pop_front() };
            let Some(packet) = next else { break };
            acked += MSS;
            let newer = last.as_ref().is_none_or(|l: &Packet| packet.sent_at >= l.sent_at);
            if newer {
                last = Some(packet);
            }
        }
        let Some(packet) = last else { return };
        self.delivered += acked;
        let rtt = self.now - packet.sent_at;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        let interval = self.now - packet.delivered_at;
        self.delivered_at = self.now;
        self.last_was_lost = false;
        self.cca.on_ack(&Ack {
            now: self.now,
            acked,
            rtt: timed.then_some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight(),
            prior_inflight,
            delivered: self.delivered,
            newest_sent_at: packet.sent_at,
            rate: (!interval.is_zero()).then_some(RateSample {
                delivered: self.delivered - packet.delivered,
                interval,
                prior_delivered: packet.delivered,
                app_limited: packet.app_limited,
                tx_in_flight: packet.tx_in_flight,
                lost: self.lost - packet.lost,
            }),
            cwnd_limited,
            in_recovery,
        });
    }

    fn lose(&mut self, packets: u8) {
        let prior_inflight = self.inflight();
        let mut loss: Option<Loss> = None;
        for _ in 0..packets {
            let Some(packet) = self.outstanding.pop_front() else { break };
            self.lost += MSS;
            self.cca.on_packet_lost(&LostPacket {
                now: self.now,
                bytes: MSS,
                sent_at: packet.sent_at,
                tx_in_flight: packet.tx_in_flight,
                lost_since_sent: self.lost - packet.lost,
                app_limited: packet.app_limited,
                delivered_at_send: packet.delivered,
                new_range: !self.last_was_lost,
            });
            self.last_was_lost = true;
            loss = Some(Loss {
                now: self.now,
                lost: loss.map_or(Bytes::ZERO, |l| l.lost) + MSS,
                newest_sent_at: packet.sent_at,
                inflight: self.inflight(),
                prior_inflight,
            });
        }
        if let Some(loss) = loss {
            self.cca.on_loss(&loss);
        }
    }

    fn mark(&mut self) {
        let inflight = self.inflight();
        let newest_sent_at = self.outstanding.front().map_or(self.now, |packet| packet.sent_at);
        let now = self.now;
        self.cca.on_marked(&Marked { now, newest_sent_at, inflight, prior_inflight: inflight });
    }

    fn time_out(&mut self) {
        let prior_inflight = self.inflight();
        self.lost += prior_inflight;
        self.outstanding.clear();
        self.cca.on_timeout(&Timeout { now: self.now, prior_inflight, inflight: Bytes::ZERO });
    }

    fn idle(&mut self, idle: Duration) {
        if self.outstanding.is_empty() {
            self.pass(idle);
            self.cca.on_idle(&Idle { now: self.now, idle, rto: self.srtt * 3 });
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.cca.next_timer().is_some_and(|at| at <= self.now) {
            self.cca.on_timer(self.now);
        }
    }

    fn turn(&mut self, index: u8, at: u8) {
        let knobs = self.cca.knobs();
        if !knobs.is_empty() {
            let index = usize::from(index) % knobs.len();
            let knob = &knobs[index];
            let value = knob.min + (knob.max - knob.min) * f64::from(at) / 255.0;
            self.cca.apply_knob(index, value);
        }
    }

    fn resize(&mut self, mss: Bytes) {
        let packets = self.config.min_window / self.config.mss.get().max(1);
        let min_window = mss * packets.get();
        self.config = Config { min_window, ..Config::with_mss(mss, self.config.seed) };
        self.cca.on_mtu(&self.config);
    }

    /// What a transport sees of the algorithm, to compare two.
    pub(crate) fn face(&self) -> Face {
        let c = &self.cca;
        (c.window(), c.pacing_rate(), c.ssthresh(), c.phase(), c.next_timer())
    }
}
