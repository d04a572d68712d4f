//! What an acknowledgement costs, by the kernel's statistics of its programs, over the same links.
//!
//! Other threads evict the programs and their data from the processor's caches, and on a busy
//! machine that is most of the cost. So a figure is the least over the rounds, which is what the
//! programs themselves take; the median is given, too. Over a faster link less is evicted in
//! between, so its figures differ less from run to run.
//!
//! A flow is looked at window by window, too. Where a thread or the whole machine had to wait in the
//! middle of a program, that is in few windows; the median of the windows is the time without it.

use std::collections::BTreeMap;
use std::time::Duration;

use trimtab_cc::muses::Trees;
use trimtab_kernel::Algorithm;

use crate::hosts::Hosts;
use crate::load::{SLOW, Speed};
use crate::programs::{Measures, Runs, Statistics, runs};
use crate::table::{Figure, Target, median};
use crate::{BenchError, Loaded, load, system};

/// An algorithm's programs: how their names begin, which of them runs once for each
/// acknowledgement, and how many times as long as plain CUBIC's they may take, where there is a bar.
struct Kind {
    name: String,
    prefix: &'static str,
    per_ack: &'static str,
    most: Option<f64>,
}

impl Kind {
    /// Whether it is one of the datapath's, which is compared with the others.
    fn is_ours(&self) -> bool {
        self.prefix.starts_with("tt_")
    }
}

/// What each program ran in between.
fn difference(before: &Runs, after: &Runs) -> Runs {
    let since = |(name, &(count, time)): (&String, &(u64, u64))| {
        let (count_before, time_before) = before.get(name).copied().unwrap_or_default();
        // Another datapath that was unloaded meanwhile takes its runs with it.
        let runs = (count.saturating_sub(count_before), time.saturating_sub(time_before));
        (name.clone(), runs)
    };
    after.iter().map(since).collect()
}

/// Each flow of a round, of which the first seconds do not count.
const TIME: Duration = Duration::from_secs(5);
/// The link whose acknowledgements come so often that programs and data stay in the caches.
const FAST: Speed = Speed(480);

/// How long a window is: some 100 acknowledgements, and two round trips.
const WINDOW: Duration = Duration::from_millis(50);
/// A window with fewer acknowledgements says nothing.
const ENOUGH: u64 = 10;

/// What one flow's programs took per acknowledgement, by the name of the program.
struct Took {
    parts: BTreeMap<String, f64>,
    /// All of them, in the median window.
    steady: f64,
    acks_per_s: f64,
}

/// Nanoseconds per acknowledgement of each of a kind's programs, and the acknowledgements.
fn per_ack(kind: &Kind, ran: Runs) -> (BTreeMap<String, f64>, u64) {
    let acks = ran.get(kind.per_ack).map_or(0, |&(count, _)| count);
    let of_kind = ran.into_iter().filter(|(name, _)| name.starts_with(kind.prefix));
    let share = |time: u64| time as f64 / acks.max(1) as f64;
    (of_kind.map(|(name, (_, time))| (name, share(time))).collect(), acks)
}

fn one(hosts: &Hosts, speed: Speed, kind: &Kind, port: u16) -> Result<Took, BenchError> {
    let mut looks = Vec::new();
    let over = load::run(hosts, speed, &kind.name, port, TIME, WINDOW, |_| {
        looks.push(runs()?);
        Ok(())
    })?;
    let windows = looks.windows(2).map(|ends| per_ack(kind, difference(&ends[0], &ends[1])));
    let steady: Vec<f64> = windows
        .filter(|&(_, acks)| acks >= ENOUGH)
        .map(|(parts, _)| parts.values().sum())
        .collect();
    let (parts, acks) = match &looks[..] {
        [first, .., last] if !steady.is_empty() => per_ack(kind, difference(first, last)),
        _ => return Err(BenchError::Idle(kind.name.clone())),
    };
    Ok(Took { parts, steady: median(steady), acks_per_s: acks as f64 / over.seconds })
}

/// What all rounds said of one kind over one link.
#[derive(Default)]
struct Rounds {
    parts: BTreeMap<String, Vec<f64>>,
    sums: Vec<f64>,
    steady: Vec<f64>,
    acks_per_s: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, took: Took) {
        self.sums.push(took.parts.values().sum());
        self.steady.push(took.steady);
        self.acks_per_s.push(took.acks_per_s);
        for (name, time) in took.parts {
            self.parts.entry(name).or_default().push(time);
        }
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The model that ships, for Muses' connections; without the fallback, so that the trees run to the end.
fn plant(loaded: &Loaded) -> Result<(), BenchError> {
    static MODEL: &[u8] = include_bytes!("../../../../models/muses.trees");
    let trees = Trees::parse(MODEL).map_err(system("read the trees that ship"))?;
    let datapath = loaded.datapath()?;
    let number = datapath.add_trees(&trees)?;
    for (knob, value) in [("model", number), ("tree", trees.first() as f64), ("safe", 0.0)] {
        datapath.set_default_of(Algorithm::Muses, knob, value)?;
    }
    Ok(())
}

fn kinds(loaded: &Loaded) -> [Kind; 9] {
    let ours = |algorithm, prefix, per_ack, most| Kind {
        name: loaded.name_of(algorithm),
        prefix,
        per_ack,
        most,
    };
    let measure =
        |name: &str, prefix, per_ack| Kind { name: name.into(), prefix, per_ack, most: None };
    [
        measure(Measures::PLAIN, "plain_", "plain_acked"),
        measure(Measures::EMPTY, "empty_", "empty_acked"),
        measure(Measures::LINE, "line_", "line_acked"),
        ours(Algorithm::Copa, "tt_copa_", "tt_copa_ack", Some(1.3)),
        ours(Algorithm::Cubic, "tt_cubic_", "tt_cubic_acked", Some(1.3)),
        ours(Algorithm::Bbr, "tt_bbr_", "tt_bbr_ack", Some(1.2)),
        ours(Algorithm::Bbr3, "tt_bbr3_", "tt_bbr3_ack", Some(1.4)),
        ours(Algorithm::Vivace, "tt_vivace_", "tt_vivace_ack", None),
        ours(Algorithm::Muses, "tt_muses_", "tt_muses_ack", Some(1.8)),
    ]
}

/// The figures of one kind over the slow link, on which the targets are, compared with plain CUBIC's.
fn cold(kind: &Kind, of: &Rounds, plain: &Rounds) -> Vec<Figure> {
    let short = kind.name.trim_end_matches("_z");
    let mut figures = Vec::new();
    for (name, times) in &of.parts {
        // The rest runs a few times in a thousand acknowledgements.
        if least(times) >= 1.0 {
            figures.push(Figure::new(format!("{short}: … {name}"), least(times), "ns/ACK"));
        }
    }
    let all = format!("{short}: all its programs");
    figures.push(Figure::new(&all, least(&of.sums), "ns/ACK"));
    figures.push(Figure::new(format!("{all}, median"), median(of.sums.clone()), "ns/ACK"));
    figures.push(Figure::new(format!("{all}, steady"), median(of.steady.clone()), "ns/ACK"));
    if !kind.is_ours() {
        return figures;
    }
    let ratio = least(&of.sums) / least(&plain.sums);
    let ratio = Figure::new(format!("{short}: vs. plain CUBIC in eBPF"), ratio, "x");
    figures.push(match kind.most {
        Some(most) => ratio.target(Target::AtMost(most)),
        None => ratio,
    });
    let ratio = median(of.sums.clone()) / median(plain.sums.clone());
    figures.push(Figure::new(format!("{short}: …, medians"), ratio, "x"));
    let ratio = median(of.steady.clone()) / median(plain.steady.clone());
    figures.push(Figure::new(format!("{short}: …, steady"), ratio, "x"));
    figures
}

/// Those over the fast link.
fn warm(kind: &Kind, of: &Rounds, plain: &Rounds) -> Vec<Figure> {
    let short = kind.name.trim_end_matches("_z");
    let all = format!("{short}, warm: all its programs");
    let mut figures = vec![
        Figure::new(
            format!("{short}, warm: acknowledgements"),
            median(of.acks_per_s.clone()),
            "1/s",
        ),
        Figure::new(&all, least(&of.sums), "ns/ACK"),
        Figure::new(format!("{all}, median"), median(of.sums.clone()), "ns/ACK"),
        Figure::new(format!("{all}, steady"), median(of.steady.clone()), "ns/ACK"),
    ];
    if kind.is_ours() {
        let ratio = least(&of.sums) / least(&plain.sums);
        figures.push(Figure::new(format!("{short}, warm: vs. plain CUBIC in eBPF"), ratio, "x"));
        let ratio = median(of.sums.clone()) / median(plain.sums.clone());
        figures.push(Figure::new(format!("{short}, warm: …, medians"), ratio, "x"));
        let ratio = median(of.steady.clone()) / median(plain.steady.clone());
        figures.push(Figure::new(format!("{short}, warm: …, steady"), ratio, "x"));
    }
    figures
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    rounds: usize,
) -> Result<Vec<Figure>, BenchError> {
    let kinds = kinds(loaded);
    plant(loaded)?;
    let _statistics = Statistics::on()?;
    let mut seen: [[Rounds; 9]; 2] = Default::default();
    let mut ports = 7110..;
    for round in 0..rounds.max(1) {
        eprintln!("round {} of {rounds} with statistics of the programs", round + 1);
        for (i, kind) in kinds.iter().enumerate() {
            for (speed, seen) in [SLOW, FAST].into_iter().zip(&mut seen) {
                // Another port each time: the last one may still be closing.
                let port = ports.next().unwrap_or(7109);
                seen[i].add(one(hosts, speed, kind, port)?);
            }
        }
    }
    let [slow, fast] = &seen;
    let cold = kinds.iter().zip(slow).flat_map(|(kind, of)| cold(kind, of, &slow[0]));
    let warm = kinds.iter().zip(fast).flat_map(|(kind, of)| warm(kind, of, &fast[0]));
    Ok(cold.chain(warm).collect())
}
