//! Google congestion control (GCC), the rate controller of WebRTC: a target that follows the trend
//! of the one-way delay and the share of lost packets, with probes for what the path carries beyond
//! it.
//!
//! Read first: Carlucci et al., "Analysis and design of the Google congestion control for Web
//! real-time communication", MMSys 2016, and draft-ietf-rmcat-gcc-02. Where they differ, libwebrtc
//! (`modules/congestion_controller/goog_cc`, `modules/remote_bitrate_estimator`) is the authority;
//! the files name its files and functions. `groups.rs` and `trend.rs` see the delay grow, `aimd.rs`
//! makes a rate of that, `loss.rs` and `likelihood.rs` the target of both; `probe.rs`, `cluster.rs`
//! and `alr.rs` probe.
//!
//! Four things are not in libwebrtc:
//! * A transport that never calls `on_feedback` gives acknowledgements. Each counts as an arrival
//!   now of the newest packet that it acknowledges, and there are no probes (`search.rs`).
//! * Such a transport paces at the target. Media is paced at 2.5 times that
//!   (`kDefaultPaceMultiplier`), as frames come in bursts.
//! * Congestion marks (ECN) bound window and target by `ceiling.rs`. Libwebrtc does not answer
//!   them.
//! * A timeout halves the target. Libwebrtc waits for 3 s of silence, which counts here as well.

mod acked;
mod aimd;
mod alr;
mod capacity;
mod cluster;
mod control;
mod groups;
mod knobs;
mod likelihood;
mod loss;
mod migrate;
mod probe;
mod search;
#[cfg(test)]
mod tests;
mod trend;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::acked::Acked;
use self::aimd::Aimd;
use self::alr::Alr;
use self::cluster::Clusters;
use self::groups::Groups;
use self::knobs::Values;
use self::likelihood::{Counted, Limit};
use self::loss::LossPart;
use self::probe::Probing;
use self::search::{Found, Search};
use self::trend::{Trend, Usage};
use crate::by_rate::{self, Transport};
use crate::ceiling::Ceiling;
use crate::{Ack, Algorithm, Arrival, Config, Feedback, Knob, Preset};

/// After so long without an arrival groups and trend begin anew (`delay_based_bwe.cc`
/// `kStreamTimeOut`).
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the loss part looks without a feedback (`rtp_transport_controller_send.cc`
/// `kUpdateInterval`).
const PROCESS_EVERY: Duration = Duration::from_millis(25);
/// A probe's result is no reason to fall below this share of what arrives
/// (`goog_cc_network_control.cc` `kProbeDropThroughputFraction`).
const PROBE_DROP: f64 = 0.85;
/// Media is paced at so many times the target (`kDefaultPaceMultiplier`).
const PACE: f64 = 2.5;
/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "gcc",
    about: "the rate controller of WebRTC: follows the trend of the delay, bears up to 10% of loss, \
            and probes",
    source: "Carlucci et al., MMSys 2016; draft-ietf-rmcat-gcc-02; libwebrtc goog_cc",
    knobs: Gcc::KNOBS,
    presets: Gcc::PRESETS,
    build: |config| Gcc::new(config).into(),
};

/// Where what it knows comes from.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// Nothing arrived yet.
    Nothing,
    /// Acknowledgements; the search for the capacity runs, or is over.
    Acks(Option<Search>),
    /// Feedback of media.
    Media,
}

/// The GCC state machine.
///
/// ```text
///   arrivals ──▶ groups ──▶ trend ──▶ aimd ─┐
///      │                                    ├──▶ loss part ──▶ target ──▶ probing ──▶ probes
///      ├────────▶ acked ──────────▶ aimd    │                    │
///      └────────▶ clusters (probes) ────────┘   sent ──▶ alr ◀───┘
/// ```
#[derive(Clone, Debug)]
pub struct Gcc {
    config: Config,
    values: Values,
    told: Told,
    groups: Groups,
    trend: Trend,
    arrived_at: Option<Time>,
    acked: Acked,
    aimd: Aimd,
    loss: LossPart,
    clusters: Clusters,
    probing: Probing,
    alr: Alr,
    in_alr: bool,
    alr_ended_at: Option<Time>,
    processed_at: Time,
    /// Lost packets that no acknowledgement has counted.
    lost: u32,
    srtt: Duration,
    ceiling: Ceiling,
}

impl Gcc {
    /// What can be turned.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;
    /// Other forms of it.
    pub const PRESETS: &'static [Preset] = knobs::PRESETS;

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        let start = Rate::from_mbps(values.rate_start);
        Self {
            config: *config,
            values,
            told: Told::Nothing,
            groups: Groups::default(),
            trend: Trend::default(),
            arrived_at: None,
            acked: Acked::default(),
            aimd: Aimd::new(start),
            loss: LossPart::new(start, &values),
            clusters: Clusters::default(),
            probing: Probing::new(start, false),
            alr: Alr::default(),
            in_alr: false,
            alr_ended_at: None,
            processed_at: Time::ZERO,
            lost: 0,
            srtt: Duration::ZERO,
            ceiling: Ceiling::default(),
        }
    }

    /// Forgets what was estimated, and goes on at a rate. Probes that are under way still count.
    fn begin(&mut self, rate: Rate) {
        self.groups = Groups::default();
        self.trend = Trend::default();
        self.arrived_at = None;
        self.acked = Acked::default();
        self.aimd = Aimd::new(rate);
        self.loss = LossPart::new(rate, &self.values);
        self.loss.set(rate, &self.values);
    }

    /// The same without probes, or with new ones. A media transport says with its first feedback
    /// that it is one.
    fn begin_with(&mut self, rate: Rate, search: Option<Search>) {
        self.begin(rate);
        self.probing = Probing::new(self.loss.target(), search.is_none());
        self.told = Told::Acks(search);
    }

    fn start_rate(&self) -> Rate {
        Rate::from_mbps(self.values.rate_start)
    }

    /// The initial window in each round trip (RFC 6928); zero before that is known.
    fn window_rate(&self) -> Rate {
        if self.srtt.is_zero() { Rate::ZERO } else { self.config.initial_window / self.srtt }
    }

    /// What both parts and congestion marks leave.
    fn rate(&self) -> Rate {
        let target = self.loss.target();
        if !self.ceiling.is_set() || self.srtt.is_zero() {
            return target;
        }
        let marked = self.ceiling.get() / self.srtt;
        target.min(marked).max(Rate::from_mbps(self.values.rate_min))
    }

    fn held(&self, over: Transport) -> Bytes {
        by_rate::window(self.rate(), self.srtt, over, &self.config)
    }

    /// A packet arrived. Whether the queue of an overuse is gone with it.
    fn on_arrival(&mut self, packet: &Arrival, arrival: Time, now: Time) -> bool {
        if self.arrived_at.is_none_or(|at| now.since(at) > STREAM_TIMEOUT) {
            self.groups = Groups::default();
            self.trend = Trend::default();
        }
        self.arrived_at = Some(now);
        if self.alr_ended_at.is_some_and(|at| packet.sent_at > at) {
            self.alr_ended_at = None;
            self.acked.expect_change();
        }
        self.acked.add(arrival, packet.bytes);
        let before = self.trend.usage();
        if let Some(delta) = self.groups.add(packet.sent_at, arrival, now) {
            self.trend.add(delta, arrival, &self.values);
        }
        before == Usage::Under && self.trend.usage() == Usage::Normal
    }

    /// `GoogCcNetworkController::OnTransportPacketsFeedback()`.
    fn receive(&mut self, feedback: &Feedback<'_>, counted: &Counted) {
        let now = feedback.now;
        self.loss.count(counted);
        self.notice_region(now);
        let (mut probed, mut recovered, mut arrived) = (None, false, false);
        for packet in feedback.packets {
            let Some(arrival) = packet.arrived_at else { continue };
            arrived = true;
            recovered |= self.on_arrival(packet, arrival, now);
            probed = self.clusters.add(packet).or(probed);
        }
        if !arrived {
            return;
        }
        self.aimd.rtt = feedback.rtt.unwrap_or(self.aimd.rtt);
        self.loss.on_feedback(now, feedback.rtt);
        self.weigh(probed, now);
        self.loss.weigh(counted, self.acked.rate(), self.in_alr, &self.values);
        self.process(now);
        if recovered {
            self.probing.on_recovered(now, self.in_alr, &self.values);
        }
    }

    /// `DelayBasedBwe::MaybeUpdateEstimate()`: a probe's result counts, unless the delay grows.
    fn weigh(&mut self, probed: Option<Rate>, now: Time) {
        if matches!(self.told, Told::Acks(Some(_))) {
            // The search has its own measure of what arrives.
            return;
        }
        let (usage, throughput) = (self.trend.usage(), self.acked.rate());
        match probed.filter(|_| usage != Usage::Over) {
            Some(probed) => {
                let kept = throughput.map_or(Rate::ZERO, |rate| rate.mul_f64(PROBE_DROP));
                self.go(probed.max(kept.min(self.aimd.rate())), now);
            }
            None => {
                if self.aimd.update(usage, throughput, now, &self.values) {
                    self.loss.on_delay(self.aimd.rate(), &self.values);
                }
            }
        }
    }

    /// Both parts go on at a rate that was measured.
    fn go(&mut self, rate: Rate, now: Time) {
        self.aimd.set(rate, now, &self.values);
        self.loss.set(rate, &self.values);
        self.loss.on_delay(self.aimd.rate(), &self.values);
    }

    /// `GoogCcNetworkController::OnProcessInterval()`.
    fn process(&mut self, now: Time) {
        self.processed_at = now;
        self.loss.update(now, &self.values);
        if !matches!(self.told, Told::Acks(_)) {
            let (target, calm) = (self.rate(), self.is_calm());
            let growing = self.loss.limited_by() == Limit::Growing;
            self.probing.on_target(target, now, calm, growing, &self.values);
        }
    }

    /// Whether a probe would tell something (`GetBandwidthLimitedCause()`).
    fn is_calm(&self) -> bool {
        self.trend.usage() == Usage::Normal
            && !self.loss.is_stuck()
            && self.loss.limited_by() != Limit::Falling
    }

    fn notice_region(&mut self, now: Time) {
        let inside = self.alr.since().is_some();
        if self.in_alr && !inside {
            self.alr_ended_at = Some(now);
            self.probing.on_alr_ended(now);
        }
        self.in_alr = inside;
    }

    /// What the search for the capacity makes of an acknowledgement.
    fn search(&mut self, ack: &Ack) {
        let Told::Acks(Some(search)) = &mut self.told else { return };
        let app_limited =
            self.alr.since().is_some() || ack.rate.is_some_and(|sample| sample.app_limited);
        let found = search.on_ack(ack, app_limited);
        let congested = self.trend.usage() == Usage::Over
            || self.loss.share() > self.values.loss_low
            || self.ceiling.is_set();
        let carried = match found {
            _ if congested => search.carried(),
            Some(Found::Capacity(rate)) => rate,
            Some(Found::More(rate)) => return self.go(rate, ack.now),
            None => return,
        };
        self.acked.assume(carried);
        self.go(carried, ack.now);
        self.told = Told::Acks(None);
    }

    /// The start counts until something arrived; bounds do at once.
    fn on_knob(&mut self, _place: usize) {
        self.loss.on_knob(&self.values);
        if matches!(self.told, Told::Nothing) {
            self.begin(self.start_rate());
            self.probing = Probing::new(self.loss.target(), false);
        }
    }
}
