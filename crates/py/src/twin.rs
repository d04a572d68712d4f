//! Digital twins of connections.

use std::sync::Arc;

use pyo3::prelude::*;
use rayon::prelude::*;
use trimtab_envs::{Prior, Twin, mixed};

use crate::{PyCourse, PyEpisodes, refuse};

/// What particles are drawn from and compared by.
#[pyclass(frozen, name = "TwinPrior", module = "trimtab._native")]
pub(crate) struct PyPrior(Arc<Prior>);

#[pymethods]
impl PyPrior {
    /// The paths of a course; how alike states are is measured on its first `connections`.
    #[new]
    fn new(py: Python<'_>, course: &PyCourse, connections: u64) -> PyResult<Self> {
        if connections == 0 {
            return Err(refuse("no connections to measure by: ask for one at least"));
        }
        let course = course.0.clone();
        Ok(Self(Arc::new(py.detach(|| Prior::new(course, connections)))))
    }
}

/// A twin of each of some episodes.
#[pyclass(name = "Twins", module = "trimtab._native")]
pub(crate) struct PyTwins(Vec<Twin>);

#[pymethods]
impl PyTwins {
    /// Of episodes whose first period has run.
    #[new]
    fn new(
        py: Python<'_>,
        prior: &PyPrior,
        episodes: &PyEpisodes,
        particles: usize,
        seed: u64,
    ) -> PyResult<Self> {
        if particles == 0 {
            return Err(refuse("no particles: ask for one at least"));
        }
        let prior = &prior.0;
        let twin = |(i, real)| Twin::new(prior.clone(), real, particles, mixed(seed, i as u64 + 1));
        Ok(Self(py.detach(|| episodes.episodes.par_iter().enumerate().map(twin).collect())))
    }

    /// Takes in the period that the episodes have just run.
    fn observe(&mut self, py: Python<'_>, episodes: &PyEpisodes) -> PyResult<()> {
        if episodes.episodes.len() != self.0.len() {
            return Err(refuse(format!(
                "{} twins of {} episodes",
                self.0.len(),
                episodes.episodes.len()
            )));
        }
        let twins = &mut self.0;
        py.detach(|| {
            let pairs = twins.par_iter_mut().zip(&episodes.episodes);
            pairs.for_each(|(twin, real)| twin.observe(real));
        });
        Ok(())
    }

    /// A fork of each world of each twin, twin by twin, with a future of its own.
    fn worlds(&self, py: Python<'_>, episodes: &PyEpisodes, seed: u64) -> PyEpisodes {
        let forks = |twin: &Twin| twin.worlds(seed).collect::<Vec<_>>();
        let worlds = py.detach(|| self.0.par_iter().flat_map_iter(forks).collect());
        PyEpisodes { course: episodes.course.clone(), episodes: worlds }
    }
}
