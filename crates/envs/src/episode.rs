//! One episode: a connection over one path, or some that share it, in which an algorithm is chosen
//! every selection period.

use std::sync::Arc;

use trimtab_apps::{
    App, Application, CdnDistribution, DownloadConfig, RequestRecord, WebConfig, Workload,
};
use trimtab_cc::migrate::Switch;
use trimtab_cc::{Controller, Spec};
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::Steerer;
use trimtab_steer::select::antelope::Measured;
use trimtab_steer::select::{FEATURES, Policy, Selector, SelectorConfig, State, running};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::condition::Condition;
use crate::rivals::{Rival, RivalKind};

/// The smallest buffer, whatever the product of rate and delay says: two packets, as scenarios have it.
const BUFFER_MIN: Bytes = Bytes::new(3_000);

/// What the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// A mobile web service with a user who pauses between clicks.
    Web,
    /// The same without pauses, as Floo trains (§4.2 filters them out).
    WebBurst,
    /// Files of a CDN by Mortise's distribution (Appendix B).
    Download,
}

impl Traffic {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Web, Self::WebBurst, Self::Download];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::WebBurst => "web-burst",
            Self::Download => "download",
        }
    }

    /// The client of one connection.
    pub(crate) fn client(self, length: Duration, seed: u64) -> App {
        let web = WebConfig { seed, length: Some(length), ..WebConfig::default() };
        match self {
            Self::Web => App::web(&web),
            Self::WebBurst => App::web(&WebConfig { clicks: None, ..web }),
            Self::Download => App::download(DownloadConfig::new(Workload::draw(
                &CdnDistribution::default(),
                length,
                seed,
            ))),
        }
    }
}

/// What the episodes of one training have in common.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The algorithms to choose from.
    pub algorithms: Arc<[Spec]>,
    /// How long a choice lasts. Floo: 12 s.
    pub period: Duration,
    /// Periods of an episode, the first one included, which runs before anything is chosen.
    pub periods: u32,
    /// What goes over from one algorithm to the next.
    pub switch: Switch,
    /// What a period's experience is.
    pub objective: Objective,
}

/// What summarises the completion times of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Their mean (Floo §3.3).
    Mean,
    /// Their 90th percentile (Floo §5.5.2).
    P90,
}

/// What is drawn anew for each episode.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The bottleneck's capacity.
    pub link: Capacity,
    /// The rest of the path.
    pub condition: Condition,
    /// The application.
    pub traffic: Traffic,
    /// Connections that share the path, each with requests of its own; one at least.
    pub flows: usize,
    /// Flows of others that share it, too.
    pub rivals: Vec<Rival>,
    /// The algorithm of the first period, by its number.
    pub start: usize,
    /// Seed of the requests.
    pub seed: u64,
    /// Seed of the losses and the jitter. A [`Course`](crate::Course) has the same for both.
    pub luck: u64,
}

/// What one period came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// ln(last / current) of the completion time (Floo §3.3). Zero where one of them is unknown: a
    /// period in which nothing completed.
    pub reward: f64,
    /// Completion time of the requests that completed in the period, by the objective.
    pub completion: Option<Duration>,
    /// Requests that completed in the period.
    pub completed: u32,
    /// Time that requests spent outstanding in the period, summed over them. Over an episode these add
    /// up to the sum of all completion times (Little's law), so choices compare by them without
    /// waiting for each request's end.
    pub waited: Duration,
    /// Share of its packets that were declared lost in the period, 0 to 1.
    pub lost: f64,
    /// What rivals received in the period.
    pub rivals: Bytes,
    /// Whether this was the last period.
    pub done: bool,
}

/// What a choice comes to that is kept for some periods, tried on a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Its own cost; see [`Episode::costs`].
    pub cost: Duration,
    /// Share of its packets that were declared lost, 0 to 1.
    pub lost: f64,
    /// What rivals received meanwhile.
    pub rivals: Bytes,
}

impl Outcome {
    /// The harm to rivals: the share of what they would have received next to CUBIC in its place
    /// that they do not, 0 to 1. `cubic` is [`Episode::next_to_cubic`].
    pub fn harm(&self, cubic: Bytes) -> f64 {
        if cubic.is_zero() { 0.0 } else { (1.0 - self.rivals.ratio(cubic)).max(0.0) }
    }
}

/// What was counted so far: own packets sent, those of them declared lost, what rivals received.
#[derive(Clone, Copy, Debug)]
struct Totals {
    packets: u64,
    lost: u64,
    rivals: Bytes,
}

impl Totals {
    /// The share lost and what rivals received since `before`. A packet that proved not to be lost
    /// is taken off again, so there may be less than before.
    fn since(&self, before: &Self) -> (f64, Bytes) {
        let lost = self.lost.saturating_sub(before.lost) as f64;
        let packets = self.packets.saturating_sub(before.packets).max(1) as f64;
        ((lost / packets).min(1.0), self.rivals - before.rivals)
    }
}

/// A connection under way, or some that share a path. A clone goes on as the original would.
///
/// Connections that share a path have the same algorithm, as those of one server that all ask the
/// same policy mostly do: what a choice is worth is what all of them get by it, and not what one
/// takes from the others. The state is that of the first.
#[derive(Clone, Debug)]
pub struct Episode {
    rules: Arc<Rules>,
    world: World,
    current: usize,
    period: u32,
    last: Option<Duration>,
    /// For each flow: requests before this one had completed when the last period ended.
    settled: Vec<usize>,
    asked: Asked,
}

/// What its own connections ask for: with the same application and seed other paths are asked for the
/// same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub traffic: Traffic,
    /// How many connections there are.
    pub flows: usize,
    pub seed: u64,
}

impl Episode {
    /// Begins a connection and runs its first period.
    ///
    /// # Panics
    /// `draw.start` is not the number of an algorithm of the rules.
    pub fn new(rules: Arc<Rules>, draw: &Draw) -> Self {
        let spec = rules.algorithms[draw.start];
        let selector = Selector::new(SelectorConfig {
            first: draw.start,
            period: rules.period,
            how: rules.switch,
            ..SelectorConfig::new(rules.algorithms.to_vec(), Policy::External)
        });
        let steerer = Some(Steerer::Select(Box::new(selector)));
        Self::governed(rules, draw, &Control::Algorithm { spec, steerer })
    }

    /// Begins a connection that is governed so, and runs its first period. Only one that is steered
    /// by a selector may choose.
    pub(crate) fn governed(rules: Arc<Rules>, draw: &Draw, control: &Control) -> Self {
        let Condition { rtt, jitter, loss, buffer_bdp } = draw.condition;
        let length = rules.period * u64::from(rules.periods);
        let buffer = (draw.link.mean_rate() * rtt).mul_f64(buffer_bdp).max(BUFFER_MIN);
        let loss = if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None };
        let link = LinkConfig::new(draw.link.clone())
            .queue(QueueConfig::drop_tail_bytes(buffer))
            .loss(loss);
        let jitter = if jitter.is_zero() {
            JitterConfig::None
        } else {
            JitterConfig::Uniform { max: jitter }
        };
        let flow = |i: usize| {
            let seed = draw.seed.wrapping_add(i as u64);
            FlowConfig {
                control: control.clone(),
                resume: None,
                transport: Transport::quic(),
                app: draw.traffic.client(length, seed),
                start: Time::ZERO,
                stop: Time::ZERO + length,
                forward: vec![0],
                reverse: Vec::new(),
                forward_delay: rtt.mul_f64(0.5).into(),
                reverse_delay: (rtt - rtt.mul_f64(0.5)).into(),
                jitter,
                seed: draw.luck.wrapping_add(i as u64),
            }
        };
        let mut flows: Vec<_> = (0..draw.flows.max(1)).map(flow).collect();
        let settled = vec![0; flows.len()];
        let rival = |rival: &Rival| FlowConfig {
            control: Control::Algorithm { spec: rival.kind.spec(), steerer: None },
            app: rival.kind.client(rival.stop.since(rival.start), rival.seed),
            start: rival.start,
            stop: rival.stop,
            seed: rival.seed,
            ..flows[0].clone()
        };
        let rivals: Vec<_> = draw.rivals.iter().map(rival).collect();
        flows.extend(rivals);
        let world = World::new(&WorldConfig { links: vec![(link, draw.luck)], flows });
        let asked = Asked { traffic: draw.traffic, flows: settled.len(), seed: draw.seed };
        let mut episode =
            Self { rules, world, current: draw.start, period: 0, last: None, settled, asked };
        episode.run();
        episode
    }

    /// Chooses an algorithm by its number and runs one period.
    ///
    /// # Panics
    /// There is no such algorithm.
    pub fn step(&mut self, algorithm: usize) -> Step {
        self.switch(self.rules.algorithms[algorithm]);
        self.current = algorithm;
        self.run()
    }

    /// Asks all connections for an algorithm.
    fn switch(&mut self, spec: Spec) {
        for flow in 0..self.settled.len() {
            // The flow was set up with a steering that switches.
            let asked = self.world.switch(flow, spec, self.rules.switch);
            debug_assert!(asked);
        }
    }

    /// What each algorithm would cost from here, if it were chosen now and kept for the next
    /// `periods`: by the mean the time that requests spend waiting, summed over them; by the 90th
    /// percentile that of the completion times of all requests that were or came under way, those
    /// that are still open counted up to the end. Nothing changes here; each runs on a copy.
    pub fn costs(&self, periods: u32) -> Vec<Duration> {
        (0..self.rules.algorithms.len()).map(|choice| self.cost(choice, periods)).collect()
    }

    /// The cost of one choice; see [`costs`](Self::costs).
    pub fn cost(&self, choice: usize, periods: u32) -> Duration {
        self.outcome(choice, periods).cost
    }

    /// What one choice would come to; see [`costs`](Self::costs).
    pub fn outcome(&self, choice: usize, periods: u32) -> Outcome {
        self.tried(self.rules.algorithms[choice], periods)
    }

    /// What rivals would receive if the connections ran CUBIC: what [harm](Outcome::harm) is
    /// measured by. `None` where there are no rivals.
    pub fn next_to_cubic(&self, periods: u32) -> Option<Bytes> {
        (self.world.flows().len() > self.settled.len())
            .then(|| self.tried(RivalKind::Cubic.spec(), periods).rivals)
    }

    /// What an algorithm comes to that is kept for some periods on a copy.
    fn tried(&self, spec: Spec, periods: u32) -> Outcome {
        let mut fork = self.clone();
        let mut waited = Duration::ZERO;
        for _ in 0..periods.max(1) {
            fork.switch(spec);
            waited += fork.run().waited;
        }
        let (lost, rivals) = fork.totals().since(&self.totals());
        let cost = match self.rules.objective {
            Objective::Mean => waited,
            Objective::P90 => {
                let now = fork.world.now();
                let mut times: Vec<_> = (0..self.settled.len())
                    .flat_map(|i| &fork.requests_of(i)[self.settled[i]..])
                    .filter(|r| r.completed_at.is_none_or(|at| at > self.world.now()))
                    .map(|r| r.completion_time().unwrap_or(now.since(r.sent_at)))
                    .collect();
                Objective::P90.of(&mut times).unwrap_or_default()
            }
        };
        Outcome { cost, lost, rivals }
    }

    /// The share of its packets that were declared lost so far, and what rivals received.
    pub(crate) fn so_far(&self) -> (f64, Bytes) {
        let nothing = Totals { packets: 0, lost: 0, rivals: Bytes::ZERO };
        self.totals().since(&nothing)
    }

    fn totals(&self) -> Totals {
        let (own, rivals) = self.world.flows().split_at(self.settled.len());
        Totals {
            packets: own.iter().map(|flow| flow.sent().packets).sum(),
            lost: own.iter().map(|flow| flow.sent().lost).sum(),
            rivals: rivals.iter().map(|flow| flow.received().goodput).sum(),
        }
    }

    /// From now on another future, drawn by `seed`, and the same past: other requests, losses and
    /// jitter, and another place of the link's trace that could as well follow
    /// ([`World::redraw`]). What each choice costs in some of these is what one can know of it who
    /// knows the path and does not foresee.
    pub fn redraw(&mut self, seed: u64) {
        self.world.redraw(seed);
    }

    /// The same of the path alone: its own connections go on with the requests that they would have
    /// made.
    pub(crate) fn redraw_path(&mut self, seed: u64) {
        self.world.redraw_around(seed, self.settled.len());
    }

    /// What its own connections ask for.
    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    /// What it has in common with the others of its course.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// What each algorithm would be worth in the next period by Antelope's measure, if it were
    /// chosen now: the mean of the rewards of all connections. Nothing changes here; each runs on a
    /// copy. All rewards of a connection are by the highest pacing rate that it has under any of
    /// the algorithms. `None` where none of them has enough acknowledgements to tell.
    pub fn rewards(&self) -> Option<Vec<f64>> {
        let forks: Vec<Vec<Measured>> = (0..self.rules.algorithms.len())
            .map(|choice| {
                let mut fork = self.clone();
                fork.step(choice);
                (0..self.settled.len()).map(|flow| fork.measured_of(flow)).collect()
            })
            .collect();
        if !forks.iter().any(|of| of[0].is_enough()) {
            return None;
        }
        let scale = |flow: usize| {
            forks.iter().map(|of| of[flow].max_pacing_rate).fold(Rate::default(), Rate::max)
        };
        let scales: Vec<Rate> = (0..self.settled.len()).map(scale).collect();
        let reward = |of: &Vec<Measured>| {
            let each = of.iter().zip(&scales).map(|(m, scale)| m.reward(*scale, self.period));
            each.sum::<f64>() / of.len() as f64
        };
        Some(forks.iter().map(reward).collect())
    }

    /// Whether all periods have run.
    pub fn is_done(&self) -> bool {
        self.period >= self.rules.periods
    }

    /// The number of the algorithm that was chosen last.
    pub fn current(&self) -> usize {
        self.current
    }

    /// The number of the algorithm that the first connection runs, as a [`Selector`] that had
    /// chosen would tell it; `None` where that is none of the rules'. What a policy sees beyond its
    /// [state](Self::state).
    pub fn running(&self) -> Option<usize> {
        let algorithms = &self.rules.algorithms;
        let name = self.world.flows()[0].governor().algorithm().map_or("", Controller::name);
        running(algorithms, &algorithms[self.current], name)
    }

    /// What Antelope sees now of the first connection; see [`Selector::measured`].
    pub fn measured(&self) -> Measured {
        self.measured_of(0)
    }

    fn measured_of(&self, flow: usize) -> Measured {
        self.selector(flow).map(|selector| *selector.measured()).unwrap_or_default()
    }

    fn selector(&self, flow: usize) -> Option<&Selector> {
        match self.world.flows()[flow].steerer() {
            Some(Steerer::Select(selector)) => Some(selector),
            // Every flow is set up with a selector.
            _ => None,
        }
    }

    /// What a policy sees now: the state of the period that has just ended, in the order of
    /// [`FEATURES`].
    pub fn state(&self) -> State {
        self.selector(0).map_or([0.0; FEATURES.len()], |selector| *selector.state())
    }

    /// The requests so far, of all connections, one after another.
    pub fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        (0..self.settled.len()).flat_map(|flow| self.requests_of(flow))
    }

    fn requests_of(&self, flow: usize) -> &[RequestRecord] {
        self.world.flows()[flow].app().requests()
    }

    /// Events simulated so far.
    pub fn events(&self) -> u64 {
        self.world.events()
    }

    /// Lets outstanding requests finish, for at most `grace`, and gives the completion time of every
    /// request; one that never finished counts up to now.
    pub fn finish(mut self, grace: Duration) -> Vec<Duration> {
        let last = self.world.now() + grace;
        let open = |r: &RequestRecord| r.completed_at.is_none();
        while self.world.now() < last && self.requests().any(open) {
            self.world.run_until(self.world.now() + Duration::from_millis(500));
        }
        let now = self.world.now();
        let waited = |r: &RequestRecord| r.completion_time().unwrap_or(now.since(r.sent_at));
        self.requests().map(waited).collect()
    }

    /// Runs one period.
    pub(crate) fn run(&mut self) -> Step {
        let (from, before) = (self.world.now(), self.totals());
        let until = from + self.rules.period;
        self.world.run_until(until);
        self.period += 1;
        let mut completions = Vec::new();
        let mut waited = Duration::ZERO;
        for (flow, settled) in self.settled.iter_mut().enumerate() {
            let requests = &self.world.flows()[flow].app().requests()[*settled..];
            for request in requests {
                let end = request.completed_at.unwrap_or(until).min(until);
                waited += end.since(request.sent_at.max(from));
                if let Some(time) = request.completion_time()
                    && request.completed_at.is_some_and(|at| at > from)
                {
                    completions.push(time);
                }
            }
            *settled += requests.iter().take_while(|r| r.completed_at.is_some()).count();
        }
        let completion = self.rules.objective.of(&mut completions);
        let reward = match (self.last, completion) {
            (Some(last), Some(current)) => libm::log(last.ratio(current)),
            _ => 0.0,
        };
        self.last = completion.or(self.last);
        let completed = u32::try_from(completions.len()).unwrap_or(u32::MAX);
        let (lost, rivals) = self.totals().since(&before);
        Step { reward, completion, completed, waited, lost, rivals, done: self.is_done() }
    }
}

impl Objective {
    /// Of the completion times of one period; `None` of none.
    fn of(self, times: &mut [Duration]) -> Option<Duration> {
        let count = times.len() as u64;
        if count == 0 {
            return None;
        }
        Some(match self {
            Self::Mean => times.iter().copied().sum::<Duration>() / count,
            Self::P90 => {
                times.sort_unstable();
                times[(times.len() * 9).div_ceil(10) - 1]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(periods: u32) -> Arc<Rules> {
        let algorithms = ["cubic", "bbr", "copa", "westwood"].map(|name| name.parse().unwrap());
        Arc::new(Rules {
            algorithms: algorithms.into(),
            period: Duration::from_secs(3),
            periods,
            switch: Switch::Full,
            objective: Objective::Mean,
        })
    }

    fn draw(mbps: f64, start: usize) -> Draw {
        let condition = Condition {
            rtt: Duration::from_millis(60),
            jitter: Duration::from_millis(5),
            loss: 0.01,
            buffer_bdp: 1.0,
        };
        let link = Capacity::Constant(Rate::from_mbps(mbps));
        Draw {
            link,
            condition,
            traffic: Traffic::WebBurst,
            flows: 1,
            rivals: Vec::new(),
            start,
            seed: 9,
            luck: 9,
        }
    }

    #[test]
    fn a_clone_goes_on_as_the_original_would() {
        let mut episode = Episode::new(rules(6), &draw(3.0, 0));
        episode.step(1);
        let mut fork = episode.clone();
        let expected = (fork.step(2), fork.step(0), fork.state().map(f32::to_bits));
        assert_eq!((episode.step(2), episode.step(0), episode.state().map(f32::to_bits)), expected);
    }

    #[test]
    fn waits_add_up_to_the_completion_times() {
        // Little's law; on a link that keeps up, nearly nothing is open at the end.
        let mut episode = Episode::new(rules(20), &draw(20.0, 1));
        let first = episode.requests().filter(|r| r.completed_at.is_some()).count();
        assert!(first > 10, "the first period has run: {first}");
        let mut waited = Duration::ZERO;
        while !episode.is_done() {
            waited += episode.step(1).waited;
        }
        let from = Time::ZERO + Duration::from_secs(3);
        let end = Time::ZERO + Duration::from_secs(60);
        let within =
            |r: &RequestRecord| r.completed_at.unwrap_or(end).min(end).since(r.sent_at.max(from));
        let total: Duration = episode.requests().map(within).sum();
        assert_eq!(waited, total);
    }

    #[test]
    fn losses_cost_cubic_more_than_bbr() {
        let episode = Episode::new(rules(10), &draw(6.0, 1));
        let costs = episode.costs(4);
        assert!(costs[0] > costs[1].mul_f64(1.3), "{costs:?}");
    }

    #[test]
    fn antelopes_rewards_are_of_the_next_period_by_one_scale() {
        let mut episode = Episode::new(rules(20), &Draw { flows: 2, ..draw(6.0, 1) });
        // Nine intervals, after which queues have their full price.
        for _ in 0..8 {
            episode.step(1);
        }
        let before = episode.measured();
        assert!(before.is_enough() && before.length == Duration::from_secs(3), "{before:?}");
        let rewards = episode.rewards().unwrap();
        assert_eq!(episode.measured(), before, "it was tried on copies");
        assert!(rewards.iter().all(|r| *r > 0.05 && *r < 1.0), "{rewards:?}");
        assert!((1..4).all(|i| rewards[i] != rewards[0]), "each by its own run: {rewards:?}");
        let forks: Vec<Episode> = (0..4)
            .map(|choice| {
                let mut fork = episode.clone();
                fork.step(choice);
                fork
            })
            .collect();
        let of = |flow: usize| {
            let measured: Vec<_> = forks.iter().map(|fork| fork.measured_of(flow)).collect();
            let paced = measured.iter().map(|m| m.max_pacing_rate.mbps());
            (measured[2], paced.fold(0.0, f64::max))
        };
        let by_hand = |(m, scale): (Measured, f64)| {
            let lost = m.lost.as_f64() * 8e-6 / 3.0;
            (m.throughput.mbps() - lost) * m.min_rtt.ratio(m.mean_rtt) / scale
        };
        let expected = (by_hand(of(0)) + by_hand(of(1))) / 2.0;
        assert!((rewards[2] - expected).abs() < 1e-6, "{rewards:?} {expected}");
    }

    #[test]
    fn where_nothing_moves_no_reward_can_be_told() {
        let mut still = Episode::new(rules(6), &draw(0.0, 0));
        still.step(0);
        assert!(!still.measured().is_enough());
        assert_eq!(still.rewards(), None);
    }

    #[test]
    fn the_reward_is_the_gain_in_completion_time() {
        let mut episode = Episode::new(rules(10), &draw(3.0, 1));
        let before = episode.step(1).completion.unwrap();
        let step = episode.step(0);
        let gain = libm::log(before.ratio(step.completion.unwrap()));
        assert!((step.reward - gain).abs() < 1e-12 && gain != 0.0, "{gain}");
    }

    /// Four connections wait longer on a link for one, and what they all get is what counts.
    #[test]
    fn connections_that_share_a_path_count_together() {
        let alone = Episode::new(rules(10), &draw(6.0, 1));
        let mut four = Episode::new(rules(10), &Draw { flows: 4, ..draw(6.0, 1) });
        assert!(four.requests().count() > 3 * alone.requests().count());
        let expected = four.cost(1, 2);
        assert!(expected > alone.cost(1, 2) * 4, "{expected:?}");
        assert_eq!(four.step(1).waited + four.step(1).waited, expected);
        let names = four.world.flows().iter().filter_map(|flow| flow.governor().algorithm());
        assert_eq!(names.map(Controller::name).collect::<Vec<_>>(), ["bbr"; 4]);
    }

    /// Of ten requests the slowest but one: what most have got does not matter.
    #[test]
    fn choices_may_be_judged_by_the_slowest_tenth() {
        let by = |objective| {
            let rules = Rules { objective, ..(*rules(10)).clone() };
            Episode::new(Arc::new(rules), &draw(6.0, 1))
        };
        let mut episode = by(Objective::P90);
        let costs = episode.costs(4);
        assert!(costs[0] > costs[1] && costs[1] > Duration::ZERO, "{costs:?}");
        let (from, settled) = (episode.world.now(), episode.settled[0]);
        for _ in 0..4 {
            episode.step(1);
        }
        let now = episode.world.now();
        let time = |r: &RequestRecord| r.completion_time().unwrap_or(now.since(r.sent_at));
        let under_way = |r: &&RequestRecord| r.completed_at.is_none_or(|at| at > from);
        let mut times: Vec<_> =
            episode.requests().skip(settled).filter(under_way).map(time).collect();
        times.sort_unstable();
        let slower = times.iter().filter(|&&t| t > costs[1]).count();
        assert!(
            slower * 10 <= times.len() && times.contains(&costs[1]),
            "{slower} of {}",
            times.len()
        );
        assert!(by(Objective::Mean).cost(1, 4) > costs[1], "the sum over all requests");
    }

    #[test]
    fn a_choice_that_takes_more_than_cubic_does_harm() {
        let rival = |kind| Rival {
            kind,
            start: Time::ZERO,
            stop: Time::ZERO + Duration::from_secs(30),
            seed: 5,
        };
        let with = |rivals| {
            let calm = Condition { loss: 0.0, buffer_bdp: 0.5, ..draw(12.0, 0).condition };
            let draw =
                Draw { rivals, traffic: Traffic::Download, condition: calm, ..draw(12.0, 0) };
            Episode::new(rules(10), &draw)
        };
        assert_eq!(with(Vec::new()).next_to_cubic(2), None);
        let mut episode = with(vec![rival(RivalKind::Cubic), rival(RivalKind::Web)]);
        assert_eq!(episode.settled.len(), 1, "rivals are not its own");
        let cubic = episode.next_to_cubic(3).unwrap();
        assert!(cubic > Bytes::new(100_000), "rivals receive: {cubic}");
        assert_eq!(episode.outcome(0, 3).harm(cubic), 0.0, "it is CUBIC");
        let bbr = episode.outcome(1, 3);
        assert!(bbr.harm(cubic) > 0.02 && bbr.harm(cubic) < 1.0, "{bbr:?}, {cubic} next to CUBIC");
        assert_eq!(episode.cost(1, 3), bbr.cost);
        let steps = [(); 3].map(|()| episode.step(1));
        assert_eq!(steps.iter().map(|s| s.rivals).sum::<Bytes>(), bbr.rivals);
        assert!(steps.iter().any(|s| s.lost > 0.0) && bbr.lost > 0.0, "half a BDP is short");
        let names = episode.world.flows().iter().filter_map(|flow| flow.governor().algorithm());
        assert_eq!(names.map(Controller::name).collect::<Vec<_>>(), ["bbr", "cubic", "cubic"]);
    }

    /// By name both are Copa, and so are their states' features.
    #[test]
    fn which_of_two_settings_runs_is_known() {
        let algorithms = ["cubic", "copa:delta=0.1", "copa:delta=0.5"].map(|s| s.parse().unwrap());
        let rules = Rules { algorithms: algorithms.into(), ..(*rules(6)).clone() };
        let mut episode = Episode::new(Arc::new(rules), &draw(6.0, 0));
        assert_eq!(episode.running(), Some(0));
        for choice in [2, 1, 0, 2] {
            episode.step(choice);
            assert_eq!(episode.running(), Some(choice));
        }
    }

    #[test]
    fn objectives() {
        let ms = Duration::from_millis;
        let mut times: Vec<_> = (1..=20).rev().map(ms).collect();
        assert_eq!(Objective::P90.of(&mut times), Some(ms(18)));
        assert_eq!(Objective::Mean.of(&mut times), Some(Duration::from_micros(10_500)));
        assert_eq!(Objective::P90.of(&mut [ms(4)]), Some(ms(4)));
        assert_eq!(Objective::Mean.of(&mut []), None);
    }

    #[test]
    fn outstanding_requests_may_finish() {
        let mut episode = Episode::new(rules(2), &draw(0.5, 1));
        episode.step(1);
        let open = episode.requests().filter(|r| r.completed_at.is_none()).count();
        let count = episode.requests().count();
        assert!(open > 0, "half a megabit is not enough");
        let times = episode.finish(Duration::from_secs(120));
        assert_eq!(times.len(), count);
        assert!(times.iter().all(|t| !t.is_zero()));
    }
}
