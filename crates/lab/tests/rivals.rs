//! Competitors that come and go, their sets as an axis, and the harm done to them, in the
//! simulator.

use trimtab_lab::compare::compare;
use trimtab_lab::report::table::{Style, render};
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::Scenario;

fn result(text: &str) -> Comparison {
    let scenario = Scenario::parse(text).unwrap();
    let recording = Recording { units: false, series: true };
    compare(&scenario, Effort { jobs: None, quiet: true }, recording, "x", &Simulator).unwrap()
}

fn run<'a>(c: &'a Comparison, cc: &str, rivals: &str) -> &'a RunRecord {
    c.runs.iter().find(|r| r.cc == cc && r.cell.rivals == rivals).unwrap()
}

const SETS: &str = "cc = [\"cubic\", \"bbr\"]\ntraces = \"constant:12Mbit/s\"\nrtt = \"40ms\"\n\
    buffer = \"1BDP\"\nduration = \"40s\"\n[[app]]\nkind = \"bulk\"\n\
    [[rivals]]\nname = \"nobody\"\n\
    [[rivals]]\nname = \"1 cubic\"\n[[rivals.competitor]]\ncc = \"cubic\"\n\
    [[rivals]]\nname = \"on and off\"\n[[rivals.competitor]]\ncc = \"cubic\"\n\
    start = \"10s\"\non = \"10s\"\noff = \"10s\"\n";

#[test]
fn harm_is_known_where_their_own_kind_takes_part() {
    let c = result(SETS);
    assert_eq!(run(&c, "bbr", "nobody").rivals, None);
    let [next_to_bbr, own_kind] = ["bbr", "cubic"].map(|cc| run(&c, cc, "1 cubic"));
    let rate = |r: &RunRecord| r.rivals.as_ref().unwrap().throughput_mbps;
    assert!(rate(own_kind) > 4.0 && rate(next_to_bbr) < rate(own_kind), "BBR takes from CUBIC");
    let harm = c.summary.iter().find(|row| row.cc == "bbr").unwrap().harm.unwrap();
    assert_eq!(harm.pairs, 2, "alone there is nobody to harm");
    assert!(harm.throughput.value > 0.1, "{harm:?}");
    let text = render(&c, Style { width: 120, lines: false });
    assert!(text.contains("harm to competing flows") && text.contains("on and off"), "{text}");
    assert!(!text.contains("to see the harm done"), "{text}");
    let alone = SETS.replace("\"cubic\", \"bbr\"", "\"bbr\"");
    let text = render(&result(&alone), Style { width: 120, lines: false });
    assert!(text.contains("add cubic to --cc to see the harm done."), "{text}");
}

/// While the rival is away, CUBIC has the link for itself; while it is there, a share.
#[test]
fn a_rival_that_comes_and_goes_leaves_the_link() {
    let c = result(SETS);
    let series = run(&c, "cubic", "on and off").series.as_ref().unwrap();
    let mean = |from: usize, to: usize| {
        series.throughput_mbps[from * 10..to * 10].iter().sum::<f64>() / (10 * (to - from)) as f64
    };
    // It asks from 10 to 20 s and from 30 to 40 s; what is on its way then takes some 2 s.
    for (away, there) in [((5, 10), (14, 20)), ((26, 30), (34, 40))] {
        let (away, there) = (mean(away.0, away.1), mean(there.0, there.1));
        assert!(away > 10.5 && there < 9.0, "{away} Mbit/s alone, {there} next to it");
    }
    let rivals = run(&c, "cubic", "on and off").rivals.as_ref().unwrap();
    assert!(rivals.throughput_mbps > 2.5, "per time that it asks: {rivals:?}");
}

#[test]
fn overloaded_cells_are_counted_and_left_out() {
    let c = result(
        "cc = [\"cubic\", \"bbr\"]\ntraces = [\"constant:100kbit/s\", \"constant:50Mbit/s\"]\n\
         duration = \"60s\"\n[[app]]\nkind = \"download\"\n",
    );
    let served = c.served.as_ref().unwrap();
    assert_eq!((served.cells, served.overloaded), (2, 1));
    assert_eq!(c.cells.iter().map(|cell| cell.overloaded).collect::<Vec<_>>(), [true, false]);
    let text = render(&c, Style { width: 120, lines: false });
    assert!(text.contains("download (2 runs, without overloaded cells)"), "{text}");
    assert!(text.contains("overloaded: in 1 of 2 cells"), "{text}");
    assert!(text.contains("without these cells: "), "{text}");
}

/// The open loop leaves requests behind on a slow link, the closed one at most one per user.
#[test]
fn a_closed_loop_makes_no_backlog() {
    let unfinished = |pacing: &str| {
        let c = result(&format!(
            "cc = [\"cubic\"]\ntraces = \"constant:500kbit/s\"\nduration = \"60s\"\n\
             [[app]]\nkind = \"download\"\nloop = \"{pacing}\"\n"
        ));
        c.runs[0].unfinished
    };
    assert!(unfinished("open") > 5);
    assert!(unfinished("closed") <= 1);
}
