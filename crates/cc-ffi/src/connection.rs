//! A connection's algorithm, and what takes over from a learnt policy that is not to be trusted any longer.

#[cfg(feature = "steer")]
use alloc::boxed::Box;
#[cfg(feature = "select")]
use alloc::sync::Arc;

use trimtab_cc::migrate::{HandOver, Migrate, PathView};
use trimtab_cc::muses::{Muses, Trees};
use trimtab_cc::{
    Ack, Config, CongestionControl, Controller, Discarded, Loss, Marked, Sent, Spec, Timeout,
};
#[cfg(feature = "select")]
use trimtab_steer::Steer;
#[cfg(feature = "select")]
use trimtab_steer::select::{Model, Selector, SelectorConfig};
use trimtab_units::Time;
#[cfg(feature = "select")]
use trimtab_units::{Bytes, Duration};

#[cfg(feature = "steer")]
use crate::steering::Steering;

/// The algorithm of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    cca: Controller,
    config: Config,
    /// What the next algorithm will need to know.
    path: PathView,
    /// What takes over when the guard of a learnt policy speaks.
    safe: Option<Spec>,
    #[cfg(feature = "steer")]
    steering: Option<Box<Steering>>,
}

impl Connection {
    /// With a rule-based algorithm.
    pub fn new(spec: &Spec, config: &Config) -> Self {
        Self::with(spec.build(config), None, config)
    }

    /// With the trees of a model; `safe` takes over for good when their guard speaks.
    pub fn learnt(trees: Trees<'static>, safe: Option<Spec>, config: &Config) -> Self {
        Self::with(Muses::with_trees(config, trees).into(), safe, config)
    }

    fn with(cca: Controller, safe: Option<Spec>, config: &Config) -> Self {
        Self {
            cca,
            config: *config,
            path: PathView::new(),
            safe,
            #[cfg(feature = "steer")]
            steering: None,
        }
    }

    /// Mortise turns the knobs from `now` on, by a QoE model. Another algorithm than Copa gives way
    /// to it.
    #[cfg(feature = "steer")]
    pub fn steer(&mut self, model: trimtab_qoe::Model, now: Time) {
        self.change(&Steering::algorithm(), now);
        self.steering = Some(Box::new(Steering::new(model, now)));
    }

    /// A learnt policy chooses the algorithm from `now` on. What the policy starts with takes over,
    /// or the candidate of this number where there is one.
    #[cfg(feature = "select")]
    pub fn select(&mut self, policy: Arc<Model>, begin_with: Option<usize>, now: Time) {
        let mut selector = Selector::new(SelectorConfig::of_model(policy));
        if let Some(spec) = begin_with.and_then(|i| selector.config().candidates.get(i).copied()) {
            selector.begin_with(spec);
        }
        self.change(&selector.algorithm(), now);
        self.steering = Some(Box::new(Steering::selecting(selector, now)));
    }

    /// The number of the candidate that suits the path best by the last state; `None` before the
    /// first choice, and where no policy chooses.
    #[cfg(feature = "select")]
    pub fn suited(&self) -> Option<usize> {
        let selector = self.steering.as_deref()?.selector()?;
        let spec = selector.suited()?;
        selector.config().candidates.iter().position(|candidate| candidate.is_same(&spec))
    }

    /// The last byte of a response left for the first time, so long after the application gave it.
    #[cfg(feature = "select")]
    pub fn on_response_sent(&mut self, wait: Duration) {
        if let Some(steering) = &mut self.steering {
            steering.collector_mut().on_response_sent(wait);
        }
    }

    /// The last byte of a response was acknowledged, so long after the application gave it.
    #[cfg(feature = "select")]
    pub fn on_response(&mut self, size: Bytes, took: Duration) {
        if let Some(steering) = &mut self.steering {
            steering.collector_mut().on_response_arrived(size, took);
        }
    }

    /// Bytes of responses that wait to be sent for the first time.
    #[cfg(feature = "select")]
    pub fn set_unsent(&mut self, unsent: Bytes) {
        if let Some(steering) = &mut self.steering {
            steering.set_unsent(unsent);
        }
    }

    /// The application's live factors, for the QoE model. `None` where nothing steers.
    #[cfg(feature = "steer")]
    pub fn factors_mut(&mut self) -> Option<&mut trimtab_qoe::Factors> {
        self.steering.as_deref_mut().map(Steering::factors_mut)
    }

    /// The algorithm that runs.
    pub fn controller(&self) -> &Controller {
        &self.cca
    }

    /// The same, to turn it.
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.cca
    }

    /// A packet left.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.path.on_sent(sent);
        self.cca.on_sent(sent);
        #[cfg(feature = "steer")]
        if let Some(steering) = &mut self.steering {
            steering.on_sent(sent);
        }
    }

    /// Data was acknowledged.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.path.on_ack(ack);
        self.cca.on_ack(ack);
        #[cfg(feature = "steer")]
        if let Some(steering) = &mut self.steering {
            steering.on_ack(ack);
        }
        self.give_way_if_alarmed(ack.now);
    }

    /// Packets were declared lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.path.on_loss(loss);
        self.cca.on_loss(loss);
        #[cfg(feature = "steer")]
        if let Some(steering) = &mut self.steering {
            steering.on_loss(loss);
        }
    }

    /// The path marked packets.
    pub fn on_marked(&mut self, marked: &Marked) {
        self.path.on_marked(marked);
        self.cca.on_marked(marked);
    }

    /// Everything in flight was written off.
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        self.path.on_timeout(timeout);
        self.cca.on_timeout(timeout);
    }

    /// Packets left flight that neither arrived nor were lost.
    pub fn on_discarded(&mut self, discarded: &Discarded) {
        self.path.on_discarded(discarded);
        self.cca.on_discarded(discarded);
    }

    /// Packets have another size, and with it the limits, their seed aside.
    pub fn on_mtu(&mut self, limits: &Config) {
        self.config = Config { seed: self.config.seed, ..*limits };
        self.cca.on_mtu(&self.config);
    }

    /// When [`on_timer`](Self::on_timer) wants to be called; `None` for never.
    pub fn next_timer(&self) -> Option<Time> {
        let timer = self.cca.next_timer();
        #[cfg(feature = "steer")]
        let timer = match &self.steering {
            Some(steering) => {
                let due = steering.next_timer();
                Some(timer.map_or(due, |timer| timer.min(due)))
            }
            None => timer,
        };
        timer
    }

    /// The time that [`next_timer`](Self::next_timer) gave has come.
    pub fn on_timer(&mut self, now: Time) {
        if self.cca.next_timer().is_some_and(|timer| timer <= now) {
            self.cca.on_timer(now);
        }
        #[cfg(feature = "steer")]
        if let Some(to) = self
            .steering
            .as_mut()
            .and_then(|steering| steering.on_timer(now, self.config.mss, &mut self.cca))
        {
            self.hand_over(&to, now);
        }
    }

    /// Another algorithm, or the same with other knobs, goes on at `now`. The knobs of the same one
    /// turn, and nothing else changes. Another takes over with what is known of the path; before
    /// the first round trip that is nothing, and it begins anew. Nothing steers from then on.
    pub fn change(&mut self, to: &Spec, now: Time) {
        #[cfg(feature = "steer")]
        {
            self.steering = None;
        }
        self.hand_over(to, now);
    }

    fn hand_over(&mut self, to: &Spec, now: Time) {
        let wanted = to.build(&self.config);
        if to.algorithm().name == self.cca.name() {
            for i in 0..wanted.knobs().len() {
                if let Some(value) = wanted.knob(i).filter(|value| self.cca.knob(i) != Some(*value))
                {
                    self.cca.apply_knob(i, value);
                }
            }
        } else {
            self.replace(wanted, now);
        }
    }

    fn replace(&mut self, mut new: Controller, now: Time) {
        if let Some(record) = HandOver::of(&self.cca, &self.path, now) {
            new.take_over(&record);
        }
        self.cca = new;
        self.safe = None;
    }

    fn give_way_if_alarmed(&mut self, now: Time) {
        if let (Some(spec), Controller::Muses(muses)) = (&self.safe, &self.cca)
            && muses.alarm().is_some()
            && self.path.min_rtt().is_some()
        {
            let new = spec.build(&self.config);
            self.replace(new, now);
        }
    }
}
