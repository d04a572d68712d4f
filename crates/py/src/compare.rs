//! `trimtab.compare()`: what the command `trimtab compare` does on the simulator, for Python.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration as Wait;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use trimtab_lab::compare::{CompareError, compare, ready};
use trimtab_lab::report::archive::{
    Table, Values, requests_table, runs_table, series_table, summary_table,
};
use trimtab_lab::report::figure::{Kind, figure};
use trimtab_lab::report::output::OutputError;
use trimtab_lab::report::picture::{self, Format};
use trimtab_lab::report::{page, table, write_folder};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::{Effort, INTERRUPTED};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::{Given, Scenario, TransportKind};
use trimtab_lab::share::{Share, join, share};

use crate::refuse;

/// How often the calling thread asks Python whether Ctrl-C was pressed.
const SIGNALS_EVERY: Wait = Wait::from_millis(50);

/// A finished comparison.
#[pyclass(frozen, name = "Compared", module = "trimtab._native")]
pub(crate) struct PyCompared {
    scenario: Scenario,
    comparison: Comparison,
}

#[pymethods]
impl PyCompared {
    /// One row per run: a list for each column.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, runs_table(&self.comparison.runs))
    }

    /// One row per request or chunk.
    fn requests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, requests_table(&self.comparison.runs))
    }

    /// One row per run and bin of time.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, series_table(&self.comparison.runs))
    }

    /// One row per scheme and application.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, summary_table(&self.comparison.summary))
    }

    /// What `--json` writes.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.comparison)
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }

    /// What the command prints.
    fn table(&self) -> String {
        table::render(&self.comparison, table::Style::of_stdout())
    }

    /// What `--html` writes.
    fn html(&self) -> String {
        page(&self.comparison, &self.scenario.name, &self.scenario.about)
    }

    /// A figure as SVG.
    fn svg(&self, kind: &str) -> PyResult<String> {
        let kind: Kind = kind.parse().map_err(refuse)?;
        figure(kind, &self.comparison).map_err(refuse)
    }

    /// What `--plot` writes.
    fn plot(&self, py: Python<'_>, kind: &str, file: PathBuf) -> PyResult<()> {
        if Format::of(&file).is_none() {
            let name = file.display();
            return Err(refuse(format!("{name}: name a file that ends in .svg, .pdf or .png")));
        }
        let svg = self.svg(kind)?;
        py.detach(|| picture::write(&file, &svg)).map_err(os_error)
    }

    /// What `--out` writes.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| write_folder(&folder, &self.comparison)).map_err(os_error)
    }
}

/// The error of Python for a refusal of the system, e.g. `PermissionError`, with our message.
fn os_error(e: OutputError) -> PyErr {
    io::Error::new(e.cause.kind(), e.to_string()).into()
}

/// A table as a dictionary of lists. Missing values are `None`; a column without any value is left
/// out.
fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, values) in table {
        match values {
            Values::Text(texts) => columns.set_item(name, PyList::new(py, texts)?)?,
            Values::Count(counts) => columns.set_item(name, PyList::new(py, counts)?)?,
            Values::Number(numbers) => {
                if numbers.is_empty() || numbers.iter().any(|v| !v.is_nan()) {
                    let some = numbers.iter().map(|&v| (!v.is_nan()).then_some(v));
                    columns.set_item(name, PyList::new(py, some.collect::<Vec<_>>())?)?;
                }
            }
        }
    }
    Ok(columns)
}

/// A scenario that is ready to be compared, as a whole or in shares.
#[pyclass(frozen, name = "Planned", module = "trimtab._native")]
pub(crate) struct PyPlanned {
    scenario: Scenario,
    prepared: OnceLock<Arc<Prepared>>,
}

#[pymethods]
impl PyPlanned {
    /// What `scenario()` of a plan gave, here or on another machine.
    #[new]
    fn new(scenario: &str) -> PyResult<Self> {
        Ok(Self::of(Scenario::parse(scenario).map_err(refuse)?))
    }

    /// The scenario as TOML, with every default written out.
    fn scenario(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.ready(py)?.plan.scenario.to_toml())
    }

    /// How many runs there are.
    fn runs(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.ready(py)?.plan.jobs.len())
    }

    /// Compares on the simulator, without the GIL. Ctrl-C ends it.
    fn compare(
        &self,
        py: Python<'_>,
        jobs: Option<u16>,
        details: bool,
        progress: bool,
        call: String,
    ) -> PyResult<PyCompared> {
        let effort = Effort { jobs: jobs.map(usize::from), quiet: !progress };
        let recording = Recording { units: details, series: details };
        let scenario = self.scenario.clone();
        let comparison =
            interruptible(py, move || compare(&scenario, effort, recording, &call, &Simulator))?;
        Ok(PyCompared { scenario: self.scenario.clone(), comparison })
    }

    /// Does some of the runs on one core; gives what `join` takes.
    fn share(&self, py: Python<'_>, first: usize, count: usize) -> PyResult<String> {
        let prepared = self.ready(py)?;
        let effort = Effort { jobs: Some(1), quiet: true };
        let runs = first..first.saturating_add(count);
        let done = interruptible(py, move || share(&prepared, runs, effort))?;
        serde_json::to_string(&done).map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }

    /// The comparison whose shares these are, in the order of the runs.
    fn join(&self, py: Python<'_>, shares: Vec<String>, call: &str) -> PyResult<PyCompared> {
        let prepared = self.ready(py)?;
        let read = |text: &String| serde_json::from_str(text);
        let shares: Vec<Share> =
            shares.iter().map(read).collect::<Result<_, _>>().map_err(refuse)?;
        let comparison = py.detach(|| join(&prepared, shares, call)).map_err(refuse)?;
        Ok(PyCompared { scenario: self.scenario.clone(), comparison })
    }
}

impl PyPlanned {
    fn of(scenario: Scenario) -> Self {
        Self { scenario, prepared: OnceLock::new() }
    }

    /// What the shares need, read once.
    fn ready(&self, py: Python<'_>) -> PyResult<Arc<Prepared>> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(Arc::clone(prepared));
        }
        let scenario = self.scenario.clone();
        let prepared = Arc::new(interruptible(py, move || ready(&scenario, &Simulator))?);
        Ok(Arc::clone(self.prepared.get_or_init(|| prepared)))
    }
}

/// What `trimtab compare` makes of its flags.
#[pyfunction]
#[pyo3(signature = (
    *, app, cc, traces, transport, workload, qoe, rtt, buffer, loss, jitter, mark, flows, duration,
    seeds, first_seed, share_min, thin, scenario
))]
#[expect(clippy::too_many_arguments, reason = "Python names each of them")]
pub(crate) fn planned(
    app: Vec<String>,
    cc: Vec<String>,
    traces: Vec<String>,
    transport: Option<String>,
    workload: Option<PathBuf>,
    qoe: Option<String>,
    rtt: Vec<String>,
    buffer: Vec<String>,
    loss: Vec<String>,
    jitter: Vec<String>,
    mark: Option<String>,
    flows: Vec<u32>,
    duration: Option<String>,
    seeds: Option<u32>,
    first_seed: Option<u64>,
    share_min: Option<String>,
    thin: Option<u32>,
    scenario: Option<PathBuf>,
) -> PyResult<PyPlanned> {
    let given = Given {
        app: all("app", &app)?,
        cc: all("cc", &cc)?,
        traces: all("traces", &traces)?,
        transport: transport.as_deref().map(transport_of).transpose()?,
        workload,
        qoe,
        rtt: all("rtt", &rtt)?,
        buffer: all("buffer", &buffer)?,
        loss: all("loss", &loss)?,
        jitter: all("jitter", &jitter)?,
        mark: mark.as_deref().map(|text| one("mark", text)).transpose()?,
        flows,
        duration: duration.as_deref().map(|text| one("duration", text)).transpose()?,
        seeds,
        first_seed,
        share_min: share_min.as_deref().map(|text| one("share_min", text)).transpose()?,
        thin,
    };
    Ok(PyPlanned::of(given.scenario(scenario.as_deref()).map_err(refuse)?))
}

/// An error of work that can be stopped.
pub(crate) trait Stop {
    /// Whether it is that the user asked to stop.
    fn is_stop(&self) -> bool;
}

impl Stop for CompareError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Interrupted(_))
    }
}

/// Does the work on a thread of its own: Python runs signal handlers on its main thread only, which
/// therefore has to stay free.
pub(crate) fn interruptible<T: Send + 'static, E: Stop + Display + Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let (tell, mut told) = channel();
    let worker = thread::spawn(move || {
        // Sending fails only when the interpreter ends.
        let _ = tell.send(work());
    });
    loop {
        // `detach` takes what is `Send`: a receiver is not `Sync`, so it goes there as `&mut`.
        let receiver = &mut told;
        match py.detach(move || receiver.recv_timeout(SIGNALS_EVERY)) {
            Ok(Err(e)) if e.is_stop() => {
                // Ctrl-C ended it by way of a comparison on the main thread.
                return Err(PyKeyboardInterrupt::new_err(e.to_string()));
            }
            Ok(result) => return result.map_err(refuse),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the simulator panicked: report the message on standard error",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    // Runs that have begun go on to their end; a worker that panicked has ended.
                    let _ = py.detach(|| worker.join());
                    INTERRUPTED.store(false, Ordering::Relaxed);
                    return Err(signal);
                }
            }
        }
    }
}

pub(crate) fn one<T: FromStr<Err: Display>>(keyword: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|problem| refuse(format!("{keyword}={text:?}: {problem}")))
}

pub(crate) fn all<T: FromStr<Err: Display>>(keyword: &str, texts: &[String]) -> PyResult<Vec<T>> {
    texts.iter().map(|text| one(keyword, text)).collect()
}

pub(crate) fn transport_of(text: &str) -> PyResult<TransportKind> {
    let all = [TransportKind::Quic, TransportKind::Noq, TransportKind::Tcp];
    let found = all.into_iter().find(|t| t.name() == text);
    found.ok_or_else(|| refuse(format!("transport={text:?}: write quic, noq or tcp")))
}
