//! When one algorithm gives way to another.

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::{HandOver, Migrate, OperatingPoint, PathView};
use crate::muses::{DRIVEN, Muses, State};
use crate::{
    ALGORITHMS, Ack, Config, CongestionControl, Controller, Decision, Discarded, Feedback, Idle,
    Knob, Loss, LostPacket, Marked, Phase, Probe, Sent, Spec, Timeout,
};

/// How much goes over to the new algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// All that is known of the path, into the converged phase, once the old algorithm is in its own.
    Full,
    /// The window and the round-trip time only, at once: the baseline, and what a transport does that
    /// knows nothing of migration.
    Part,
}

/// A congestion control algorithm that can be changed for another while the connection runs.
///
/// ```
/// use trimtab_cc::migrate::{Switch, Switcher};
/// use trimtab_cc::{Config, CongestionControl, Spec};
/// use trimtab_units::Time;
///
/// let spec = |name: &str| name.parse::<Spec>().unwrap();
/// let mut cca = Switcher::new(spec("cubic"), &Config::default());
/// cca.request(spec("copa"), Switch::Full, Time::ZERO);
/// // CUBIC is in slow start: it goes on until it has converged.
/// assert_eq!(cca.spec().algorithm().name, "cubic");
/// assert_eq!(cca.pending().unwrap().algorithm().name, "copa");
/// ```
#[derive(Clone, Debug)]
pub struct Switcher {
    cca: Controller,
    spec: Spec,
    config: Config,
    kept: [Option<Kept>; ALGORITHMS.len()],
    path: PathView,
    pending: Option<Spec>,
    /// Whether any algorithm of this connection ever converged, or did since the last one that losses had held back.
    converged: bool,
    switches: u64,
    /// What takes over from a learnt policy that is not trusted any longer.
    safe: Option<Spec>,
}

/// The knobs of an algorithm when another took over from it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// As it was asked for.
    asked: Spec,
    /// As it was left.
    left: Spec,
}

impl Switcher {
    /// A new connection that starts with the algorithm of `spec`.
    pub fn new(spec: Spec, config: &Config) -> Self {
        Self {
            cca: spec.build(config),
            spec,
            config: *config,
            kept: [None; ALGORITHMS.len()],
            path: PathView::new(),
            pending: None,
            converged: false,
            switches: 0,
            safe: None,
        }
    }

    /// A new connection that starts with a learnt policy, and goes on with the algorithm of `safe`
    /// when the policy's guard speaks ([`Muses::alarm`]).
    pub fn guarded(muses: Muses, safe: Spec, config: &Config) -> Self {
        let spec = Spec::of(&DRIVEN);
        Self { cca: muses.into(), safe: Some(safe), ..Self::new(spec, config) }
    }

    /// Asks for another algorithm. A full switch (Floo §3.4, "CCA Phase Migration") waits until the
    /// running one has converged and no loss is being repaired: what a search for capacity or
    /// ProbeRTT has seen is no picture of the path, and is soon over. Another request takes the
    /// place of one that waits; one for the algorithm that runs cancels it.
    ///
    /// The knobs of the new algorithm are those of its spec; where it ran before by the same spec,
    /// they are as it was left, so that what was turned meanwhile is not lost.
    pub fn request(&mut self, spec: Spec, how: Switch, now: Time) {
        self.pending = None;
        if spec.is_same(&self.spec) {
            return;
        }
        match how {
            Switch::Part => {
                let mut new = self.build(&spec);
                new.inherit(self.cca.window(), self.path.srtt());
                self.install(spec, new);
            }
            Switch::Full => {
                self.pending = Some(spec);
                self.switch_if_converged(now);
            }
        }
    }

    /// Turns the knobs of the algorithm that runs to those of another spec of it, and forgets a
    /// request that waits. All that it knows stays. `false` where another algorithm runs: nothing
    /// changes.
    pub fn turn(&mut self, to: Spec) -> bool {
        if to.algorithm().name != self.spec.algorithm().name {
            return false;
        }
        let wanted = to.build(&self.config);
        for i in 0..wanted.knobs().len() {
            if let Some(value) = wanted.knob(i).filter(|value| self.cca.knob(i) != Some(*value)) {
                self.cca.apply_knob(i, value);
            }
        }
        (self.spec, self.pending) = (to, None);
        true
    }

    /// Lets another algorithm take over at once, with all that is known of the path, where the running
    /// one does harm: it may never converge, and losses are repaired because of it. The queue that it
    /// leaves behind is known as such, as it would not be with a part switch.
    pub fn give_way(&mut self, to: Spec, now: Time) {
        self.pending = None;
        if to.is_same(&self.spec) {
            return;
        }
        let mut new = self.build(&to);
        match HandOver::of(&self.cca, &self.path, now) {
            Some(record) => new.take_over(&record),
            None => new.inherit(self.cca.window(), self.path.srtt()),
        }
        self.install(to, new);
    }

    /// The algorithm that runs.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The algorithm that is to take over once the running one has converged.
    pub fn pending(&self) -> Option<&Spec> {
        self.pending.as_ref()
    }

    /// How often another algorithm took over.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// What the connection knows of its path.
    pub fn path(&self) -> &PathView {
        &self.path
    }

    /// The algorithm that runs.
    pub fn controller(&self) -> &Controller {
        &self.cca
    }

    /// The algorithm that runs, to turn its knobs.
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.cca
    }

    /// Floo §3.4: not in a phase that has not converged, whose observations are unreliable.
    fn switch_if_converged(&mut self, now: Time) {
        self.converged |= self.cca.is_converged();
        let ready = self.cca.is_converged() && !self.path.in_recovery();
        let Some(spec) = self.pending.filter(|_| ready) else { return };
        if let Some(record) = HandOver::of(&self.cca, &self.path, now) {
            let mut new = self.build(&spec);
            new.take_over(&record);
            // What searches for the path's capacity again knows as little as a new connection.
            self.converged &= !record.starved;
            self.install(spec, new);
        }
    }

    fn give_way_if_alarmed(&mut self, now: Time) {
        if let (Some(safe), Controller::Muses(muses)) = (self.safe, &self.cca)
            && muses.alarm().is_some()
            && self.path.min_rtt().is_some()
        {
            self.give_way(safe, now);
        }
    }

    /// Where nothing ever converged there is nothing to hand over, and waiting for it may take for
    /// ever (small responses over one long connection). So the new algorithm starts from the
    /// beginning, at a moment when nothing is in flight.
    fn start_over_if_nothing_is_known(&mut self, sent: &Sent) {
        if !self.converged
            && !self.cca.is_converged()
            && sent.inflight <= sent.bytes
            && !self.path.delivered().is_zero()
            && let Some(spec) = self.pending
        {
            let mut new = self.build(&spec);
            let srtt = self.path.srtt();
            if !srtt.is_zero() {
                new.on_established(srtt);
            }
            self.install(spec, new);
        }
    }

    fn build(&self, spec: &Spec) -> Controller {
        let same = |kept: &&Kept| kept.asked.is_same(spec);
        self.kept.iter().flatten().find(same).map_or(spec, |kept| &kept.left).build(&self.config)
    }

    /// Floo Table 3, parameter variables: notes the knobs of the algorithm that runs, one note for
    /// each algorithm.
    fn keep_knobs(&mut self) {
        let (asked, mut left) = (self.spec, self.spec);
        for (i, knob) in self.cca.knobs().iter().enumerate() {
            let set = asked.settings().iter().find(|(name, _)| *name == knob.name);
            let before = set.map_or(knob.default, |(_, value)| *value);
            if let Some(value) = self.cca.knob(i)
                && value != before
            {
                let kept = left.set(knob.name, value);
                debug_assert!(kept.is_ok(), "it is the knob's own value");
            }
        }
        let same = |name: &str| ALGORITHMS.iter().position(|a| a.name == name);
        if let Some(place) = same(asked.algorithm().name) {
            self.kept[place] = Some(Kept { asked, left });
        }
    }

    fn install(&mut self, spec: Spec, new: Controller) {
        self.keep_knobs();
        self.path.forget_losses();
        self.cca = new;
        self.spec = spec;
        self.pending = None;
        self.switches += 1;
    }
}

/// A hand-over from outside is one to the algorithm that runs.
impl Migrate for Switcher {
    fn is_converged(&self) -> bool {
        self.cca.is_converged()
    }

    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        self.cca.operating_point(path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.cca.take_over(from);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.cca.inherit(window, srtt);
    }

    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.cca.retreat(from, ssthresh);
    }
}

impl CongestionControl for Switcher {
    fn on_established(&mut self, rtt: Duration) {
        self.cca.on_established(rtt);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.start_over_if_nothing_is_known(sent);
        self.path.on_sent(sent);
        self.cca.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.path.on_ack(ack);
        self.cca.on_ack(ack);
        self.give_way_if_alarmed(ack.now);
        self.switch_if_converged(ack.now);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.cca.on_packet_lost(lost);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.path.on_loss(loss);
        self.cca.on_loss(loss);
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.path.on_marked(marked);
        self.cca.on_marked(marked);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.path.on_timeout(timeout);
        self.cca.on_timeout(timeout);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = Config { seed: self.config.seed, ..*limits };
        self.cca.on_mtu(limits);
    }

    fn on_discarded(&mut self, discarded: &Discarded) {
        self.path.on_discarded(discarded);
        self.cca.on_discarded(discarded);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.cca.on_spurious_loss(now);
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.cca.on_idle(idle);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.cca.on_feedback(feedback);
    }

    fn awaiting(&self) -> Option<&State> {
        self.cca.awaiting()
    }

    fn on_decision(&mut self, decision: Decision) {
        self.cca.on_decision(decision);
    }

    fn on_timer(&mut self, now: Time) {
        self.cca.on_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.cca.next_timer()
    }

    fn window(&self) -> Bytes {
        self.cca.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.cca.pacing_rate()
    }

    fn target(&self) -> Option<Rate> {
        self.cca.target()
    }

    fn take_probe(&mut self, now: Time) -> Option<Probe> {
        self.cca.take_probe(now)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.cca.ssthresh()
    }

    fn phase(&self) -> Phase {
        self.cca.phase()
    }

    fn manages_recovery(&self) -> bool {
        self.cca.manages_recovery()
    }

    fn knobs(&self) -> &'static [Knob] {
        self.cca.knobs()
    }

    fn knob(&self, index: usize) -> Option<f64> {
        self.cca.knob(index)
    }

    fn apply_knob(&mut self, index: usize, value: f64) {
        self.cca.apply_knob(index, value);
    }
}
