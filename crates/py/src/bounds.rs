//! What bounds are made of: runs under fixed settings, and futures drawn anew.

use pyo3::prelude::*;
use rayon::prelude::*;
use trimtab_envs::{Episode, Fixed, Ran, mixed};
use trimtab_units::Duration;

use crate::{GRACE, PyCourse, PyEpisodes, Tried, refuse};

/// Completion times in seconds, the share of packets lost, and the MB that rivals received.
type Came = (Vec<f64>, f64, f64);

fn came(ran: Ran) -> Came {
    let times = ran.times.into_iter().map(Duration::as_secs_f64).collect();
    (times, ran.lost, ran.rivals.as_f64() / 1e6)
}

/// What each run comes to. A run is the seed of an episode, the number of a visit to its path (0: its
/// own), and the place in `names` of the fixed setting that governs it throughout.
#[pyfunction]
pub(crate) fn constants(
    py: Python<'_>,
    course: &PyCourse,
    names: Vec<String>,
    runs: Vec<(u64, u64, usize)>,
) -> PyResult<Vec<Came>> {
    let course = course.0.clone();
    let fixed: Vec<Fixed> =
        names.iter().map(|name| name.parse().map_err(refuse)).collect::<PyResult<_>>()?;
    if let Some((_, _, wrong)) = runs.iter().find(|(_, _, which)| *which >= fixed.len()) {
        return Err(refuse(format!("setting {wrong}: there are {}", fixed.len())));
    }
    let run = |&(seed, visit, which): &(u64, u64, usize)| {
        came(course.under(seed, visit, &fixed[which], GRACE))
    };
    Ok(py.detach(|| runs.par_iter().map(run).collect()))
}

/// The same of episodes that have run. Outstanding requests of copies may finish.
#[pyfunction]
pub(crate) fn came_to(py: Python<'_>, episodes: &PyEpisodes) -> Vec<Came> {
    let of = |episode: &Episode| came(episode.ran(GRACE));
    py.detach(|| episodes.episodes.par_iter().map(of).collect())
}

/// What each choice comes to, as `Episodes.outcomes` has it, on average over `futures` futures that
/// are drawn anew by `seed`, the same for every choice.
#[pyfunction]
pub(crate) fn redrawn_outcomes(
    py: Python<'_>,
    episodes: &PyEpisodes,
    periods: u32,
    futures: usize,
    seed: u64,
) -> PyResult<Tried> {
    if futures == 0 {
        return Err(refuse("no futures: ask for one at least"));
    }
    let seed_of = |i: usize, future: usize| mixed(mixed(seed, i as u64 + 1), future as u64 + 1);
    let mean = |parts: &[Tried], of: &dyn Fn(&Tried) -> &Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        let mut sum = of(&parts[0]).clone();
        for part in &parts[1..] {
            let pairs = sum.iter_mut().flatten().zip(of(part).iter().flatten());
            pairs.for_each(|(sum, value)| *sum += value);
        }
        sum.iter_mut().flatten().for_each(|sum| *sum /= parts.len() as f64);
        sum
    };
    let parts: Vec<Tried> = (0..futures)
        .map(|future| {
            let forks = episodes.episodes.iter().enumerate();
            let forks = forks.map(|(i, episode)| episode.redrawn(seed_of(i, future))).collect();
            PyEpisodes { course: episodes.course.clone(), episodes: forks }.outcomes(py, periods)
        })
        .collect();
    Ok((mean(&parts, &|of| &of.0), mean(&parts, &|of| &of.1), mean(&parts, &|of| &of.2)))
}
