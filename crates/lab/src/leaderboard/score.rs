//! From the runs of a set to its rows: each scheme vs. the reference, run by run.
//!
//! Paths differ in what they allow, so scores are compared path by path as
//! `trimtab compare` does (docs/concepts/metric.md): the geometric mean over pairs of runs of the
//! ratio of their scores, or the mean difference where ratios mean nothing.

use serde::{Deserialize, Serialize};

use super::{REFERENCE, Set, SetError};
use crate::report::cells::place_of;
use crate::result::{HarmRecord, RunRecord, Scale};
use crate::stats::harm::harm;
use crate::stats::summary::{
    PairKey, Runs, TRACES_MIN, geometric_mean, in_order, interval, keyed, scale,
};
use crate::stats::{Estimate, Sums};

/// The share of the runs that the worst ones are.
const WORST: f64 = 0.1;

/// The scores of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetScores {
    /// The set.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// What carried out its runs.
    pub datapath: String,
    /// The application.
    pub app: String,
    /// Whether changes are in percent, or differences in the unit of the QoE model.
    pub scale: Scale,
    /// Every scheme, the best first.
    pub rows: Vec<Row>,
}

/// A scheme over the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The scheme.
    pub cc: String,
    /// How many runs.
    pub runs: u64,
    /// Where it is among the schemes of the set: 0 is first, 1 last; the mean of the places that equal
    /// schemes share.
    pub place: f64,
    /// QoE vs. the reference's, run by run: in percent or as a difference, see [`SetScores::scale`].
    pub change: Estimate,
    /// The same over the tenth of the runs where it is least.
    pub worst: f64,
    /// What it does to competing flows, where there are some of the reference's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<HarmRecord>,
    /// Mean over runs of the mean queueing delay.
    pub queue_delay_ms: f64,
    /// Path by path, by their names.
    pub paths: Vec<PathRow>,
}

/// A scheme on one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// The path.
    pub path: String,
    /// QoE vs. the reference's, as in the row.
    pub change: f64,
    /// Its own score in the unit of the QoE model, the mean over runs as in the summary of
    /// `trimtab compare`.
    pub score: f64,
    /// Mean throughput of all its flows.
    pub throughput_mbps: f64,
    /// Mean over runs of the mean queueing delay.
    pub queue_delay_ms: f64,
    /// Packets lost on the path over packets sent.
    pub loss_ratio: f64,
    /// Harm to the throughput of competing flows, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<f64>,
}

/// Scores the runs of a set, those of all its schemes.
///
/// # Errors
/// The reference has no run in common with a scheme.
pub fn score(set: &Set, runs: &[RunRecord]) -> Result<SetScores, SetError> {
    let scale = scale(runs.iter());
    let all: Vec<&RunRecord> = runs.iter().collect();
    let of = |cc: &str| keyed(runs.iter().filter(|run| run.cc == cc));
    let reference = of(REFERENCE);
    let schemes = in_order(runs.iter().map(|run| run.cc.as_str()));
    let count = schemes.len();
    let rows: Option<Vec<Row>> = schemes
        .into_iter()
        .map(|cc| row(cc, &of(cc), &reference, &Judge { scale, all: &all }))
        .collect();
    let mut rows = rows.ok_or_else(|| SetError::Unfit {
        name: set.name.clone(),
        why: format!("{REFERENCE} and another scheme have no run in common: run the set again"),
    })?;
    rows.sort_by(|a, b| b.change.value.total_cmp(&a.change.value).then_with(|| a.cc.cmp(&b.cc)));
    let mut ahead = 0;
    for equal in rows.chunk_by_mut(|a, b| a.change.value == b.change.value) {
        // The place of all ranks that they share.
        let (first, last) = (ahead, ahead + equal.len() - 1);
        let place = (first + last) as f64 / 2.0 / (count - 1).max(1) as f64;
        equal.iter_mut().for_each(|row| row.place = place);
        ahead = last + 1;
    }
    Ok(SetScores {
        name: set.name.clone(),
        about: set.about.clone(),
        datapath: set.datapath.clone(),
        app: set.scenario.app.first().map_or(String::new(), |app| app.label().to_owned()),
        scale,
        rows,
    })
}

/// What all rows of a set have in common.
struct Judge<'a> {
    scale: Scale,
    all: &'a [&'a RunRecord],
}

impl Judge<'_> {
    /// The change of a pair of runs in a unit that can be averaged: logarithms of ratios, or
    /// differences.
    fn change(&self, own: &RunRecord, other: &RunRecord) -> f64 {
        let (own, other) = (own.score(self.scale), other.score(self.scale));
        match self.scale {
            Scale::Ratio => libm::log(own / other),
            Scale::Difference => own - other,
        }
    }

    /// The mean of such changes as people read it.
    fn shown(&self, sums: &Sums) -> f64 {
        match self.scale {
            Scale::Ratio => 100.0 * (geometric_mean(sums) - 1.0),
            Scale::Difference => sums.mean(),
        }
    }

    /// The mean of scores over runs.
    fn score(&self, runs: &[&RunRecord]) -> f64 {
        let score = |run: &&RunRecord| run.score(self.scale);
        match self.scale {
            Scale::Ratio => libm::exp(mean(runs.iter().map(|run| libm::log(score(run))))),
            Scale::Difference => mean(runs.iter().map(score)),
        }
    }
}

/// `None` where a scheme has no run in common with the reference.
fn row(cc: &str, own: &Runs<'_>, reference: &Runs<'_>, judge: &Judge<'_>) -> Option<Row> {
    let pair = |(key, run): (_, &&RunRecord)| {
        let other = reference.get(key)?;
        Some((key, judge.change(run, other)))
    };
    let pairs: Vec<(&PairKey, f64)> = own.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return None;
    }
    let by_trace = in_order(own.values().map(|run| run.trace.as_str())).len() >= TRACES_MIN;
    let sums = pairs.iter().map(|&(key, change)| (key, Sums::of(change, 0.0)));
    let change = interval(by_trace, sums, |sums| judge.shown(sums));
    let mut changes: Vec<f64> = pairs.iter().map(|(_, change)| *change).collect();
    changes.sort_unstable_by(f64::total_cmp);
    let tenth = (libm::ceil(WORST * changes.len() as f64) as usize).max(1);
    let worst = changes[..tenth].iter().fold(Sums::default(), |sum, &c| sum + Sums::of(c, 0.0));
    let path_of = |run: &RunRecord| place_of(&run.trace, &run.cell);
    let names: Vec<String> = own.values().map(|run| path_of(run)).collect();
    let path = |name: &str| {
        let runs: Vec<&RunRecord> =
            own.values().copied().filter(|run| path_of(run) == name).collect();
        let here: Vec<&RunRecord> =
            judge.all.iter().copied().filter(|run| path_of(run) == name).collect();
        let of_path = own.iter().filter(|(_, run)| path_of(run) == name);
        let sum = of_path.filter_map(pair).fold(Sums::default(), |s, (_, c)| s + Sums::of(c, 0.0));
        let of = |value: fn(&RunRecord) -> f64| mean(runs.iter().map(|run| value(run)));
        PathRow {
            path: name.to_owned(),
            change: judge.shown(&sum),
            score: judge.score(&runs),
            throughput_mbps: of(|run| run.throughput_mbps),
            queue_delay_ms: of(|run| run.queue_delay_ms.mean),
            loss_ratio: of(|run| run.loss_ratio),
            harm: harm(&here, cc).map(|harm| harm.throughput.value),
        }
    };
    Some(Row {
        cc: cc.to_owned(),
        runs: own.len() as u64,
        place: 0.0,
        change,
        worst: judge.shown(&worst),
        harm: harm(judge.all, cc),
        queue_delay_ms: mean(own.values().map(|run| run.queue_delay_ms.mean)),
        paths: in_order(names.iter().map(String::as_str)).into_iter().map(path).collect(),
    })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::SMALL;
    use super::*;
    use crate::result::RivalsRecord;
    use crate::testing::{close, run};

    fn scores(runs: &[RunRecord]) -> SetScores {
        score(&Set::parse("x", &format!("about = \"a\"\n{SMALL}")).unwrap(), runs).unwrap()
    }

    /// A doubling and a halving cancel out, whatever the links carry; the worst tenth is the halving.
    #[test]
    fn paths_count_alike_and_the_worst_are_shown() {
        let runs: Vec<RunRecord> = [("a", 1.0, 2.0), ("b", 100.0, 50.0)]
            .into_iter()
            .flat_map(|(path, cubic, own)| [run("cubic", path, 0, cubic), run("bbr", path, 0, own)])
            .collect();
        let scores = scores(&runs);
        let bbr = scores.rows.iter().find(|row| row.cc == "bbr").unwrap();
        close(bbr.change.value, 0.0);
        close(bbr.worst, -50.0);
        assert_eq!((bbr.change.ci95, bbr.runs, bbr.paths.len()), (None, 2, 2));
        close(bbr.paths[0].change, 100.0);
        close(bbr.paths[1].change, -50.0);
        close(bbr.paths[1].score, 50.0);
        assert!(bbr.paths[0].path.starts_with("a (20ms"), "{}", bbr.paths[0].path);
        assert_eq!(bbr.harm, None);
    }

    #[test]
    fn the_best_is_first_and_places_go_from_0_to_1() {
        let runs: Vec<RunRecord> = [("vegas", 0.5), ("cubic", 1.0), ("bbr", 1.5)]
            .map(|(cc, qoe)| run(cc, "a", 0, qoe))
            .to_vec();
        let places: Vec<(String, f64)> =
            scores(&runs).rows.into_iter().map(|row| (row.cc, row.place)).collect();
        let expected = [("bbr", 0.0), ("cubic", 0.5), ("vegas", 1.0)];
        assert_eq!(places, expected.map(|(cc, place)| (cc.to_owned(), place)));
        let equal = ["cubic", "bbr", "vegas"].map(|cc| run(cc, "a", 0, 1.0));
        assert!(scores(&equal).rows.iter().all(|row| row.place == 0.5), "they share all places");
    }

    /// Video's experience is a logarithm: differences, and no percentages.
    #[test]
    fn video_is_compared_by_difference() {
        let mut runs = [run("cubic", "a", 0, -1.0), run("bbr", "a", 0, 0.5)];
        runs.iter_mut().for_each(|run| run.bitrate_kbps_mean = Some(1.0));
        let scores = scores(&runs);
        assert_eq!(scores.scale, Scale::Difference);
        close(scores.rows[0].change.value, 1.5);
    }

    /// The numbers of `stats::harm`, for the set and for a path.
    #[test]
    fn harm_is_that_of_compare() {
        let next_to = |cc: &str, path: &str, throughput_mbps: f64| RunRecord {
            rivals: Some(RivalsRecord {
                cc: Some("cubic".to_owned()),
                throughput_mbps,
                ..RivalsRecord::default()
            }),
            ..run(cc, path, 0, 1.0)
        };
        let runs = [
            next_to("cubic", "a", 8.0),
            next_to("bbr", "a", 2.0),
            next_to("cubic", "b", 4.0),
            next_to("bbr", "b", 4.0),
        ];
        let scores = scores(&runs);
        let bbr = scores.rows.iter().find(|row| row.cc == "bbr").unwrap();
        close(bbr.harm.unwrap().throughput.value, 0.375);
        assert_eq!(
            bbr.paths.iter().map(|path| path.harm).collect::<Vec<_>>(),
            [Some(0.75), Some(0.0)]
        );
    }

    #[test]
    fn without_the_reference_there_is_no_score() {
        let set = Set::parse("x", &format!("about = \"a\"\n{SMALL}")).unwrap();
        let e = score(&set, &[run("bbr", "a", 0, 1.0)]).unwrap_err().to_string();
        assert!(e.contains("cubic and another scheme have no run in common"), "{e}");
    }
}
