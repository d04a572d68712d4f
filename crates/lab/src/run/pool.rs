//! Runs on all cores, results in the order of the jobs.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

/// Set by the command line when the user presses Ctrl-C: no further job begins.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The user asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; nothing was written")]
pub struct Interrupted;

/// How to go about many jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// How many jobs at once; all cores when `None`.
    pub jobs: Option<usize>,
    /// Whether to show nothing while working.
    pub quiet: bool,
}

/// Does every job and gives the results in the order of the jobs, however many run at once. Shows a
/// progress bar on standard error when that is a terminal.
///
/// # Errors
/// [`INTERRUPTED`] was set before the last job began.
pub fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    effort: Effort,
    work: impl Fn(&J) -> R + Sync,
) -> Result<Vec<R>, Interrupted> {
    let bar = progress_bar(jobs.len() as u64, effort.quiet);
    let all = || {
        jobs.par_iter()
            // One job at a time per thread: runs differ in length by orders of magnitude.
            .with_max_len(1)
            .map(|job| {
                if INTERRUPTED.load(Ordering::Relaxed) {
                    return Err(Interrupted);
                }
                let result = work(job);
                bar.inc(1);
                Ok(result)
            })
            .collect()
    };
    // Zero threads stands for all cores. Without a pool of its own (the system refuses threads) the
    // work is done on the shared one.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(effort.jobs.unwrap_or(0)).build();
    let results = match pool {
        Ok(pool) => pool.install(all),
        Err(_) => all(),
    };
    bar.finish_and_clear();
    results
}

fn progress_bar(jobs: u64, quiet: bool) -> ProgressBar {
    let target = if quiet || !std::io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(jobs), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_depend_on_threads() {
        let jobs: Vec<u64> = (0..500).collect();
        // Jobs of very different length.
        let work =
            |&j: &u64| (0..(j * 7919) % 5000).fold(j, |a, b| a.wrapping_mul(31).wrapping_add(b));
        let with = |jobs_at_once| {
            let effort = Effort { jobs: Some(jobs_at_once), quiet: true };
            run_all(&jobs, effort, work).unwrap()
        };
        let one = with(1);
        assert_eq!(one, jobs.iter().map(work).collect::<Vec<_>>());
        assert_eq!(with(7), one);
    }
}
