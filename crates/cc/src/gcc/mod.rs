//! Google congestion control (GCC), the rate controller of WebRTC: a target that follows the trend
//! of the one-way delay and the share of lost packets, with probes for what the path carries beyond
//! it.
//!
//! Read first: Carlucci et al., "Analysis and design of the Google congestion control for Web
//! real-time communication", MMSys 2016, and draft-ietf-rmcat-gcc-02. Where they differ, libwebrtc
//! (`modules/congestion_controller/goog_cc`, `modules/remote_bitrate_estimator`) is the authority;
//! the files name its files and functions. `groups.rs` and `trend.rs` see the delay grow, `aimd.rs`
//! makes a rate of that, `loss_v2.rs` and `observe.rs` one of the losses, and `target.rs` the target
//! of both; `probe.rs`, `cluster.rs` and `alr.rs` probe. `replay.rs` compares with libwebrtc.
//!
//! Six things are not in libwebrtc:
//! * A transport that never calls `on_feedback` gives acknowledgements. Each counts as an arrival
//!   now of the newest packet that it acknowledges, and there are no probes (`search.rs`).
//! * Such a transport paces at the target. Media is paced at 2.5 times that
//!   (`kDefaultPaceMultiplier`), as frames come in bursts.
//! * Congestion marks (ECN) bound window and target by `ceiling.rs`. Libwebrtc does not answer
//!   them.
//! * With the knob `competitive` at 1, it takes the share of a CUBIC flow next to flows that fill
//!   the queue (`rivals.rs`), and spreads its frames there. It is off by default.
//! * With the knob `probe_busy` above 0 it probes while the target is used, and with `probe_share`
//!   below 1 it takes a part of what a probe found. Both are off by default.
//! * A timeout halves the target. Libwebrtc waits for 3 s of silence, which counts here as well.

mod acked;
mod aimd;
mod alr;
mod capacity;
mod cluster;
mod control;
mod groups;
mod knobs;
mod loss_v2;
mod migrate;
mod observe;
mod probe;
#[cfg(test)]
mod replay;
mod rivals;
mod search;
mod target;
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
use self::probe::Probing;
use self::rivals::{Rivals, Seen};
use self::search::{Found, Search};
use self::target::Target;
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
/// A greater share of lost bytes ends the search for the capacity
/// (`send_side_bandwidth_estimation.cc` `kDefaultLowLossThreshold`).
const SEARCH_LOSS: f64 = 0.02;
/// Media is paced at so many times the target (`kDefaultPaceMultiplier`).
const PACE: f64 = 2.5;
/// … and next to others that fill the queue at so many: a frame that leaves at once is dropped at
/// the end of a full queue, and what others lose there is a packet. Ours.
const PACE_AMONG: f64 = 1.5;
/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "gcc",
    about: "the rate controller of WebRTC: follows the trend of the delay, bears what is \
            lost at any rate, and probes",
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
    target: Target,
    clusters: Clusters,
    probing: Probing,
    alr: Alr,
    in_alr: bool,
    rivals: Rivals,
    processed_at: Time,
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
            target: Target::new(start),
            clusters: Clusters::default(),
            probing: Probing::new(start, false),
            alr: Alr::default(),
            in_alr: false,
            rivals: Rivals::default(),
            processed_at: Time::ZERO,
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
        self.target = Target::new(rate);
        self.target.set(rate, &self.values);
        self.rivals = Rivals::default();
    }

    /// The same without probes, or with new ones. A media transport says with its first feedback
    /// that it is one.
    fn begin_with(&mut self, rate: Rate, search: Option<Search>) {
        self.begin(rate);
        self.probing = Probing::new(self.target.rate(), search.is_none());
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
        let least = Rate::from_mbps(self.values.rate_min);
        let most = Rate::from_mbps(self.values.rate_max);
        let target = self.rivals.rate(self.target.rate(), self.srtt).min(most).max(least);
        if !self.ceiling.is_set() || self.srtt.is_zero() {
            return target;
        }
        let marked = self.ceiling.get() / self.srtt;
        target.min(marked).max(least)
    }

    fn held(&self, over: Transport) -> Bytes {
        by_rate::window(self.rate(), self.srtt, over, &self.config)
    }

    fn held_of_media(&self) -> Bytes {
        let more = Duration::from_secs_f64(self.values.queue);
        by_rate::media_window(self.rate(), self.srtt, more, &self.config)
    }

    /// A packet arrived. Whether the queue of an overuse is gone with it.
    fn on_arrival(&mut self, packet: &Arrival, arrival: Time, now: Time) -> bool {
        if self.arrived_at.is_none_or(|at| now.since(at) > STREAM_TIMEOUT) {
            self.groups = Groups::default();
            self.trend = Trend::default();
        }
        self.arrived_at = Some(now);
        self.acked.add(packet.sent_at, arrival, packet.bytes);
        let before = self.trend.usage();
        if let Some(delta) = self.groups.add(packet.sent_at, arrival, now) {
            self.trend.add(delta, arrival, &self.values);
        }
        before == Usage::Under && self.trend.usage() == Usage::Normal
    }

    /// `GoogCcNetworkController::OnTransportPacketsFeedback()`.
    fn receive(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        self.notice_region(now);
        let (mut probed, mut recovered, mut arrived) = (None, false, false);
        for packet in feedback.packets {
            let Some(arrival) = packet.arrived_at else { continue };
            arrived = true;
            recovered |= self.on_arrival(packet, arrival, now);
            probed = self.clusters.add(packet).or(probed);
        }
        if arrived {
            self.aimd.rtt = feedback.rtt.unwrap_or(self.aimd.rtt);
            self.target.on_arrivals(now, feedback.rtt);
            self.target.loss.on_acked(self.acked.rate());
            self.weigh(probed, now);
        }
        self.target.on_report(self.in_alr, &self.values);
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
        if self.rivals.compete() {
            return;
        }
        let (usage, throughput) = (self.trend.usage(), self.acked.rate());
        match probed.filter(|_| usage != Usage::Over) {
            Some(probed) => {
                let probed = probed.mul_f64(self.values.probe_share);
                let kept = throughput.map_or(Rate::ZERO, |rate| rate.mul_f64(PROBE_DROP));
                self.go(probed.max(kept.min(self.aimd.rate())), now);
            }
            None => {
                if self.aimd.update(usage, throughput, now, &self.values) {
                    self.target.on_delay(self.aimd.rate(), &self.values);
                }
            }
        }
    }

    /// What the delays of a feedback say of those who share the queue.
    fn look_around(&mut self, feedback: &Feedback<'_>) {
        if !self.values.competitive {
            return;
        }
        for packet in feedback.packets {
            if let Some(arrived) = packet.arrived_at {
                self.rivals.on_arrival(packet.sent_at, arrived, feedback.now);
            }
        }
        let path = Seen {
            now: feedback.now,
            srtt: self.srtt,
            target: self.target.rate(),
            throughput: self.acked.rate(),
            loss: self.target.loss.share(),
            limits: self.config,
        };
        let before = self.rate();
        if self.rivals.look(&path) {
            // They are gone.
            self.target.loss.assume(before);
            self.go(before, feedback.now);
        }
    }

    /// Both parts go on at a rate that was measured.
    fn go(&mut self, rate: Rate, now: Time) {
        self.aimd.set(rate, now, &self.values);
        self.target.set(rate, &self.values);
        self.target.on_delay(self.aimd.rate(), &self.values);
    }

    /// `GoogCcNetworkController::OnProcessInterval()`.
    fn process(&mut self, now: Time) {
        self.processed_at = now;
        self.target.update(now, &self.values);
        if !matches!(self.told, Told::Acks(_)) {
            let (target, calm) = (self.rate(), self.is_calm());
            let growing = self.target.loss.is_growing();
            self.probing.on_target(target, now, calm, growing, &self.values);
        }
    }

    /// Whether a probe would tell something (`GetBandwidthLimitedCause()`).
    fn is_calm(&self) -> bool {
        self.rivals.are_gone()
            && self.trend.usage() == Usage::Normal
            && !self.target.is_stuck()
            && (!self.target.loss.limits() || self.target.loss.is_growing())
    }

    fn notice_region(&mut self, now: Time) {
        let inside = self.alr.since().is_some();
        if self.in_alr && !inside {
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
            || self.target.loss.share() > SEARCH_LOSS
            || self.ceiling.is_set();
        let carried = match found {
            _ if congested => search.carried(),
            Some(Found::Capacity(rate)) => rate,
            Some(Found::More(rate)) => {
                self.target.loss.assume(rate);
                return self.go(rate, ack.now);
            }
            None => return,
        };
        self.acked.assume(carried);
        self.target.loss.assume(carried);
        self.go(carried, ack.now);
        self.told = Told::Acks(None);
    }

    /// The start counts until something arrived; bounds do at once.
    fn on_knob(&mut self, _place: usize) {
        if matches!(self.told, Told::Nothing) {
            self.begin(self.start_rate());
            self.probing = Probing::new(self.target.rate(), false);
        }
    }
}
