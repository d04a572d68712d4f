//! How schemes do along an axis of the grid, where the grid has only one: a mean over round-trip
//! times from 20 to 300 ms hides what the experiment was made to show.

use crate::result::{Comparison, RunRecord, Scale};
use crate::scenario::Scenario;
use crate::stats::summary::{in_order, scale};

/// A quantity along an axis: its name, its extractor from a run and the run's cell, and the format
/// of its mean.
type Quantity = (&'static str, fn(&RunRecord, &[&RunRecord]) -> Option<f64>, fn(f64) -> String);

/// A quantity of the schemes of an application along the axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Along {
    /// What the quantity is, and along which axis.
    pub(crate) title: String,
    /// The values of the axis, as the scenario has them.
    pub(crate) values: Vec<String>,
    /// Per scheme the quantity at each value.
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// The axis of the grid, if there is one and only one with several values, apart from traces.
fn axis(scenario: &Scenario) -> Option<(&'static str, Vec<String>)> {
    fn texts<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }
    let axes = [
        ("round-trip time", texts(&scenario.rtt)),
        ("buffer", texts(&scenario.buffer)),
        ("loss", texts(&scenario.loss)),
        ("jitter", texts(&scenario.jitter)),
        ("flows", texts(&scenario.flows)),
        ("rivals", scenario.rivals.iter().map(|set| set.name.clone()).collect()),
    ];
    // Of a thinned grid or a design a trace has some of the values only.
    if scenario.thin.is_some() || scenario.share_min.is_some() || scenario.design.is_some() {
        return None;
    }
    let mut several = axes.into_iter().filter(|(_, values)| values.len() > 1);
    several.next().filter(|_| several.next().is_none())
}

/// Along the axis: the friendliness ratio where there are competitors, else the share of omniscient
/// where it took part and is a bound, else the mean experience; of several flows also how evenly they share. Nothing
/// without an axis.
pub(crate) fn along(comparison: &Comparison, app: &str) -> Vec<Along> {
    // The record of a comparison that was not made by a scenario has none.
    let Ok(scenario) = Scenario::parse(&comparison.provenance.scenario) else { return Vec::new() };
    let Some((name, values)) = axis(&scenario) else { return Vec::new() };
    let runs: Vec<&RunRecord> = comparison.runs.iter().filter(|r| r.app == app).collect();
    // Runs come in the order of the scenario: trace, cell, seed, scheme. So the cells of a trace
    // are the values of the axis, each with as many runs. Only their number counts: two
    // values may make the same cell, as small buffers on a slow link do.
    let mut at_value: Vec<Vec<&RunRecord>> = vec![Vec::new(); values.len()];
    for of_trace in runs.chunk_by(|a, b| a.trace == b.trace) {
        let cells = of_trace.chunks(of_trace.len().div_ceil(values.len()));
        at_value.iter_mut().zip(cells).for_each(|(at, cell)| at.extend_from_slice(cell));
    }
    let has_share =
        comparison.summary.iter().any(|r| r.app == app && r.score_of_omniscient.is_some());
    let mut quantities: Vec<Quantity> = vec![if runs.iter().any(|r| r.friendliness.is_some()) {
        ("friendliness", |run, _| run.friendliness, |mean| format!("{mean:.2}"))
    } else if has_share {
        ("of omniscient", log_share, |mean| format!("{:.1}%", 100.0 * libm::exp(mean)))
    } else if scale(runs.iter().copied()) == Scale::Ratio {
        // The geometric mean, as in the summary.
        let log = |run: &RunRecord, _: &[&RunRecord]| Some(libm::log(run.score(Scale::Ratio)));
        ("QoE", log, |mean| format!("{:.2}", libm::exp(mean)))
    } else {
        ("QoE", |run, _| Some(run.users.mean), |mean| format!("{mean:.2}"))
    }];
    if name == "flows" && runs.iter().any(|r| r.jain.is_some()) {
        quantities.push(("Jain's index", |run, _| run.jain, |mean| format!("{mean:.3}")));
    }
    let ccs = in_order(runs.iter().map(|r| r.cc.as_str()));
    let table = |(quantity, of, written): Quantity| {
        let cell = |cc: &str, at: &[&RunRecord]| {
            let own = at.iter().filter(|r| r.cc == cc);
            let found: Vec<f64> = own.filter_map(|r| of(r, at)).collect();
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            if found.is_empty() { String::new() } else { written(mean) }
        };
        let row = |cc: &str| (cc.to_owned(), at_value.iter().map(|at| cell(cc, at)).collect());
        Along {
            title: format!("{quantity} by {name}"),
            values: values.clone(),
            rows: ccs.iter().copied().map(row).collect(),
        }
    };
    quantities.into_iter().map(table).collect()
}

/// The logarithm of the score over that of `omniscient` in the same run.
fn log_share(run: &RunRecord, cell: &[&RunRecord]) -> Option<f64> {
    let same = |r: &&&RunRecord| {
        r.cc == trimtab_steer::scheme::OMNISCIENT && r.trace == run.trace && r.seed == run.seed
    };
    let best = cell.iter().find(same)?.score(Scale::Ratio);
    Some(libm::log(run.score(Scale::Ratio) / best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::run::Recording;
    use crate::run::pool::Effort;

    fn result(more: &str) -> Comparison {
        let text = format!(
            "cc = [\"cubic\", \"omniscient\"]\n\
             traces = [\"constant:8Mbit/s\", \"constant:4Mbit/s\"]\nduration = \"3s\"\n{more}\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let effort = Effort { jobs: None, quiet: true };
        compare(&scenario, effort, Recording::default(), "x", &crate::run::simulator::Simulator)
            .unwrap()
    }

    #[test]
    fn each_value_has_its_own_mean() {
        let c = result("rtt = [\"20ms\", \"200ms\"]\nbuffer = \"1BDP\"\n[[app]]\nkind = \"bulk\"");
        let [along] = &along(&c, "bulk")[..] else { panic!("one table") };
        assert_eq!(along.title, "of omniscient by round-trip time");
        assert_eq!(along.values, ["20ms", "200ms"]);
        let share = |rtt: f64| {
            let of = |cc: &str, trace: &str| {
                let run = |r: &&RunRecord| r.cc == cc && r.trace == trace && r.cell.rtt_ms == rtt;
                c.runs.iter().find(run).unwrap().users.score()
            };
            let shares = ["constant:8Mbit/s", "constant:4Mbit/s"]
                .map(|trace| of("cubic", trace) / of("omniscient", trace));
            format!("{:.1}%", 100.0 * (shares[0] * shares[1]).sqrt())
        };
        assert_eq!(along.rows[0], ("cubic".to_owned(), vec![share(20.0), share(200.0)]));
        assert_eq!(along.rows[1].1, ["100.0%", "100.0%"]);
    }

    #[test]
    fn friendliness_comes_first_and_then_how_evenly_flows_share() {
        let c = result("flows = [1, 2]\n[[app]]\nkind = \"bulk\"\n[[competitor]]\ncc = \"cubic\"");
        let [friendly, even] = &along(&c, "bulk")[..] else { panic!("two tables") };
        assert_eq!(friendly.title, "friendliness by flows");
        assert!(friendly.rows[0].1.iter().all(|f| f.parse::<f64>().unwrap() > 0.3), "{friendly:?}");
        assert_eq!(even.title, "Jain's index by flows");
        let jain = |trace: &str| {
            let run = |r: &&RunRecord| r.cc == "cubic" && r.trace == trace && r.cell.flows == 2;
            c.runs.iter().find(run).unwrap().jain.unwrap()
        };
        let mean = (jain("constant:8Mbit/s") + jain("constant:4Mbit/s")) / 2.0;
        assert_eq!(even.rows[0].1, ["".to_owned(), format!("{mean:.3}")], "a flow alone has none");
    }

    #[test]
    fn no_axis_or_several_have_no_table() {
        assert_eq!(along(&result("[[app]]\nkind = \"bulk\""), "bulk"), []);
        let two = "rtt = [\"20ms\", \"40ms\"]\nloss = [\"0%\", \"1%\"]\n[[app]]\nkind = \"bulk\"";
        assert_eq!(along(&result(two), "bulk"), []);
    }

    /// A buffer below two packets is one of two: small ones are the same on a slow link.
    #[test]
    fn values_that_make_the_same_cell_keep_their_columns() {
        let c = result("buffer = [\"0.01BDP\", \"0.02BDP\", \"8BDP\"]\n[[app]]\nkind = \"bulk\"");
        let bytes: Vec<u64> = c.runs.iter().map(|run| run.cell.buffer_bytes).collect();
        assert_eq!(bytes[..4], [3000; 4], "two values and two schemes on the first link");
        let [along] = &along(&c, "bulk")[..] else { panic!("one table") };
        let [least, less, most] = &along.rows[0].1[..] else { panic!("three values") };
        assert_eq!(least, less, "the same runs");
        let percent = |text: &str| text.trim_end_matches('%').parse::<f64>().unwrap();
        assert!(percent(most) > 1.05 * percent(less), "a deep buffer helps CUBIC: {along:?}");
    }
}
