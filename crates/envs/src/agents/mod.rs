//! Flows whose rate or window an agent sets, interval by interval: what `trimtab/Rate-v0` and
//! `trimtab/Window-v0` of the Python package are made of.
//!
//! An [`Arena`] is a world whose first flows are agents'. Tables say what there is to choose from:
//! [`MEASURES`] what can be seen of an interval, [`REWARDS`] what it is worth, [`TURNS`] what an
//! action means.
//!
//! What to read first: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion
//! Control" (Aurora, ICML 2019), §3; then [`Arena::step`].

mod action;
mod measure;
mod reward;

use std::sync::Arc;

use trimtab_net::Capacity;
use trimtab_sim::{Control, Dial, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Time};

pub use action::{Interval, Knob, TURNS, Turn};
pub use measure::{MEASURES, Measure, OBSERVATION_SETS, ObservationSet, Past, View};
pub use reward::{REWARDS, Reward};

/// An interval is at least so long, but for one that an acknowledgement ends.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What the arenas of one environment have in common.
#[derive(Clone, Debug)]
pub struct ArenaRules {
    /// What agents turn.
    pub knob: Knob,
    /// What an action means.
    pub turn: Turn,
    /// The least and the most that the knob can be set to: Mbit/s or packets.
    pub range: (f64, f64),
    /// What it begins with; `None` for ten packets in a round trip.
    pub start: Option<f64>,
    /// How long an action lasts.
    pub interval: Interval,
    /// What is seen of an interval.
    pub observe: Vec<Measure>,
    /// How many intervals are seen, the present one included; one at least.
    pub history: usize,
    /// What an interval is worth; `None` leaves that to the caller, by the measures.
    pub reward: Option<Reward>,
    /// The most steps of an episode; `None` for as many as its time allows.
    pub steps: Option<u32>,
}

impl ArenaRules {
    /// The least and the most that an action is.
    pub fn action_range(&self) -> (f64, f64) {
        self.turn.range.unwrap_or(self.range)
    }

    /// Numbers in an observation of one agent.
    pub fn observation_len(&self) -> usize {
        self.observe.len() * self.history
    }
}

/// A world whose first flows are set by agents. A clone goes on as the original would.
#[derive(Clone, Debug)]
pub struct Arena {
    rules: Arc<ArenaRules>,
    world: World,
    capacity: Capacity,
    agents: Vec<Agent>,
    /// The end of the episode.
    end: Time,
    /// When the interval began, and how many there were.
    since: Time,
    steps: u32,
}

/// One agent's flow.
#[derive(Clone, Debug)]
struct Agent {
    /// What its knob is set to.
    value: f64,
    past: Past,
    measures: [f64; MEASURES.len()],
    reward: f64,
    /// What it observes, the oldest interval first.
    seen: Vec<f32>,
}

impl Arena {
    /// What governs the flows of agents in a [`WorldConfig`], until the arena sets them.
    pub const CONTROL: Control =
        Control::Outside(Dial { window: Bytes::new(15_000), rate: None, stop: false });

    /// Begins an episode that lasts until `end`, in which the first `agents` flows are agents'; one
    /// at least. It runs until the first of them gets its first acknowledgement. `start` goes before
    /// that of the rules.
    ///
    /// # Panics
    /// These flows are not under [`Arena::CONTROL`], or there is no link.
    pub fn new(
        rules: Arc<ArenaRules>,
        config: &WorldConfig,
        agents: usize,
        start: Option<f64>,
        end: Time,
    ) -> Self {
        let capacity = config.links[0].0.capacity.clone();
        let world = World::new(config);
        let agent = |flow: usize| {
            let own = || rules.knob.start(world.flows()[flow].srtt());
            let value = start.or(rules.start).unwrap_or_else(own);
            Agent {
                value: value.clamp(rules.range.0, rules.range.1),
                past: Past::default(),
                measures: [0.0; MEASURES.len()],
                reward: 0.0,
                seen: vec![0.0; rules.observation_len()],
            }
        };
        let agents = (0..agents.max(1)).map(agent).collect();
        let mut arena = Self { rules, world, capacity, agents, end, since: Time::ZERO, steps: 0 };
        arena.begin();
        arena
    }

    fn begin(&mut self) {
        for flow in 0..self.agents.len() {
            self.set(flow, flow == 0);
        }
        self.world.run_to_decision(self.end);
        self.set(0, self.rules.interval == Interval::Ack);
        self.look();
        for agent in &mut self.agents {
            // There was nothing before: it counts as if it had always been so.
            let width = self.rules.observe.len();
            let newest = agent.seen.len() - width;
            for older in 0..self.rules.history - 1 {
                agent.seen.copy_within(newest.., older * width);
            }
        }
    }

    fn set(&mut self, flow: usize, stop: bool) {
        let done = self.world.set(flow, self.rules.knob.dial(self.agents[flow].value, stop));
        assert!(done, "flow {flow} is not an agent's: make it under Arena::CONTROL");
    }

    /// Takes an action of each agent and runs an interval. An action beyond its range counts as the
    /// range's end. Nothing happens once the episode is [over](Self::is_done).
    ///
    /// # Panics
    /// There are not as many actions as agents.
    pub fn step(&mut self, actions: &[f32]) {
        assert_eq!(actions.len(), self.agents.len(), "an action for each agent");
        if self.is_done() {
            return;
        }
        let (low, high) = self.rules.action_range();
        for (flow, &action) in actions.iter().enumerate() {
            let agent = &mut self.agents[flow];
            let turned = (self.rules.turn.of)(agent.value, f64::from(action).clamp(low, high));
            agent.value = turned.clamp(self.rules.range.0, self.rules.range.1);
            self.set(flow, self.rules.interval == Interval::Ack);
        }
        match self.rules.interval {
            Interval::RoundTrips(trips) => {
                let longest = self.agents.iter().map(|agent| agent.past.rtt).max();
                self.run(longest.unwrap_or_default().mul_f64(trips));
            }
            Interval::Time(time) => self.run(time),
            Interval::Ack => {
                self.world.run_to_decision(self.end);
            }
        }
        self.steps += 1;
        self.look();
    }

    fn run(&mut self, length: Duration) {
        let until = self.world.now() + length.max(INTERVAL_MIN);
        self.world.run_until(until.min(self.end));
    }

    /// Ends the interval: what each agent sees of it.
    fn look(&mut self) {
        let (now, queue) = (self.world.now(), self.world.queue(0));
        let span = now.since(self.since);
        let carried = self.capacity.bytes_between(self.since, now);
        let capacity = if span.is_zero() { self.capacity.mean_rate() } else { carried / span };
        self.since = now;
        let width = self.rules.observe.len();
        for (flow, agent) in self.agents.iter_mut().enumerate() {
            let Some(sight) = self.world.take_sight(flow) else { continue };
            agent.past.observe(&sight);
            let dial = self.rules.knob.dial(agent.value, false);
            let view = View { sight: &sight, dial, past: agent.past, capacity, queue };
            for (value, measure) in agent.measures.iter_mut().zip(&MEASURES) {
                *value = (measure.of)(&view);
            }
            agent.reward = self.rules.reward.map_or(0.0, |reward| (reward.of)(&view));
            let newest = agent.seen.len() - width;
            agent.seen.copy_within(width.., 0);
            for (place, measure) in agent.seen[newest..].iter_mut().zip(&self.rules.observe) {
                let (low, high) = measure.range;
                *place = (measure.of)(&view).clamp(low, high) as f32;
            }
        }
    }

    /// Whether its time or its steps are up.
    pub fn is_done(&self) -> bool {
        self.world.now() >= self.end || self.rules.steps.is_some_and(|most| self.steps >= most)
    }

    /// What an agent observes: [`ArenaRules::observe`] of each interval of the history, the oldest
    /// first.
    pub fn observation(&self, agent: usize) -> &[f32] {
        &self.agents[agent].seen
    }

    /// What the last interval was worth to an agent; 0 where the rules leave that to the caller.
    pub fn reward(&self, agent: usize) -> f64 {
        self.agents[agent].reward
    }

    /// [`MEASURES`] of the last interval of an agent.
    pub fn measures(&self, agent: usize) -> &[f64; MEASURES.len()] {
        &self.agents[agent].measures
    }

    /// Events simulated so far.
    pub fn events(&self) -> u64 {
        self.world.events()
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }
}
