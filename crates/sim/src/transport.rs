//! What kind of transport a flow is: QUIC as its RFCs have it or as noq paces it, or TCP as Linux has
//! it.

use trimtab_cc::Config;
use trimtab_units::{Bytes, Duration};

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// RFC 9002 §6.1: three packets later, or 9/8 of a round trip later; probes (§6.2) and
    /// persistent congestion (§7.6).
    Rfc9002,
    /// RACK-TLP (RFC 8985) as in Linux: a later packet delivered and three of them or a recovery
    /// going on, or a quarter of the minimum round trip; tail loss probe; then RTO (RFC 6298) with
    /// a floor of 200 ms, which writes everything off and is undone when it was spurious.
    RackTlp,
}

/// The parameters of a transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Size of a full packet on the wire. It also counts as such against the window.
    pub packet: Bytes,
    /// How much of a packet is headers.
    pub header: Bytes,
    /// Size of an acknowledgement on the wire.
    pub ack_size: Bytes,
    /// Initial window, in packets.
    pub initial_window: u64,
    /// Smallest window, in packets.
    pub min_window: u64,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// The most by which the wait for a probe grows with each probe that nobody answers, or 3/2 of the
    /// round trip where that is more. `None`: it doubles each time (RFC 9002 §6.2.1).
    pub probe_growth: Option<Duration>,
    /// Acknowledge at the latest after this many packets (RFC 9000 §13.2.2, RFC 5681 §4.2).
    pub ack_every: u32,
    /// …and after this time (`max_ack_delay`; TCP's delayed acknowledgement).
    pub max_ack_delay: Duration,
    /// The first packets of a connection are acknowledged one by one (Linux's quick
    /// acknowledgements), so many of them.
    pub quick_acks: u32,
    /// An acknowledgement that is due waits for packets that arrive right behind, as on a receiver whose
    /// reader has to wake up first: from `ack_wait_least` to this long, all alike.
    pub ack_wait: Duration,
    /// The least that it waits; no more than `ack_wait`.
    pub ack_wait_least: Duration,
    /// The most that the timer of pacing is late, all values alike. What is due then leaves before,
    /// if an acknowledgement arrives.
    pub timer_late: Duration,
    /// Whether what the pacing rate allowed and the sender did not send may leave at once later: up to
    /// ten packets or 2 ms' worth, whichever is more, but at most 10 ms' worth (`rate_capacity` in
    /// noq-proto 1.4).
    pub pacing_credit: bool,
    /// Whether the window is validated after idle times (RFC 5681 §4.1; Linux's
    /// `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Whether the window is reduced gently in recovery (RFC 6937) for algorithms that leave
    /// recovery to the transport.
    pub proportional_rate_reduction: bool,
    /// How algorithms that give no rate of their own are paced.
    pub pacing: Pacing,
}

/// How a transport paces algorithms that give no rate of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Not at all: packets leave in bursts, clocked by the acknowledgements.
    Unpaced,
    /// At a multiple of window per smoothed round trip (RFC 9002 §7.7).
    Multiple(f64),
    /// As Linux (`tcp_update_pacing_rate`): at `slow_start` times window per smoothed round trip while
    /// the window is below half of its threshold, else at `avoidance` times; the window, or what is
    /// unacknowledged where that is more. The first ten packets are not paced. An algorithm that
    /// manages the window in recovery (`cong_control`) has to pace itself: at 1.25 times the window
    /// per round trip where it has no rate of its own.
    Linux {
        /// `tcp_pacing_ss_ratio`, 2 by default.
        slow_start: f64,
        /// `tcp_pacing_ca_ratio`, 1.2 by default.
        avoidance: f64,
    },
}

impl Transport {
    /// QUIC: RFC 9000 and RFC 9002 with their recommended values, packets of 1500 bytes.
    pub const fn quic() -> Self {
        Self {
            packet: Bytes::new(1500),
            header: Bytes::new(60),
            ack_size: Bytes::new(70),
            initial_window: 10,
            min_window: 2,
            loss_detection: LossDetection::Rfc9002,
            probe_growth: None,
            ack_every: 2,
            max_ack_delay: Duration::from_millis(25),
            quick_acks: 0,
            ack_wait: Duration::ZERO,
            ack_wait_least: Duration::ZERO,
            timer_late: Duration::ZERO,
            pacing_credit: false,
            idle_restart: false,
            proportional_rate_reduction: false,
            pacing: Pacing::Multiple(1.25),
        }
    }

    /// QUIC as in the stack noq, whose pacer is a token bucket, and which waits at most 2 s longer for
    /// each further probe (`MAX_PTO_INTERVAL` in noq-proto 1.4).
    pub const fn noq() -> Self {
        Self { pacing_credit: true, probe_growth: Some(Duration::from_secs(2)), ..Self::quic() }
    }

    /// TCP as in Linux, timestamps on, paced by TCP itself or by the `fq` queueing discipline.
    pub const fn linux_tcp() -> Self {
        Self {
            packet: Bytes::new(1500),
            header: Bytes::new(52),
            ack_size: Bytes::new(52),
            initial_window: 10,
            min_window: 1,
            loss_detection: LossDetection::RackTlp,
            probe_growth: None,
            ack_every: 2,
            max_ack_delay: Duration::from_millis(40),
            quick_acks: 16,
            ack_wait: Duration::from_micros(100),
            ack_wait_least: Duration::from_micros(100),
            timer_late: Duration::ZERO,
            pacing_credit: false,
            idle_restart: true,
            proportional_rate_reduction: true,
            pacing: Pacing::Linux { slow_start: 2.0, avoidance: 1.2 },
        }
    }

    /// Bytes of application data in a full packet.
    pub fn payload(&self) -> Bytes {
        self.packet - self.header
    }

    /// What the congestion control algorithm is built from.
    pub fn cc_config(&self, seed: u64) -> Config {
        Config {
            mss: self.packet,
            initial_window: self.packet * self.initial_window,
            min_window: self.packet * self.min_window,
            paced: self.pacing != Pacing::Unpaced,
            seed,
            clock: Duration::ZERO,
        }
    }
}
