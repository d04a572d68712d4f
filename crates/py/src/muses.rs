//! Flows that stop at each decision, in batches: what `python/trimtab/muses` learns on.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use trimtab_cc::muses::{Action, Factor, SIGNAL_NAMES, Trees};
use trimtab_envs::muses::{
    Environments, EnvironmentsConfig, Oracle, Outcome, Part, Rollout, Setting, shown,
};
use trimtab_sim::Control;
use trimtab_steer::muses::Policy;
use trimtab_units::{Bytes, Duration, Rate};

use crate::refuse;

/// The networks of Muses' Tables II and III.
#[pyclass(frozen, name = "MusesEnvironments", module = "trimtab._native")]
pub(crate) struct PyEnvironments(Arc<Environments>);

#[pymethods]
impl PyEnvironments {
    #[new]
    #[pyo3(signature = (
        *, setting, part, length_ms, traces, kinds, generated, delay_max_ms, alpha_percent, ahead,
        even_at_mbps, room_percent=None, span_ms=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
    fn new(
        py: Python<'_>,
        setting: &str,
        part: &str,
        length_ms: u64,
        traces: Option<PathBuf>,
        kinds: Vec<String>,
        generated: usize,
        delay_max_ms: Option<u64>,
        alpha_percent: u32,
        ahead: bool,
        even_at_mbps: Option<f64>,
        room_percent: Option<u32>,
        span_ms: u64,
    ) -> PyResult<Self> {
        let known = || Setting::ALL.map(Setting::name).join(", ");
        let found = Setting::ALL.into_iter().find(|s| s.name() == setting);
        let setting = found
            .ok_or_else(|| refuse(format!("setting {setting:?}: write one of {}", known())))?;
        let part = match part {
            "train" => Part::Train,
            "validation" => Part::Validation,
            "test" => Part::Test,
            other => {
                return Err(refuse(format!("part {other:?}: write train, validation or test")));
            }
        };
        let config = EnvironmentsConfig {
            setting,
            part,
            length: Duration::from_millis(length_ms),
            recorded: traces.map(|root| (root, kinds)),
            generated,
            delay_max: delay_max_ms.map(Duration::from_millis),
            oracle: Oracle {
                alpha_percent,
                ahead,
                even_at: even_at_mbps.map(Rate::from_mbps),
                room_percent,
                span: Duration::from_millis(span_ms),
            },
        };
        let environments = py.detach(|| Environments::new(&config)).map_err(refuse)?;
        Ok(Self(Arc::new(environments)))
    }

    /// The names of the signals of a state, in their order.
    #[staticmethod]
    fn signals() -> Vec<&'static str> {
        SIGNAL_NAMES.to_vec()
    }

    /// What the network of a seed is made of.
    fn describe(&self, seed: u64) -> String {
        let e = self.0.draw(seed);
        format!(
            "{} of {}, one-way delay {}, loss {:.3}%, buffer {}",
            e.name,
            e.capacity.mean_rate(),
            e.delay,
            e.loss * 100.0,
            e.buffer
        )
    }
}

/// Outcomes, as [`PyRollouts::outcomes`] gives them.
type Outcomes = Vec<(f64, f64, f64)>;

fn plain(outcome: &Outcome) -> (f64, f64, f64) {
    (outcome.utilisation, outcome.queue_delay_p95.as_secs_f64(), outcome.loss)
}

/// What flows of an algorithm, or of the trees of a model file, come to over the networks of these seeds. The model's
/// bytes stay in memory until the program ends.
#[pyfunction]
#[pyo3(signature = (environments, seeds, *, flows, length_ms, algorithm=None, trees=None))]
pub(crate) fn muses_outcomes(
    py: Python<'_>,
    environments: &PyEnvironments,
    seeds: Vec<u64>,
    flows: usize,
    length_ms: u64,
    algorithm: Option<&str>,
    trees: Option<Vec<u8>>,
) -> PyResult<Outcomes> {
    let control = match (algorithm, trees) {
        (Some(text), None) => {
            let spec = text.parse().map_err(|problem| refuse(format!("{text}: {problem}")))?;
            Control::Algorithm { spec, steerer: None }
        }
        (None, Some(bytes)) => {
            let trees = Trees::parse(bytes.leak()).map_err(refuse)?;
            Control::Muses { policy: Policy::Trees(trees), safe: None }
        }
        _ => return Err(refuse("name an algorithm or give trees")),
    };
    let all = &environments.0;
    let length = Duration::from_millis(length_ms);
    let run =
        |&seed: &u64| plain(&Rollout::run_alone(&all.draw(seed), &control, flows, length, seed));
    Ok(py.detach(|| seeds.par_iter().map(run).collect()))
}

/// What the first of these trees, or with `by_oracle` the oracle, sees while it drives over the networks of these
/// seeds, and what would have been best: for each state the inputs of a tree and the logarithm of the best window
/// over the present one in 1/4096 doublings, all whole numbers of 16 bits, little end first.
#[pyfunction]
#[pyo3(signature = (environments, seeds, *, flows, length_ms, trees, by_oracle))]
pub(crate) fn muses_shown<'py>(
    py: Python<'py>,
    environments: &PyEnvironments,
    seeds: Vec<u64>,
    flows: usize,
    length_ms: u64,
    trees: &[u8],
    by_oracle: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let trees = Trees::parse(trees).map_err(refuse)?;
    let (all, length) = (&environments.0, Duration::from_millis(length_ms));
    let run = |&seed: &u64| {
        let states = shown(&all.draw(seed), &trees, (flows, by_oracle), length, seed);
        let words = states.iter().flat_map(|s| s.inputs.into_iter().chain([s.ratio]));
        words.flat_map(i16::to_le_bytes).collect::<Vec<u8>>()
    };
    let bytes: Vec<Vec<u8>> = py.detach(|| seeds.par_iter().map(run).collect());
    Ok(PyBytes::new(py, &bytes.concat()))
}

/// Networks under way, on all cores and without Python's lock. Each is stopped where one of its flows decides.
#[pyclass(name = "MusesRollouts", module = "trimtab._native")]
pub(crate) struct PyRollouts(Vec<Rollout>);

#[pymethods]
impl PyRollouts {
    /// One network for each seed, with `flows` flows each, for so many decisions or for so long.
    #[new]
    #[pyo3(signature = (environments, seeds, flows, decisions=None, *, length_ms=None))]
    fn new(
        py: Python<'_>,
        environments: &PyEnvironments,
        seeds: Vec<u64>,
        flows: usize,
        decisions: Option<u32>,
        length_ms: Option<u64>,
    ) -> PyResult<Self> {
        let all = &environments.0;
        let start: Box<dyn Fn(&u64) -> Rollout + Send + Sync> = match (decisions, length_ms) {
            (Some(n), None) => Box::new(move |&seed| Rollout::new(&all.draw(seed), flows, n, seed)),
            (None, Some(ms)) => {
                let length = Duration::from_millis(ms);
                Box::new(move |&seed| Rollout::lasting(&all.draw(seed), flows, length, seed))
            }
            _ => return Err(refuse("say how many decisions, or give length_ms")),
        };
        Ok(Self(py.detach(|| seeds.par_iter().map(start).collect())))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The state of each network's flow that decides: 7 whole numbers of 16 bits, little end first.
    fn states<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|r| r.state().into_iter().flat_map(i16::to_le_bytes)).collect();
        PyBytes::new(py, &bytes)
    }

    /// The flow that decides in each network; 255 where none does any more.
    fn flows<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let flow = |r: &Rollout| if r.is_done() { 255 } else { r.flow() as u8 };
        let bytes: Vec<u8> = self.0.iter().map(flow).collect();
        PyBytes::new(py, &bytes)
    }

    /// The best action in each network (Muses Eq. 2).
    fn best<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> = self.0.iter().map(|r| r.best().number()).collect();
        PyBytes::new(py, &bytes)
    }

    /// Takes an action in each network, and goes on to the next decision: whole numbers of 16 bits,
    /// little end first, below 7 an action's, from 8192 on a factor in 1/16384. What is said of
    /// networks that are done counts for nothing.
    fn act(&mut self, py: Python<'_>, actions: &[u8]) -> PyResult<()> {
        let rollouts = &mut self.0;
        let (numbers, rest) = actions.as_chunks::<2>();
        if numbers.len() != rollouts.len() || !rest.is_empty() {
            return Err(refuse(format!(
                "{} bytes of actions for {} networks: give two for each",
                actions.len(),
                rollouts.len()
            )));
        }
        let factor = |bytes: &[u8; 2]| {
            let number = u16::from_le_bytes(*bytes);
            let action = u8::try_from(number).ok().and_then(Action::new);
            action.map(Action::factor).or_else(|| Factor::new(number)).ok_or_else(|| {
                refuse(format!("action {number}: there are 0 to 6, and factors of 8192 to 32768"))
            })
        };
        let factors: Vec<Factor> = numbers.iter().map(factor).collect::<PyResult<_>>()?;
        py.detach(|| {
            rollouts.par_iter_mut().zip(&factors).for_each(|(r, &factor)| r.act(factor));
        });
        Ok(())
    }

    /// Utilisation (0 to 1), 95th percentile of the queueing delay in seconds and loss (0 to 1) of each network so
    /// far.
    fn outcomes(&self) -> Outcomes {
        self.0.iter().map(|r| plain(&r.outcome())).collect()
    }

    /// Bytes of each flow of each network that arrived so far.
    fn delivered(&self) -> Vec<Vec<u64>> {
        self.0.iter().map(|r| r.delivered().into_iter().map(Bytes::get).collect()).collect()
    }
}
