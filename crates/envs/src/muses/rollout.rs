//! Flows that stop at each decision, and what would have been best there.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_apps::{App, BulkConfig};
use trimtab_cc::muses::{
    Action, DRIVEN, Factor, INTERVAL, SIGNALS, State, best_action, optimal_window,
};
use trimtab_cc::{CongestionControl, Spec};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Time};

use super::environment::LEAST_ROOM_PERCENT;
use crate::muses::{Environment, Oracle};

/// The first flow starts here, so that the link has a past of a round trip, which Eq. 1 looks at.
const START: Time = Time::from_millis(400);
/// What is in flight is looked at so often, once the flow had time to begin.
const WATCH_EVERY: Duration = Duration::from_millis(50);
const WATCH_AFTER: Duration = Duration::from_secs(2);
/// An oracle that looks ahead looks at so many round trips in its span.
const LOOKS: u64 = 8;
/// It wants so many packets at least, in 1/1024, where they fit: the window that a flow begins with.
const LEAST_WANTED: u64 = 10 * 1024;
/// The others start at any time within so long after the first.
const SPREAD: Duration = Duration::from_secs(4);

/// A link with flows under way, stopped where one of them has to decide.
#[derive(Clone, Debug)]
pub struct Rollout {
    world: World,
    capacity: Capacity,
    delay: Duration,
    oracle: Oracle,
    buffer: Bytes,
    packet: Bytes,
    /// When each flow starts.
    starts: Vec<Time>,
    /// Decisions left, and when it ends in any case.
    left: u32,
    end: Time,
    /// The flow that decides next, and what it sees.
    asked: Option<(usize, State)>,
}

/// What the flows of a rollout came to together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes that arrived over what the link could have carried from the start of the first flow on, 0 to 1.
    pub utilisation: f64,
    /// 95th percentile of the time that packets waited in the queue; the flow with the longest.
    pub queue_delay_p95: Duration,
    /// Packets declared lost over packets sent.
    pub loss: f64,
}

impl Rollout {
    /// `flows` flows over a network, until `decisions` of them were taken or twice as many control intervals have
    /// passed. At least one flow.
    pub fn new(environment: &Environment, flows: usize, decisions: u32, seed: u64) -> Self {
        let flow = |i: usize| bulk(driven(), environment, i, seed);
        let end = START + INTERVAL * (2 * u64::from(decisions));
        Self::of(environment, (0..flows.max(1)).map(flow).collect(), decisions, end, seed)
    }

    /// `flows` flows over a network, until this time has passed since the start of the first,
    /// however many decisions that takes: as long as those of [`run_alone`](Self::run_alone). At
    /// least one flow.
    pub fn lasting(environment: &Environment, flows: usize, length: Duration, seed: u64) -> Self {
        let flow = |i: usize| bulk(driven(), environment, i, seed);
        let flows = (0..flows.max(1)).map(flow).collect();
        Self::of(environment, flows, u32::MAX, START + length, seed)
    }

    fn of(
        environment: &Environment,
        flows: Vec<FlowConfig>,
        decisions: u32,
        end: Time,
        seed: u64,
    ) -> Self {
        let loss = if environment.loss > 0.0 {
            LossConfig::Independent(environment.loss)
        } else {
            LossConfig::None
        };
        let link = LinkConfig::new(environment.capacity.clone())
            .queue(QueueConfig::drop_tail_bytes(environment.buffer))
            .loss(loss);
        let starts = flows.iter().map(|flow| flow.start).collect();
        let packet = flows[0].transport.packet;
        let world = World::new(&WorldConfig { links: vec![(link, seed)], flows });
        let mut rollout = Self {
            world,
            capacity: environment.capacity.clone(),
            delay: environment.delay,
            oracle: environment.oracle,
            buffer: environment.buffer,
            packet,
            starts,
            left: decisions,
            end,
            asked: None,
        };
        rollout.run();
        rollout
    }

    /// What `flows` flows that nobody drives come to over a network in this time: of an algorithm, or of the trees of a
    /// model.
    pub fn run_alone(
        environment: &Environment,
        control: &Control,
        flows: usize,
        length: Duration,
        seed: u64,
    ) -> Outcome {
        let flow = |i: usize| bulk(control.clone(), environment, i, seed);
        let flows = (0..flows.max(1)).map(flow).collect();
        let end = START + length;
        let mut rollout = Self::of(environment, flows, 0, end, seed);
        rollout.world.run_until(end);
        rollout.outcome()
    }

    /// As [`run_alone`](Self::run_alone) with one flow, over another transport than QUIC as its RFCs have it.
    pub fn run_over(
        environment: &Environment,
        control: &Control,
        transport: Transport,
        length: Duration,
        seed: u64,
    ) -> Outcome {
        let flow = FlowConfig { transport, ..bulk(control.clone(), environment, 0, seed) };
        let end = START + length;
        let mut rollout = Self::of(environment, vec![flow], 0, end, seed);
        rollout.world.run_until(end);
        rollout.outcome()
    }

    /// What a flow gets next to `rivals` bulk flows of an algorithm that begin with it: its bytes over
    /// an equal share of what the link carries, from `warmup` to `length` after the start.
    pub fn run_next_to(
        environment: &Environment,
        control: &Control,
        (rival, rivals): (&Control, usize),
        (warmup, length): (Duration, Duration),
        seed: u64,
    ) -> f64 {
        let mut flows = vec![bulk(control.clone(), environment, 0, seed)];
        flows.extend((1..=rivals).map(|i| bulk(rival.clone(), environment, i, seed)));
        let mut rollout = Self::of(environment, flows, 0, START + length, seed);
        rollout.world.run_until(START + warmup);
        let before = rollout.delivered()[0];
        rollout.world.run_until(START + length);
        let own = (rollout.delivered()[0] - before).as_f64();
        let carried = environment.capacity.bytes_between(START + warmup, START + length);
        own * (rivals + 1) as f64 / carried.as_f64().max(1.0)
    }

    /// As [`run_alone`](Self::run_alone) with one flow; also how far what was in flight was from
    /// what the link carries in a round trip (Muses Fig. 4): the root of the mean square of the
    /// difference, in packets, every 50 ms.
    pub fn run_watched(
        environment: &Environment,
        control: &Control,
        length: Duration,
        seed: u64,
    ) -> (Outcome, f64) {
        let flow = bulk(control.clone(), environment, 0, seed);
        let end = START + length;
        let mut rollout = Self::of(environment, vec![flow], 0, end, seed);
        let (mut squares, mut looks, mut now) = (0.0, 0, START + WATCH_AFTER);
        while now <= end {
            rollout.world.run_until(now);
            let round_trip = environment.delay * 2;
            let carried = environment.capacity.bytes_between(now - round_trip, now);
            let inflight = rollout.world.flows()[0].inflight();
            let apart = (inflight.as_f64() - carried.as_f64()) / rollout.packet.as_f64();
            squares += apart * apart;
            looks += 1;
            now += WATCH_EVERY;
        }
        rollout.world.run_until(end);
        (rollout.outcome(), (squares / f64::from(looks.max(1))).sqrt())
    }

    /// The flow that has to decide; 0 when none has.
    pub fn flow(&self) -> usize {
        self.asked.map_or(0, |(flow, _)| flow)
    }

    /// What it sees.
    pub fn state(&self) -> State {
        self.asked.map_or([0; SIGNALS], |(_, state)| state)
    }

    /// Whether there is nothing left to decide.
    pub fn is_done(&self) -> bool {
        self.asked.is_none()
    }

    /// The optimal window of each flow now, in 1/1024 packets (Eq. 1): what the link carries in a round trip
    /// of propagation, as the [`Oracle`] has it, in equal parts to the flows that have begun.
    pub fn optimal(&self) -> u64 {
        let now = self.world.now();
        let until = if self.oracle.ahead { now + self.delay } else { now };
        let active = self.starts.iter().filter(|start| **start <= now).count().max(1) as u64;
        let share = |shift| {
            let until = until + shift;
            self.capacity.bytes_between(until - self.delay * 2, until) / active
        };
        let here = share(Duration::ZERO);
        let looks = if self.oracle.span.is_zero() { 0 } else { LOOKS };
        let later = (1..=looks).map(|look| share(self.oracle.span * look / LOOKS));
        let (least, most) =
            later.fold((here, here), |(low, high), share| (low.min(share), high.max(share)));
        let alpha = self.oracle.alpha_of(most / (self.delay * 2));
        let wanted = optimal_window(most, self.packet, alpha);
        let Some(percent) = self.oracle.room_percent else { return wanted };
        let room = |percent: u32| self.buffer * u64::from(percent) / (100 * active);
        let fits = here + room(percent);
        if looks == 0 {
            return wanted.min(optimal_window(fits, self.packet, 100));
        }
        let fits = fits.min(least + room(LEAST_ROOM_PERCENT));
        wanted.max(LEAST_WANTED).min(optimal_window(fits, self.packet, 100))
    }

    /// The best action of the flow that has to decide (Eq. 2).
    pub fn best(&self) -> Action {
        best_action(self.window(), self.optimal())
    }

    /// The window of the flow that has to decide, in 1/1024 packets; 0 when none has.
    pub fn window(&self) -> u64 {
        match self.world.flows()[self.flow()].governor().algorithm() {
            Some(trimtab_cc::Controller::Muses(muses)) => muses.cwnd(),
            _ => 0,
        }
    }

    /// Takes an action, or another factor, and goes on to the next decision.
    pub fn act(&mut self, factor: impl Into<Factor>) {
        if self.asked.take().is_some() {
            self.world.decide(factor);
            self.left = self.left.saturating_sub(1);
            self.run();
        }
    }

    fn run(&mut self) {
        if self.left == 0 {
            return;
        }
        if let Some(flow) = self.world.run_to_decision(self.end) {
            let algorithm = self.world.flows()[flow].governor().algorithm();
            let state = algorithm.and_then(|algorithm| algorithm.awaiting());
            self.asked = state.map(|state| (flow, *state));
        }
    }

    /// What came of it so far.
    pub fn outcome(&self) -> Outcome {
        let flows = self.world.flows();
        let delivered: Bytes = flows.iter().map(|f| f.sent().delivered).sum();
        let could = self.capacity.bytes_between(START, self.world.now());
        let sent: u64 = flows.iter().map(|f| f.sent().packets).sum();
        let lost: u64 = flows.iter().map(|f| f.sent().lost).sum();
        let waits = flows.iter().map(|f| f.received().queue_delay.quantile(0.95));
        Outcome {
            utilisation: delivered.ratio(could.max(Bytes::new(1))).min(1.0),
            queue_delay_p95: waits.max().unwrap_or(Duration::ZERO),
            loss: lost as f64 / sent.max(1) as f64,
        }
    }

    /// Bytes of each flow that arrived so far.
    pub fn delivered(&self) -> Vec<Bytes> {
        self.world.flows().iter().map(|f| f.sent().delivered).collect()
    }
}

fn start(flow: usize, seed: u64) -> Time {
    if flow == 0 {
        return START;
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed.wrapping_add(flow as u64));
    START + SPREAD.mul_f64(random.random())
}

/// An algorithm whose actions come from outside.
fn driven() -> Control {
    Control::Algorithm { spec: Spec::of(&DRIVEN), steerer: None }
}

/// A bulk transfer over a network.
fn bulk(control: Control, environment: &Environment, flow: usize, seed: u64) -> FlowConfig {
    let app = App::bulk(&BulkConfig::default());
    FlowConfig {
        start: start(flow, seed),
        seed: seed.wrapping_add(flow as u64),
        ..FlowConfig::new(control, Transport::quic(), app, environment.delay * 2)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::muses::{Counts, PACKET_PARTS, Past, Trees};
    use trimtab_net::Trace;
    use trimtab_steer::muses::Policy;
    use trimtab_units::Rate;

    use super::*;

    static SMALL: &[u8] = include_bytes!("small.trees");

    fn constant(mbps: f64, owd_ms: u64) -> Environment {
        Environment {
            name: "constant".to_owned(),
            capacity: Capacity::Constant(Rate::from_mbps(mbps)),
            delay: Duration::from_millis(owd_ms),
            loss: 0.0,
            buffer: Bytes::new(300_000),
            oracle: Oracle::PAPER,
        }
    }

    fn drive<F: Into<Factor>>(rollout: &mut Rollout, mut policy: impl FnMut(&Rollout) -> F) -> u32 {
        let mut decisions = 0;
        while !rollout.is_done() {
            let action = policy(rollout);
            rollout.act(action);
            decisions += 1;
        }
        decisions
    }

    /// expected.md U7: the flow that follows the oracle keeps 48 packets of a link of 40.
    #[test]
    fn the_oracle_keeps_its_window_and_fills_the_link() {
        let mut rollout = Rollout::new(&constant(12.0, 20), 1, 300, 1);
        assert_eq!(rollout.optimal(), 48 * PACKET_PARTS);
        assert_eq!(drive(&mut rollout, Rollout::best), 300);
        let outcome = rollout.outcome();
        assert!(outcome.utilisation > 0.95, "{outcome:?}");
        // 48 packets in flight of 40 are 8 in the queue: 8 ms.
        let p95 = outcome.queue_delay_p95.as_millis_f64();
        assert!((4.0..13.0).contains(&p95), "{p95} ms");
        assert_eq!(outcome.loss, 0.0);
    }

    /// On a link that carries 12 Mbit/s and 24 in turn, 100 ms each, one that looks ahead asks for the
    /// window of 24 before it is there, as far as it fits into the buffer while the link carries 12.
    #[test]
    fn who_looks_ahead_wants_what_is_to_come_where_it_fits() {
        let wanted = |span_ms, buffer| {
            let oracle = Oracle {
                ahead: true,
                room_percent: Some(100),
                span: Duration::from_millis(span_ms),
                ..Oracle::PAPER
            };
            // A packet each millisecond, then two.
            let times =
                (1..=200).flat_map(|ms| core::iter::repeat_n(ms, if ms > 100 { 2 } else { 1 }));
            let trace = Trace::from_opportunities(times.collect()).unwrap();
            let capacity = Capacity::trace(trace);
            let environment = Environment { oracle, capacity, buffer, ..constant(12.0, 20) };
            let mut rollout = Rollout::lasting(&environment, 1, Duration::from_secs(1), 1);
            rollout.world.run_until(Time::from_millis(850));
            rollout.optimal() / PACKET_PARTS
        };
        let (large, small) = (Bytes::new(300_000), Bytes::new(30_000));
        // 40 packets are a round trip's at 12 Mbit/s, and 80 at 24.
        assert_eq!([wanted(0, large), wanted(100, large)], [48, 96]);
        assert_eq!(wanted(100, small), 40 + 20 * 7 / 10, "20 packets fill the buffer");
    }

    #[test]
    fn flows_that_share_a_link_share_its_window() {
        let mut rollout = Rollout::new(&constant(36.0, 20), 3, 2400, 1);
        let mut asked = [0; 3];
        drive(&mut rollout, |r| {
            asked[r.flow()] += 1;
            r.best()
        });
        assert!(asked.iter().all(|&n| n > 400), "{asked:?}");
        assert_eq!(rollout.optimal(), 48 * PACKET_PARTS);
        assert!(rollout.outcome().utilisation > 0.9, "{:?}", rollout.outcome());
    }

    /// Jain's index of what each flow got of a link of 36 Mbit/s in the second half of 40 s.
    fn fairness(flows: usize, policy: impl Fn(&Rollout) -> Action) -> f64 {
        let even_at = Some(Rate::from_mbps(24.0));
        let oracle = Oracle { alpha_percent: 125, ahead: true, even_at, ..Oracle::PAPER };
        let environment = Environment { oracle, ..constant(36.0, 20) };
        let mut rollout = Rollout::lasting(&environment, flows, Duration::from_secs(40), 7);
        let mut before = None;
        drive(&mut rollout, |r| {
            if r.world.now() >= START + Duration::from_secs(20) {
                before.get_or_insert_with(|| r.delivered());
            }
            policy(r)
        });
        let before = before.unwrap().into_iter();
        let got =
            rollout.delivered().into_iter().zip(before).map(|(all, half)| (all - half).as_f64());
        let (sum, squares) = got.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        sum * sum / (squares * flows as f64)
    }

    /// What a flow with this state takes for right, knowing nothing of the others: the window that
    /// carries its own rate, with the queue that it is to have at that rate, and more or less of it
    /// where the queue is another one.
    fn from_its_own_signals(r: &Rollout) -> Action {
        let raw = |signal: usize| libm::exp2(f64::from(r.state()[signal]) / 256.0);
        let (queue, min_rtt_s, bytes_per_s, window) =
            ((raw(1) - 1.0) / 16.0, raw(2) / 1e6, raw(4), raw(6));
        let alpha = r.oracle.alpha_of(Rate::from_mbps(bytes_per_s * 8e-6));
        let wanted = f64::from(alpha) / 100.0 - 1.0;
        let volume = bytes_per_s * min_rtt_s / 1500.0 * PACKET_PARTS as f64;
        if queue < 0.3 * wanted && window < 2.0 * volume {
            return Action::new(5).unwrap();
        }
        let lean = libm::pow(wanted / queue.max(0.01), 0.3).clamp(0.8, 1.25);
        best_action(window as u64, (volume * (1.0 + wanted) * lean) as u64)
    }

    /// The windows of [`Oracle::even_at`] are fair, and a flow can tell from its own seven signals
    /// where its own is. With the paper's oracle it cannot: any shares give all flows the delay
    /// that they are to have.
    #[test]
    fn flows_can_tell_from_their_own_signals_what_is_fair() {
        for flows in [3, 5, 10] {
            let (told, seen) =
                (fairness(flows, Rollout::best), fairness(flows, from_its_own_signals));
            assert!(told > 0.99 && seen > 0.98, "{flows} flows: {told}, {seen}");
        }
    }

    /// Trees without a guard.
    fn alone(trees: Trees<'static>) -> Control {
        Control::Muses { policy: Policy::Trees(trees), safe: None }
    }

    /// What trees do that choose among themselves as the algorithm does.
    fn by_trees(trees: Trees<'static>) -> impl FnMut(&Rollout) -> Factor {
        let mut counts = Counts::default();
        let mut tree = trees.first();
        let mut past = Past::default();
        move |r| {
            if counts.add(trees.segments(&r.state())) >= trees.states() {
                tree = trees.nearest(&counts);
                counts = Counts::default();
            }
            trees.decide(tree, &past.see(&r.state()))
        }
    }

    /// What is learnt in a rollout is what runs elsewhere: the same trees, asked by the algorithm itself, lead to the
    /// same flow as their actions from outside.
    #[test]
    fn the_algorithm_and_the_rollout_see_the_same_states() {
        let trees = Trees::parse(SMALL).unwrap();
        let environment = Environment { loss: 0.05, ..constant(7.0, 33) };
        let mut outside = Rollout::new(&environment, 1, 400, 5);
        drive(&mut outside, by_trees(trees));
        let flow = bulk(alone(trees), &environment, 0, 5);
        let mut inside = Rollout::of(&environment, vec![flow], 0, START, 5);
        inside.world.run_until(outside.world.now());
        let seen = |r: &Rollout| {
            let flow = &r.world.flows()[0];
            (
                flow.window(),
                flow.sent().packets,
                flow.sent().lost,
                flow.sent().delivered,
                flow.srtt(),
            )
        };
        // The last decision was taken on both sides; the events of its very moment may still be to come.
        outside.world.run_until(outside.world.now());
        assert_eq!(seen(&outside), seen(&inside));
        assert!(outside.world.flows()[0].sent().lost > 10, "losses were part of it");
    }

    /// A sender that sees the link has in flight what it carries, and a little; CUBIC fills the buffer.
    #[test]
    fn what_is_in_flight_is_near_what_the_link_carries_or_not() {
        let length = Duration::from_secs(10);
        let apart =
            |control: &Control| Rollout::run_watched(&constant(12.0, 20), control, length, 1).1;
        let cubic = Control::Algorithm { spec: "cubic".parse().unwrap(), steerer: None };
        let (sees, fills) = (apart(&Control::Omniscient), apart(&cubic));
        assert!(sees < 8.0 && fills > 60.0, "{sees} and {fills} packets");
    }

    #[test]
    fn algorithms_that_nobody_drives_run_over_the_same_networks() {
        let cubic = Control::Algorithm { spec: "cubic".parse().unwrap(), steerer: None };
        let length = Duration::from_secs(10);
        let outcome = Rollout::run_alone(&constant(12.0, 20), &cubic, 1, length, 1);
        // A buffer of 200 ms, which it fills.
        assert!(outcome.utilisation > 0.9, "{outcome:?}");
        assert!(outcome.queue_delay_p95 > Duration::from_millis(100), "{outcome:?}");
    }

    /// A path that takes 200 ms each way has fewer decisions than control intervals at first, and
    /// is measured for as long.
    #[test]
    fn who_is_driven_is_measured_for_as_long_as_who_is_not() {
        let environment = constant(12.0, 200);
        let length = Duration::from_secs(10);
        let mut rollout = Rollout::lasting(&environment, 1, length, 1);
        assert!(drive(&mut rollout, Rollout::best) < 1000);
        assert_eq!(rollout.world.now(), START + length);
        let trees = Trees::parse(SMALL).unwrap();
        let mut outside = Rollout::lasting(&environment, 1, length, 1);
        drive(&mut outside, by_trees(trees));
        let inside = Rollout::run_alone(&environment, &alone(trees), 1, length, 1);
        assert_eq!(outside.outcome(), inside);
    }

    #[test]
    fn equal_seeds_give_equal_flows() {
        let states = |seed| {
            let mut rollout =
                Rollout::new(&Environment { loss: 0.02, ..constant(9.0, 10) }, 1, 100, seed);
            let mut states = Vec::new();
            drive(&mut rollout, |r| {
                states.push(r.state());
                r.best()
            });
            states
        };
        assert_eq!(states(1), states(1));
        assert_ne!(states(1), states(2));
    }
}
