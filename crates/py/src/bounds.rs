//! What bounds are made of: runs under fixed settings, and futures drawn anew.

use pyo3::prelude::*;
use rayon::prelude::*;
use trimtab_envs::{Fixed, mixed};
use trimtab_units::Duration;

use crate::{GRACE, PyCourse, PyEpisodes, refuse};

/// The completion times in seconds of all requests of each run. A run is the seed of an episode, the
/// number of a visit to its path (0: its own), and the place in `names` of the fixed setting that
/// governs it throughout.
#[pyfunction]
pub(crate) fn constants(
    py: Python<'_>,
    course: &PyCourse,
    names: Vec<String>,
    runs: Vec<(u64, u64, usize)>,
) -> PyResult<Vec<Vec<f64>>> {
    let course = course.0.clone();
    let fixed: Vec<Fixed> =
        names.iter().map(|name| name.parse().map_err(refuse)).collect::<PyResult<_>>()?;
    if let Some((_, _, wrong)) = runs.iter().find(|(_, _, which)| *which >= fixed.len()) {
        return Err(refuse(format!("setting {wrong}: there are {}", fixed.len())));
    }
    let run = |&(seed, visit, which): &(u64, u64, usize)| {
        let times = course.under(seed, visit, &fixed[which], GRACE);
        times.into_iter().map(Duration::as_secs_f64).collect()
    };
    Ok(py.detach(|| runs.par_iter().map(run).collect()))
}

/// What each algorithm would cost each episode over the next `periods`, if it were chosen now and
/// kept, on average over `futures` futures that are drawn anew by `seed`, the same for every
/// algorithm: a row for each episode, in the units of `Episodes.costs`.
#[pyfunction]
pub(crate) fn redrawn_costs(
    py: Python<'_>,
    episodes: &PyEpisodes,
    periods: u32,
    futures: usize,
    seed: u64,
) -> PyResult<Vec<Vec<f64>>> {
    if futures == 0 {
        return Err(refuse("no futures: ask for one at least"));
    }
    let count = episodes.course.rules().algorithms.len();
    let all = episodes.episodes.len() * count * futures;
    let cost = |i: usize| {
        let (pair, future) = (i / futures, i % futures);
        let (episode, choice) = (pair / count, pair % count);
        let seed = mixed(mixed(seed, episode as u64 + 1), future as u64 + 1);
        episodes.episodes[episode].cost_redrawn(choice, periods, seed).as_secs_f64()
    };
    let flat: Vec<f64> = py.detach(|| (0..all).into_par_iter().map(cost).collect());
    let means: Vec<f64> =
        flat.chunks(futures).map(|of| of.iter().sum::<f64>() / futures as f64).collect();
    Ok(means.chunks(count).map(<[f64]>::to_vec).collect())
}
