//! Selection by a rule: what counts on the path stands for what counts to the application. That it does
//! not is Floo's finding (§2.1, Table 1 and Fig. 2), and these rules are what Floo is compared with.

use trimtab_units::{Bytes, Duration, Time};

use super::file::CANDIDATES_MAX;
use super::slope::Slope;
use crate::{Report, Utility};

/// A delay that grows or falls by less than this in a second, in s, counts as none (Vivace's latency
/// filter).
const GROWTH_MIN: f64 = 0.01;

/// What an algorithm made of the path, from the period's beginning or from when it took over in the middle of it.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    began: Time,
    /// Without the reports in which the connection lay idle.
    active: Duration,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    /// Round-trip samples in s, by when they were, in s since it began.
    rtt: Slope,
}

impl Path {
    fn since(began: Time) -> Self {
        Self { began, ..Self::default() }
    }

    fn add(&mut self, report: &Report) {
        if report.sent.is_zero() && report.acked.is_zero() {
            return;
        }
        self.active += report.interval;
        self.sent += report.sent;
        self.acked += report.acked;
        self.lost += report.lost;
        if let Some(rtt) = report.rtt_mean {
            // The samples of a report count as taken in its middle.
            let when = (report.now - report.interval / 2).since(self.began).as_secs_f64();
            self.rtt.add(report.rtt_samples as f64, when, rtt.as_secs_f64());
        }
    }

    /// What it comes to; `None` where nothing was measured.
    fn utility(&self, utility: Utility) -> Option<f64> {
        if self.acked.is_zero() || self.rtt.samples() <= 0.0 {
            return None;
        }
        let throughput = (self.acked / self.active).mbps();
        let growth = self.rtt.slope();
        let growth = if growth.abs() < GROWTH_MIN { 0.0 } else { growth };
        let loss = if self.sent.is_zero() { 0.0 } else { self.lost.ratio(self.sent).min(1.0) };
        Some(utility.of(throughput, self.rtt.mean(), growth, loss))
    }
}

/// So many selections after the last trial, the candidate that was not tried for longest is tried again: paths change.
const RETRY: u64 = 6;

/// Tries every candidate for a period, then stays with the one whose utility was largest. It sees what runs and nothing
/// else, so the others' utilities are those of the last time. A candidate counts as tried when it ran: one that
/// was asked for and did not take over (the connection had not converged, or nobody carries decisions out) did not.
#[derive(Clone, Debug)]
pub(super) struct Search {
    seen: [Option<Seen>; CANDIDATES_MAX],
    candidates: usize,
    /// Number of the candidate that runs; `None` while it is another algorithm.
    running: Option<usize>,
    /// Nothing before the first report.
    path: Option<Path>,
    made: u64,
    tried_at: u64,
}

/// A candidate's utility, and at which selection it was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    utility: f64,
    at: u64,
}

impl Search {
    /// Among so many candidates.
    pub(super) fn new(candidates: usize) -> Self {
        Self {
            seen: [None; CANDIDATES_MAX],
            candidates: candidates.min(CANDIDATES_MAX),
            running: None,
            path: None,
            made: 0,
            tried_at: 0,
        }
    }

    /// Takes in a report of a connection that runs the candidate of this number, or none of them.
    pub(super) fn on_report(&mut self, report: &Report, running: Option<usize>) {
        if self.running != running {
            self.running = running;
            self.path = None;
        }
        self.path.get_or_insert_with(|| Path::since(report.now - report.interval)).add(report);
    }

    /// The candidate for the next period, by what the one that runs made of this one; `None`: as it was asked for. One
    /// that took over in the second half of the period has not shown much, and goes on for another one.
    pub(super) fn choose(
        &mut self,
        utility: Utility,
        now: Time,
        period: Duration,
    ) -> Option<usize> {
        let path = self.path.filter(|path| now.since(path.began) >= period / 2)?;
        self.path = Some(Path::since(now));
        let utility = path.utility(utility);
        let seen = self.running.and_then(|running| self.seen.get_mut(running));
        if let (Some(utility), Some(seen)) = (utility, seen) {
            self.made += 1;
            *seen = Some(Seen { utility, at: self.made });
        }
        let all = &self.seen[..self.candidates];
        Some(if let Some(untried) = all.iter().position(Option::is_none) {
            self.tried_at = self.made;
            untried
        } else if self.made >= self.tried_at + RETRY {
            self.tried_at = self.made;
            best(all, |seen| -(seen.at as f64))
        } else {
            best(all, |seen| seen.utility)
        })
    }
}

/// The first of those with the largest `key`.
fn best(all: &[Option<Seen>], key: impl Fn(&Seen) -> f64) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, seen) in all.iter().enumerate() {
        if let Some(key) = seen.as_ref().map(&key)
            && key > best.1
        {
            best = (i, key);
        }
    }
    best.0
}
