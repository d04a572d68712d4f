//! Selection by a rule: what counts on the path stands for what counts to the application. That it does
//! not is Floo's finding (§2.1, Table 1 and Fig. 2), and these rules are what Floo is compared with.

use super::model::CANDIDATES_MAX;
use super::monitor::Metrics;

/// What is to be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Utility {
    /// Throughput / delay (Kleinrock's power).
    Power,
    /// Throughput · (1 − loss) / delay.
    PowerLoss,
    /// Vivace's utility of rate, growth of delay and loss (NSDI 2018 §3.1).
    Vivace,
    /// Throughput.
    Throughput,
}

/// Exponent of the rate, and the prices of growing delay and of loss, per Mbit/s (Vivace §3.1).
const VIVACE: (f64, f64, f64) = (0.9, 900.0, 11.35);

impl Utility {
    /// All of them, by the names of the command line.
    pub const ALL: [(&'static str, Self); 4] = [
        ("power", Self::Power),
        ("power-loss", Self::PowerLoss),
        ("vivace", Self::Vivace),
        ("throughput", Self::Throughput),
    ];

    /// The utility of a path with this throughput in Mbit/s, delay in s, growth of the delay in s/s, and loss.
    pub fn of(self, throughput: f64, delay: f64, growth: f64, loss: f64) -> f64 {
        let power = if delay > 0.0 { throughput / delay } else { 0.0 };
        match self {
            Self::Power => power,
            Self::PowerLoss => power * (1.0 - loss),
            Self::Vivace => {
                let (exponent, growing, losing) = VIVACE;
                libm::pow(throughput.max(0.0), exponent)
                    - growing * throughput * growth.max(0.0)
                    - losing * throughput * loss
            }
            Self::Throughput => throughput,
        }
    }
}

/// So many selections after the last trial, the candidate that was not tried for longest is tried again: paths change.
const RETRY: u64 = 6;

/// Tries every candidate for a period, then stays with the one whose utility was largest. It sees what runs and nothing
/// else, so the others' utilities are those of the last time.
#[derive(Clone, Debug)]
pub(super) struct Search {
    seen: [Option<Seen>; CANDIDATES_MAX],
    candidates: usize,
    running: usize,
    made: u64,
    tried_at: u64,
    delay: Option<f64>,
}

/// A candidate's utility, and at which selection it was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    utility: f64,
    at: u64,
}

impl Search {
    /// Among so many candidates, of which number `first` runs.
    pub(super) fn new(candidates: usize, first: usize) -> Self {
        let candidates = candidates.min(CANDIDATES_MAX);
        Self {
            seen: [None; CANDIDATES_MAX],
            candidates,
            running: first,
            made: 0,
            tried_at: 0,
            delay: None,
        }
    }

    /// The candidate for the next period, by what was measured in the one that ends, which lasted `period` seconds.
    pub(super) fn choose(&mut self, utility: Utility, metrics: &Metrics, period: f64) -> usize {
        let get = |name| metrics.get(name).unwrap_or(0.0);
        let delay = get("rtt_min") * (1.0 + get("rtt_rate"));
        let growth = self.delay.map_or(0.0, |before| (delay - before) / period);
        self.delay = Some(delay);
        let utility = utility.of(get("thpt_max") / 1e6, delay, growth, get("loss_rate"));
        self.made += 1;
        if let Some(seen) = self.seen.get_mut(self.running) {
            *seen = Some(Seen { utility, at: self.made });
        }
        let all = &self.seen[..self.candidates];
        self.running = if let Some(untried) = all.iter().position(Option::is_none) {
            self.tried_at = self.made;
            untried
        } else if self.made >= self.tried_at + RETRY {
            self.tried_at = self.made;
            best(all, |seen| -(seen.at as f64))
        } else {
            best(all, |seen| seen.utility)
        };
        self.running
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
