//! The native half of the Python package `trimtab`: batches of episodes over the simulator.
//!
//! Everything heavy happens here, on all cores and without Python's lock: a batch of episodes steps at
//! once, and what each choice would have cost is tried on copies of the world. The Python half
//! (`python/trimtab`) makes Gymnasium environments and training of it; `_native.pyi` there describes
//! every name to type checkers, so a change here is a change there.

#![expect(clippy::needless_pass_by_value, reason = "what comes from Python comes by value")]

mod agents;
mod arms;
mod bounds;
mod compare;
mod muses;
mod reproduce;
mod twin;

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_envs::{
    Course, CourseConfig, Episode, Objective, Outcome, RivalKind, RivalsConfig, Rules, Traffic,
};
use trimtab_steer::select::antelope::{self, Measured};
use trimtab_steer::select::{CANDIDATE_FEATURES, FEATURES};
use trimtab_units::{Bytes, Duration};

/// How long requests that are outstanding at the end of an episode may take to finish.
const GRACE: Duration = Duration::from_secs(60);

pub(crate) fn refuse(what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(what.to_string())
}

/// What episodes are drawn from: links, network conditions, applications and algorithms.
#[pyclass(frozen, name = "Course", module = "trimtab._native")]
struct PyCourse(Arc<Course>);

#[pymethods]
impl PyCourse {
    #[new]
    #[pyo3(signature = (*, algorithms, period_ms, periods, split, conditions, generated, wifi, traces, kinds, traffic, flows, rivals, rival_kinds, start, full_switch, objective))]
    #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        py: Python<'_>,
        algorithms: Vec<String>,
        period_ms: u64,
        periods: u32,
        split: &str,
        conditions: usize,
        generated: usize,
        wifi: usize,
        traces: Option<std::path::PathBuf>,
        kinds: Vec<String>,
        traffic: Vec<String>,
        flows: Vec<usize>,
        rivals: Vec<usize>,
        rival_kinds: Vec<String>,
        start: Option<usize>,
        full_switch: bool,
        objective: &str,
    ) -> PyResult<Self> {
        let specs: Vec<Spec> = algorithms
            .iter()
            .map(|text| text.parse().map_err(|problem| refuse(format!("{text}: {problem}"))))
            .collect::<PyResult<_>>()?;
        let traffic = traffic.iter().map(|name| traffic_of(name)).collect::<PyResult<_>>()?;
        let rival_kinds = rival_kinds.iter().map(|name| rival_of(name)).collect::<PyResult<_>>()?;
        let config = CourseConfig {
            rules: Rules {
                algorithms: specs.into(),
                period: Duration::from_millis(period_ms),
                periods,
                switch: if full_switch { Switch::Full } else { Switch::Part },
                objective: match objective {
                    "mean" => Objective::Mean,
                    "p90" => Objective::P90,
                    other => return Err(refuse(format!("objective {other:?}: write mean or p90"))),
                },
            },
            part: split.parse().map_err(refuse)?,
            conditions,
            generated,
            wifi,
            recorded: traces.map(|root| (root, kinds)),
            traffic,
            flows,
            rivals: RivalsConfig { counts: rivals, kinds: rival_kinds },
            start,
        };
        let course = py.detach(|| Course::new(config)).map_err(refuse)?;
        Ok(Self(Arc::new(course)))
    }

    /// The names of the links.
    #[getter]
    fn links(&self) -> Vec<String> {
        self.0.links().iter().map(|link| link.name.clone()).collect()
    }

    /// The names of what a policy sees, in their order: the features of a state, and which candidate runs.
    #[getter]
    fn features(&self) -> Vec<&'static str> {
        let candidates = &CANDIDATE_FEATURES[..self.0.rules().algorithms.len()];
        FEATURES.iter().map(|feature| feature.name).chain(candidates.iter().copied()).collect()
    }

    /// The names of what Antelope's models are asked with, in their order.
    #[staticmethod]
    fn antelope_features() -> Vec<&'static str> {
        antelope::FEATURES.iter().map(|feature| feature.name).collect()
    }

    /// What the episode of a seed is made of.
    fn describe(&self, seed: u64) -> String {
        let (draw, link) = self.0.draw(seed);
        let path = draw.condition;
        format!(
            "{} x {} next to {} rivals over {link}, round trip {}, jitter {}, loss {:.3}%, buffer \
             {:.2} BDP",
            draw.flows,
            draw.traffic.name(),
            draw.rivals.len(),
            path.rtt,
            path.jitter,
            path.loss * 100.0,
            path.buffer_bdp
        )
    }
}

fn traffic_of(name: &str) -> PyResult<Traffic> {
    let known = || Traffic::ALL.map(Traffic::name).join(", ");
    let found = Traffic::ALL.into_iter().find(|traffic| traffic.name() == name);
    found.ok_or_else(|| refuse(format!("traffic {name:?}: write one of {}", known())))
}

fn rival_of(name: &str) -> PyResult<RivalKind> {
    let known = || RivalKind::ALL.map(RivalKind::name).join(", ");
    let found = RivalKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| refuse(format!("rival {name:?}: write one of {}", known())))
}

/// Rewards, completion times in seconds (0 where none completed), seconds waited, whether all
/// periods have run, shares of packets lost, and MB that rivals received: one of each for each
/// episode.
type Stepped = (Vec<f64>, Vec<f64>, Vec<f64>, Vec<bool>, Vec<f64>, Vec<f64>);
/// Costs in seconds, shares of packets lost, and harm: of each a row for each episode.
type Tried = (Vec<Vec<f64>>, Vec<Vec<f64>>, Vec<Vec<f64>>);

/// Episodes that step together, on all cores.
#[pyclass(name = "Episodes", module = "trimtab._native")]
struct PyEpisodes {
    course: Arc<Course>,
    episodes: Vec<Episode>,
}

#[pymethods]
impl PyEpisodes {
    /// Begins episodes, each with the algorithm of its number in `starts`, or as the course has it.
    #[new]
    #[pyo3(signature = (course, seeds, starts=None))]
    fn new(
        py: Python<'_>,
        course: &PyCourse,
        seeds: Vec<u64>,
        starts: Option<Vec<usize>>,
    ) -> PyResult<Self> {
        let course = course.0.clone();
        let count = course.rules().algorithms.len();
        if let Some(starts) = &starts {
            if starts.len() != seeds.len() {
                return Err(refuse(format!("{} starts for {} seeds", starts.len(), seeds.len())));
            }
            if let Some(wrong) = starts.iter().find(|&&start| start >= count) {
                return Err(refuse(format!("start {wrong}: there are {count} algorithms")));
            }
        }
        let begin = |i: usize| match &starts {
            Some(starts) => course.begun_with(seeds[i], starts[i]),
            None => course.episode(seeds[i]),
        };
        let episodes = py.detach(|| (0..seeds.len()).into_par_iter().map(begin).collect());
        Ok(Self { course, episodes })
    }

    /// A visit to the path of each seed: all of the path is the same, and all that comes another.
    #[staticmethod]
    fn visits(py: Python<'_>, course: &PyCourse, seeds: Vec<u64>, visit: u64) -> Self {
        let course = course.0.clone();
        let begin = |&seed: &u64| Episode::new(course.shared(), &course.visit(seed, visit));
        let episodes = py.detach(|| seeds.par_iter().map(begin).collect());
        Self { course, episodes }
    }

    fn __len__(&self) -> usize {
        self.episodes.len()
    }

    /// Begins the episodes with these numbers anew.
    fn reset(&mut self, py: Python<'_>, which: Vec<usize>, seeds: Vec<u64>) -> PyResult<()> {
        if which.len() != seeds.len() {
            return Err(refuse(format!("{} episodes but {} seeds", which.len(), seeds.len())));
        }
        if let Some(missing) = which.iter().find(|&&i| i >= self.episodes.len()) {
            return Err(PyIndexError::new_err(format!("there is no episode {missing}")));
        }
        let course = &self.course;
        let fresh: Vec<_> =
            py.detach(|| seeds.par_iter().map(|&seed| course.episode(seed)).collect());
        for (i, episode) in which.into_iter().zip(fresh) {
            self.episodes[i] = episode;
        }
        Ok(())
    }

    /// What a policy sees of every episode, one after another.
    fn states(&self) -> Vec<f32> {
        let count = self.course.rules().algorithms.len();
        let seen = |episode: &Episode| {
            let running = episode.running();
            let which = (0..count).map(move |i| f32::from(u8::from(running == Some(i))));
            episode.state().into_iter().chain(which)
        };
        self.episodes.iter().flat_map(seen).collect()
    }

    /// What Antelope's models are asked with, of every episode, one after another, and for each
    /// whether it is enough to decide by.
    fn measured(&self) -> (Vec<f32>, Vec<bool>) {
        let measured: Vec<_> = self.episodes.iter().map(Episode::measured).collect();
        let inputs = measured.iter().flat_map(Measured::inputs).collect();
        (inputs, measured.iter().map(Measured::is_enough).collect())
    }

    /// What each algorithm would be worth to each episode in the next period, by Antelope's
    /// measure: a row for each episode, without anything where nothing could be told.
    fn rewards(&self, py: Python<'_>) -> Vec<Vec<f64>> {
        let of = |episode: &Episode| episode.rewards().unwrap_or_default();
        py.detach(|| self.episodes.par_iter().map(of).collect())
    }

    /// The number of the algorithm that each episode runs.
    fn current(&self) -> Vec<usize> {
        self.episodes.iter().map(Episode::current).collect()
    }

    /// Chooses an algorithm for each episode and runs a period.
    fn step(&mut self, py: Python<'_>, actions: Vec<usize>) -> PyResult<Stepped> {
        let count = self.course.rules().algorithms.len();
        if actions.len() != self.episodes.len() {
            return Err(refuse(format!(
                "{} actions for {} episodes",
                actions.len(),
                self.episodes.len()
            )));
        }
        if let Some(wrong) = actions.iter().find(|&&action| action >= count) {
            return Err(refuse(format!("action {wrong}: there are {count} algorithms")));
        }
        let episodes = &mut self.episodes;
        let steps: Vec<_> = py.detach(|| {
            episodes
                .par_iter_mut()
                .zip(&actions)
                .map(|(episode, &action)| episode.step(action))
                .collect()
        });
        let completion = |t: Option<Duration>| t.map_or(0.0, Duration::as_secs_f64);
        Ok((
            steps.iter().map(|s| s.reward).collect(),
            steps.iter().map(|s| completion(s.completion)).collect(),
            steps.iter().map(|s| s.waited.as_secs_f64()).collect(),
            steps.iter().map(|s| s.done).collect(),
            steps.iter().map(|s| s.lost).collect(),
            steps.iter().map(|s| s.rivals.as_f64() * 1e-6).collect(),
        ))
    }

    /// What each algorithm would cost each episode from here, in seconds that requests spend waiting
    /// over the next `periods` if it were chosen now and kept: a row for each episode.
    fn costs(&self, py: Python<'_>, periods: u32) -> Vec<Vec<f64>> {
        let cost = |outcome: Outcome| outcome.cost.as_secs_f64();
        let outcomes = py.detach(|| self.tried(periods));
        outcomes.into_iter().map(|row| row.into_iter().map(cost).collect()).collect()
    }

    /// The same with the share of packets that each loses, and the harm that it does: the share of
    /// what rivals would have received next to CUBIC that they do not.
    fn outcomes(&self, py: Python<'_>, periods: u32) -> Tried {
        let (outcomes, cubic) = py.detach(|| {
            let outcomes = self.tried(periods);
            let algorithms = &self.course.rules().algorithms;
            let plain = algorithms.iter().position(|spec| spec.is_same(&RivalKind::Cubic.spec()));
            let next_to = |(episode, row): (&Episode, &Vec<Outcome>)| match plain {
                Some(i) => row[i].rivals,
                None => episode.next_to_cubic(periods).unwrap_or_default(),
            };
            let cubic: Vec<Bytes> = self.episodes.par_iter().zip(&outcomes).map(next_to).collect();
            (outcomes, cubic)
        });
        let rows = |of: &dyn Fn(&Outcome, Bytes) -> f64| {
            let row = |(row, cubic): (&Vec<Outcome>, &Bytes)| {
                row.iter().map(|outcome| of(outcome, *cubic)).collect()
            };
            outcomes.iter().zip(&cubic).map(row).collect()
        };
        (rows(&|o, _| o.cost.as_secs_f64()), rows(&|o, _| o.lost), rows(&Outcome::harm))
    }

    /// Lets the outstanding requests of copies finish, and gives the completion times in seconds of
    /// every request of each episode.
    fn completions(&self, py: Python<'_>) -> Vec<Vec<f64>> {
        let seconds = |times: Vec<Duration>| times.into_iter().map(Duration::as_secs_f64).collect();
        py.detach(|| {
            self.episodes.par_iter().map(|episode| seconds(episode.clone().finish(GRACE))).collect()
        })
    }

    /// How many bytes the responses of each episode have that were asked for so far.
    fn sizes(&self) -> Vec<u64> {
        let bytes = |episode: &Episode| episode.requests().map(|request| request.size.get()).sum();
        self.episodes.iter().map(bytes).collect()
    }

    /// Events simulated so far, over all episodes.
    fn events(&self) -> u64 {
        self.episodes.iter().map(Episode::events).sum()
    }
}

impl PyEpisodes {
    /// What each algorithm would come to: a row for each episode.
    fn tried(&self, periods: u32) -> Vec<Vec<Outcome>> {
        let count = self.course.rules().algorithms.len();
        let pairs = self.episodes.len() * count;
        let outcome = |i: usize| self.episodes[i / count].outcome(i % count, periods);
        let flat: Vec<Outcome> = (0..pairs).into_par_iter().map(outcome).collect();
        flat.chunks(count).map(<[Outcome]>::to_vec).collect()
    }
}

/// Every algorithm and every other scheme as JSON.
#[pyfunction]
fn schemes() -> String {
    trimtab_lab::listing::listing().to_string()
}

/// The native half of the Python package `trimtab`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCourse>()?;
    module.add_class::<PyEpisodes>()?;
    module.add_class::<agents::PyPaths>()?;
    module.add_class::<agents::PyArenas>()?;
    module.add_function(wrap_pyfunction!(agents::agents_tables, module)?)?;
    module.add_class::<arms::PyArms>()?;
    module.add_function(wrap_pyfunction!(bounds::came_to, module)?)?;
    module.add_function(wrap_pyfunction!(bounds::constants, module)?)?;
    module.add_function(wrap_pyfunction!(bounds::redrawn_outcomes, module)?)?;
    module.add_class::<compare::PyCompared>()?;
    module.add_class::<compare::PyPlanned>()?;
    module.add_function(wrap_pyfunction!(compare::planned, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce::figures, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce::reproduced, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce::verdicts, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_class::<twin::PyPrior>()?;
    module.add_class::<twin::PyTwins>()?;
    module.add_class::<muses::PyEnvironments>()?;
    module.add_class::<muses::PyRollouts>()?;
    module.add_function(wrap_pyfunction!(muses::muses_outcomes, module)?)?;
    module.add_function(wrap_pyfunction!(muses::muses_shown, module)?)
}
