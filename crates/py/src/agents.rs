//! Flows whose rate or window an agent sets, in batches: what `python/trimtab/intervals.py` is made of.
//!
//! What goes in and out are NumPy's arrays. What comes out is gathered, and copied into them at once.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use trimtab_envs::agents::{
    Arena, ArenaRules, Interval, Knob, MEASURES, Measure, OBSERVATION_SETS, REWARDS, Reward, TURNS,
    Turn,
};
use trimtab_lab::run::prepare::{Prepared, prepare};
use trimtab_lab::run::simulator;
use trimtab_lab::scenario::{AppKind, Competitor, Given, Job};
use trimtab_units::Time;

use crate::compare::{all, one, transport_of};
use crate::refuse;

/// Seeds of runs have so many bits: an offset into a trace takes the other bits of a number's precision.
const SEED_BITS: u32 = 31;
/// 2^64 over the golden ratio: its multiples spread evenly over the paths.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The paths that episodes are drawn from: those of a grid of `trimtab compare`.
#[pyclass(frozen, name = "Paths", module = "trimtab._native")]
pub(crate) struct PyPaths(Arc<Paths>);

struct Paths {
    prepared: Prepared,
    /// Agents whose flows share each of them.
    agents: usize,
}

#[pymethods]
impl PyPaths {
    #[new]
    #[pyo3(signature = (
        *, traces, transport, rtt, buffer, loss, jitter, mark, duration, scenario, next_to, agents
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        py: Python<'_>,
        traces: Vec<String>,
        transport: Option<String>,
        rtt: Vec<String>,
        buffer: Vec<String>,
        loss: Vec<String>,
        jitter: Vec<String>,
        mark: Option<String>,
        duration: Option<String>,
        scenario: Option<PathBuf>,
        next_to: Vec<String>,
        agents: u32,
    ) -> PyResult<Self> {
        let given = Given {
            app: vec![AppKind::bulk()],
            // The agent governs the flows of the scheme: any stands for it.
            cc: all("cc", &["cubic".to_owned()])?,
            traces: all("traces", &traces)?,
            transport: transport.as_deref().map(transport_of).transpose()?,
            rtt: all("rtt", &rtt)?,
            buffer: all("buffer", &buffer)?,
            loss: all("loss", &loss)?,
            jitter: all("jitter", &jitter)?,
            mark: mark.as_deref().map(|text| one("mark", text)).transpose()?,
            duration: duration.as_deref().map(|text| one("duration", text)).transpose()?,
            seeds: Some(1),
            first_seed: Some(0),
            ..Given::default()
        };
        let mut scenario = given.scenario(scenario.as_deref()).map_err(refuse)?;
        let competitor = |cc| Competitor::new(cc, AppKind::bulk());
        let rivals: Vec<_> = all("next_to", &next_to)?.into_iter().map(competitor).collect();
        let sets = scenario.rivals.iter_mut().map(|set| &mut set.competitor);
        let paths = scenario.path.iter_mut().map(|path| &mut path.competitor);
        for own in sets.chain(paths) {
            own.extend_from_slice(&rivals);
        }
        if scenario.rivals.is_empty() && scenario.path.is_empty() {
            scenario.competitor.extend(rivals);
        }
        if scenario.path.is_empty() {
            scenario.flows = vec![agents];
        }
        scenario.path.iter_mut().for_each(|path| path.flows = agents);
        let prepared = py.detach(|| {
            let plan = scenario.plan().map_err(refuse)?;
            prepare(&plan).map_err(refuse)
        })?;
        Ok(Self(Arc::new(Paths { prepared, agents: agents as usize })))
    }

    /// How many paths there are.
    fn __len__(&self) -> usize {
        self.0.prepared.plan.jobs.len()
    }

    /// What the episode of a number runs over.
    fn describe(&self, number: u64) -> String {
        let Job { trace, cell, seed, .. } = &self.0.job(number);
        format!(
            "{}, round trip {}, buffer {}, loss {}, jitter {}, seed {seed}",
            self.0.prepared.plan.traces[*trace].name, cell.rtt, cell.buffer, cell.loss, cell.jitter
        )
    }
}

impl Paths {
    /// Whether the plug-ins among the rivals have worked so far.
    fn check(&self) -> PyResult<()> {
        self.prepared.check_plugs().map_err(refuse)
    }

    /// The run of a number. Of one path, number 7 is the run that `compare` has with seed 7.
    fn job(&self, number: u64) -> Job {
        let jobs = &self.prepared.plan.jobs;
        let place = number.wrapping_mul(GOLDEN) >> 32;
        let mut job = jobs[place as usize % jobs.len()].clone();
        job.seed = number & ((1 << SEED_BITS) - 1);
        job
    }

    fn arena(&self, rules: &Arc<ArenaRules>, number: u64, start: Option<f64>) -> Arena {
        let config = simulator::world(&self.prepared, &self.job(number), &Arena::CONTROL);
        let end = Time::ZERO + self.prepared.plan.scenario.duration;
        Arena::new(rules.clone(), &config, self.agents, start, end)
    }
}

/// What there is to choose from, by table: for each entry its name, what it is, and where it comes
/// from or the range that it lies in.
#[pyfunction]
pub(crate) fn agents_tables(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    let measures = MEASURES.map(|m| (m.name, m.about, m.range));
    tables.set_item("measures", measures.to_vec())?;
    let sets = OBSERVATION_SETS.map(|set| (set.name, set.measures.to_vec(), set.source));
    tables.set_item("observations", sets.to_vec())?;
    let rewards = REWARDS.map(|reward| (reward.name, reward.about, reward.source));
    tables.set_item("rewards", rewards.to_vec())?;
    let turns = TURNS.map(|turn| (turn.name, turn.about, turn.source));
    tables.set_item("actions", turns.to_vec())?;
    Ok(tables)
}

/// The entry of a table with this name.
fn named<'a, T>(
    table: &'a [T],
    name: &str,
    of: impl Fn(&T) -> &'static str,
    kind: &str,
) -> PyResult<&'a T> {
    let known = || table.iter().map(&of).collect::<Vec<_>>().join(", ");
    let found = table.iter().find(|entry| of(entry) == name);
    found.ok_or_else(|| refuse(format!("{kind}={name:?}: there are {}", known())))
}

/// Episodes that step together, on all cores and without Python's lock.
#[pyclass(name = "Arenas", module = "trimtab._native")]
pub(crate) struct PyArenas {
    paths: Arc<Paths>,
    rules: Arc<ArenaRules>,
    arenas: Vec<Arena>,
    /// What is handed over: observations one after another, and of each measure all agents'.
    seen: Vec<f32>,
    measures: Vec<f64>,
}

#[pymethods]
impl PyArenas {
    #[new]
    #[pyo3(signature = (
        paths, numbers, *, knob, action, low, high, start, interval, observe, history, reward, steps
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        py: Python<'_>,
        paths: &PyPaths,
        numbers: Vec<u64>,
        knob: &str,
        action: &str,
        low: f64,
        high: f64,
        start: Option<f64>,
        interval: &str,
        observe: Vec<String>,
        history: usize,
        reward: Option<&str>,
        steps: Option<u32>,
    ) -> PyResult<Self> {
        let paths = paths.0.clone();
        let knob = match knob {
            "rate" => Knob::Rate,
            "window" => Knob::Window,
            other => return Err(refuse(format!("knob={other:?}: write rate or window"))),
        };
        if start.is_some_and(|start| !start.is_finite()) {
            return Err(refuse("start is no finite number: write e.g. start=4"));
        }
        if !(low > 0.0 && low < high && high.is_finite()) {
            return Err(refuse(format!("low={low}, high={high}: write 0 < low < high")));
        }
        let interval = interval.parse().map_err(refuse)?;
        if interval == Interval::Ack && paths.agents > 1 {
            return Err(refuse("interval=\"ack\" is for one agent: write e.g. \"1rtt\""));
        }
        if history == 0 || observe.is_empty() {
            return Err(refuse("an observation has at least one measure and one interval"));
        }
        let name = |name: &String| named(&MEASURES, name, |m: &Measure| m.name, "observe").copied();
        let reward = match reward {
            Some(name) => Some(*named(&REWARDS, name, |r: &Reward| r.name, "reward")?),
            None => None,
        };
        let rules = Arc::new(ArenaRules {
            knob,
            turn: *named(&TURNS, action, |turn: &Turn| turn.name, "action")?,
            range: (low, high),
            start,
            interval,
            observe: observe.iter().map(name).collect::<PyResult<_>>()?,
            history,
            reward,
            steps,
        });
        let begin = |&number: &u64| paths.arena(&rules, number, None);
        let arenas: Vec<Arena> = py.detach(|| numbers.par_iter().map(begin).collect());
        let agents = arenas.len() * paths.agents;
        let (seen, measures) =
            (vec![0.0; agents * rules.observation_len()], vec![0.0; agents * MEASURES.len()]);
        Ok(Self { paths, rules, arenas, seen, measures })
    }

    fn __len__(&self) -> usize {
        self.arenas.len()
    }

    /// The least and the most that an action is.
    fn action_range(&self) -> (f64, f64) {
        self.rules.action_range()
    }

    /// Begins the episodes with these places anew.
    #[pyo3(signature = (which, numbers, start=None))]
    fn reset(
        &mut self,
        py: Python<'_>,
        which: Vec<usize>,
        numbers: Vec<u64>,
        start: Option<f64>,
    ) -> PyResult<()> {
        if start.is_some_and(|start| !start.is_finite()) {
            return Err(refuse("start is no finite number: write e.g. {\"start\": 4}"));
        }
        if which.len() != numbers.len() {
            return Err(refuse(format!("{} places but {} numbers", which.len(), numbers.len())));
        }
        if let Some(missing) = which.iter().find(|&&i| i >= self.arenas.len()) {
            return Err(PyIndexError::new_err(format!("there is no episode {missing}")));
        }
        let (paths, rules) = (&self.paths, &self.rules);
        let begin = |&number: &u64| paths.arena(rules, number, start);
        let fresh: Vec<Arena> = py.detach(|| numbers.par_iter().map(begin).collect());
        for (i, arena) in which.into_iter().zip(fresh) {
            self.arenas[i] = arena;
        }
        self.paths.check()
    }

    /// Takes an action of each agent and runs an interval of each episode, then fills what comes of
    /// it: rewards and measures by agent, and for each episode whether it is over.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyBuffer<f32>,
        observations: PyBuffer<f32>,
        rewards: PyBuffer<f64>,
        measures: PyBuffer<f64>,
        done: PyBuffer<u8>,
    ) -> PyResult<()> {
        let actions = self.actions(py, &actions)?;
        py.detach(|| self.run(&actions));
        self.paths.check()?;
        self.look(py, observations, measures)?;
        let agents = self.paths.agents;
        let earned = self.arenas.iter().flat_map(|a| (0..agents).map(|agent| a.reward(agent)));
        fill(py, "rewards", &rewards, &earned.collect::<Vec<_>>())?;
        let over: Vec<u8> = self.arenas.iter().map(|arena| u8::from(arena.is_done())).collect();
        fill(py, "done", &done, &over)
    }

    /// Fills what each agent observes now: an observation for each, and for each measure all of them.
    fn look(
        &mut self,
        py: Python<'_>,
        observations: PyBuffer<f32>,
        measures: PyBuffer<f64>,
    ) -> PyResult<()> {
        let (each, agents) = (self.rules.observation_len(), self.paths.agents);
        let count = self.arenas.len() * agents;
        for (i, place) in self.seen.chunks_mut(each).enumerate() {
            let (arena, agent) = (&self.arenas[i / agents], i % agents);
            place.copy_from_slice(arena.observation(agent));
            for (row, value) in arena.measures(agent).iter().enumerate() {
                self.measures[row * count + i] = *value;
            }
        }
        fill(py, "observations", &observations, &self.seen)?;
        fill(py, "measures", &measures, &self.measures)
    }

    /// Takes whole courses of actions, step by step with an action of each agent, and tells nothing
    /// in between. Gives the sum of the rewards of each agent.
    fn play(&mut self, py: Python<'_>, actions: PyBuffer<f32>) -> PyResult<Vec<f64>> {
        let agents = self.paths.agents;
        let count = self.arenas.len() * agents;
        let actions: Vec<f32> = actions.to_vec(py)?;
        let even = count > 0 && actions.len().is_multiple_of(count);
        if !even || actions.iter().any(|action| action.is_nan()) {
            let len = actions.len();
            return Err(refuse(format!("{len} actions for {count} agents: give numbers for each")));
        }
        let play = |(place, arena): (usize, &mut Arena)| {
            let mut sums = vec![0.0; agents];
            for step in actions.chunks(count) {
                // What is over earns nothing more.
                if arena.is_done() {
                    break;
                }
                arena.step(&step[place * agents..(place + 1) * agents]);
                sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += arena.reward(i));
            }
            sums
        };
        let arenas = &mut self.arenas;
        let sums: Vec<Vec<f64>> = py.detach(|| {
            if is_alone(arenas.len()) {
                return arenas.iter_mut().enumerate().map(play).collect();
            }
            arenas.par_iter_mut().enumerate().map(play).collect()
        });
        self.paths.check()?;
        Ok(sums.concat())
    }

    /// So many equal copies of each episode, all copies of the first one first.
    fn fork(&self, copies: usize) -> PyResult<Self> {
        if let Some(plugin) = self.paths.prepared.plug_without_copies() {
            return Err(refuse(format!(
                "{plugin} cannot be copied, so nothing forks next to it: give it `clone`, or take another rival"
            )));
        }
        let each = |arena: &Arena| vec![arena.clone(); copies];
        let arenas: Vec<Arena> = self.arenas.iter().flat_map(each).collect();
        let (seen, measures) =
            (vec![0.0; self.seen.len() * copies], vec![0.0; self.measures.len() * copies]);
        Ok(Self { paths: self.paths.clone(), rules: self.rules.clone(), arenas, seen, measures })
    }

    /// Events simulated so far, over all episodes.
    fn events(&self) -> u64 {
        self.arenas.iter().map(Arena::events).sum()
    }
}

impl PyArenas {
    fn actions(&self, py: Python<'_>, given: &PyBuffer<f32>) -> PyResult<Vec<f32>> {
        let actions = given.to_vec(py)?;
        let count = self.arenas.len() * self.paths.agents;
        if actions.len() != count {
            return Err(refuse(format!("{} actions for {count} agents", actions.len())));
        }
        if actions.iter().any(|action| action.is_nan()) {
            return Err(refuse("an action is not a number"));
        }
        Ok(actions)
    }

    fn run(&mut self, actions: &[f32]) {
        let agents = self.paths.agents;
        let pairs = self.arenas.iter_mut().zip(actions.chunks(agents));
        if is_alone(pairs.len()) {
            return pairs.for_each(|(arena, actions)| arena.step(actions));
        }
        let pairs = self.arenas.par_iter_mut().zip(actions.par_chunks(agents));
        pairs.for_each(|(arena, actions)| arena.step(actions));
    }
}

/// Whether the calling thread does it all: to hand one episode to another thread takes longer than it
/// runs.
fn is_alone(episodes: usize) -> bool {
    episodes < 2 || rayon::current_num_threads() < 2
}

/// Copies numbers into an array of Python's, which has room for exactly these.
fn fill<T: Element + Copy>(
    py: Python<'_>,
    name: &str,
    array: &PyBuffer<T>,
    numbers: &[T],
) -> PyResult<()> {
    if array.item_count() != numbers.len() {
        let (have, need) = (array.item_count(), numbers.len());
        return Err(refuse(format!("{name} has room for {have} numbers and needs {need}")));
    }
    array.copy_from_slice(py, numbers)
}
