//! Figures of small comparisons.

use super::*;
use crate::compare::compare;
use crate::run::Recording;
use crate::run::pool::Effort;
use crate::scenario::Scenario;

fn comparison(text: &str) -> Comparison {
    let scenario = Scenario::parse(text).unwrap();
    let effort = Effort { jobs: None, quiet: true };
    compare(&scenario, effort, Recording::default(), "x", &crate::run::simulator::Simulator)
        .unwrap()
}

fn lines(svg: &str) -> usize {
    svg.matches("stroke-linejoin=\"round\"").count()
}

#[test]
fn a_line_for_each_scheme_over_the_axis() {
    let c = comparison(
        "cc = [\"cubic\", \"bbr\"]\ntraces = [\"constant:8Mbit/s\"]\n\
         jitter = [\"0ms\", \"5ms\", \"20ms\"]\nduration = \"4s\"\n[[app]]\n\
         kind = \"download\"\n",
    );
    let svg = figure(Kind::Axis, &c).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    // A line and its key each.
    assert_eq!(lines(&svg), 4, "{svg}");
    assert!(svg.contains("jitter, ms") && svg.contains("mean completion time, ms"));
    assert!(svg.contains(">cubic</text>") && svg.contains(">bbr</text>"));
    let own = c.runs.iter().filter(|run| run.cc == "bbr");
    let points = lines::means(own.map(|run| (run.cell.jitter_ms, run.rct_ms.unwrap().mean)));
    assert_eq!(points.iter().map(|p| p.0).collect::<Vec<_>>(), [0.0, 5.0, 20.0]);
    assert!(points[2].1 > points[0].1, "late packets cost: {points:?}");
    let svg = figure(Kind::Completion, &c).unwrap();
    assert_eq!(lines(&svg), 8, "two lines in each of three panels, and their keys: {svg}");
    assert!(svg.contains("its 90th percentile, ms") && svg.contains("% of runs at or below"));
    for kind in [Kind::Period, Kind::Switches] {
        assert!(figure(kind, &c).unwrap_err().to_string().contains(&format!("`{kind}` needs")));
    }
}

#[test]
fn an_own_qoe_is_what_the_axis_shows() {
    let c = comparison(
        "cc = [\"cubic\", \"mortise\", \"omniscient\"]\ntraces = [\"constant:8Mbit/s\"]\n\
         rtt = [\"20ms\", \"40ms\"]\nduration = \"3s\"\n[[app]]\nkind = \"download\"\n\
         qoe = \"T - D\"\n",
    );
    let svg = figure(Kind::Axis, &c).unwrap();
    assert!(svg.contains(">QoE</text>") && !svg.contains("completion time"), "{svg}");
}

/// A reader who looks from the report to the figure finds a scheme by its colour.
#[test]
fn schemes_look_as_in_the_report() {
    let c = comparison(
        "cc = [\"cubic\", \"mortise\", \"omniscient\"]\ntraces = [\"constant:8Mbit/s\"]\n\
         rtt = [\"20ms\", \"40ms\"]\nduration = \"3s\"\n[[app]]\nkind = \"download\"\n",
    );
    let svg = figure(Kind::Axis, &c).unwrap();
    let page = crate::report::page(&c, "", "");
    for (class, colour) in [("blue", "#00529b"), ("vermilion", "#d1410c"), ("grey", "#6d7580")] {
        assert!(page.contains(&format!("--{class}: {colour};")), "{class}");
        assert!(page.contains(&format!("class=\"line {class}")), "{class}");
        assert_eq!(svg.matches(&format!("stroke=\"{colour}\"")).count(), 2, "{colour}: {svg}");
    }
}

fn recorded() -> Comparison {
    let scenario = Scenario::parse(
        "cc = [\"cubic\", \"bbr\", \"vegas\", \"copa:mit\", \"mortise\", \"omniscient\"]\n\
         traces = [\"constant:8Mbit/s\", \"step:4Mbit/s,8Mbit/s@2s\"]\nduration = \"4s\"\n\
         seeds = 2\n[[app]]\nkind = \"download\"\n[[app]]\nkind = \"vod\"\n",
    );
    let recording = Recording { units: true, series: true };
    let effort = Effort { jobs: None, quiet: true };
    let simulator = crate::run::simulator::Simulator;
    compare(&scenario.unwrap(), effort, recording, "x", &simulator).unwrap()
}

#[test]
fn every_figure_of_a_comparison_is_written_in_every_format() {
    let c = recorded();
    let dir = tempfile::tempdir().unwrap();
    write_all(dir.path(), &c).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<String> = ["download", "vod"]
        .into_iter()
        .flat_map(|app| {
            let course = ["series-constant-8Mbit-s", "series-step-4Mbit-s-8Mbit-s@2s"];
            let kinds = ["cdf", "changes", "ellipses", "qoe", "tradeoff"].into_iter().chain(course);
            let with_times = kinds.chain((app == "download").then_some("completion"));
            with_times.map(move |kind| format!("{app}-{kind}")).collect::<Vec<_>>()
        })
        .flat_map(|name| ["pdf", "png", "svg"].map(|end| format!("{name}.{end}")))
        .collect();
    expected.sort();
    assert_eq!(names, expected);
    for name in names {
        let bytes = std::fs::read(dir.path().join(&name)).unwrap();
        let begins: &[u8] = match name.rsplit('.').next() {
            Some("svg") => b"<svg xmlns=",
            Some("pdf") => b"%PDF-",
            _ => b"\x89PNG",
        };
        assert!(bytes.starts_with(begins), "{name}");
    }
}

#[test]
fn distributions_have_a_line_and_a_key_for_everybody() {
    let c = recorded();
    let svg = figure(Kind::Cdf, &c).unwrap();
    assert_eq!(lines(&svg), 6 * 2 + 6, "waits, experience, and the key: {svg}");
    assert!(svg.contains("completion time, ms") && svg.contains("QoE, Mbit/s"));
}

#[test]
fn means_and_changes_name_everybody_at_their_rows() {
    let c = recorded();
    for (kind, label) in [
        (Kind::Qoe, "mean QoE, Mbit/s, with 95% interval"),
        (Kind::Changes, "QoE against"),
        (Kind::Tradeoff, "mean queueing delay, ms"),
    ] {
        let svg = figure(kind, &c).unwrap();
        assert!(svg.contains(label), "{svg}");
        // Whom the changes are against stands in their label.
        for cc in ["cubic", "bbr", "vegas", "copa:mit", "mortise", "omniscient"] {
            let own = svg.contains(&format!(">{cc}</text>"));
            assert!(own || svg.contains(&format!("QoE against {cc},")), "{cc}: {svg}");
        }
    }
}

#[test]
fn courses_show_four_and_the_pair_among_them() {
    let c = recorded();
    let svg = figure(Kind::Series, &c).unwrap();
    assert_eq!(svg.matches("role=\"img\"").count(), 5, "throughput, queue, delta, lambda, tau");
    // The keys; names at the foot of the sheet.
    let keys = ["cubic", "bbr", "vegas", "copa:mit", "mortise", "omniscient"]
        .map(|cc| svg.contains(&format!(">{cc}</text>")));
    assert_eq!(keys.iter().filter(|shown| **shown).count(), 4, "{keys:?}");
    assert!(keys[4] && !keys[5], "the steered one is of the pair, a bound comes last");
    let bare = comparison(
        "cc = [\"cubic\"]\ntraces = [\"constant:8Mbit/s\"]\nduration = \"3s\"\n[[app]]\nkind = \"bulk\"\n",
    );
    assert_eq!(figure(Kind::Series, &bare), Err(FigureError::NoSeries));
    assert_eq!(figure(Kind::Cdf, &bare), Err(FigureError::NoUnits));
    assert_eq!(figure(Kind::Changes, &bare), Err(FigureError::NoPair));
}

#[test]
fn ellipses_are_of_runs_normalised_to_the_best_of_their_place() {
    let at = |cc: &str, trace: &str, rtt, mbps| {
        let mut run = crate::testing::run(cc, trace, 0, 1.0);
        (run.rtt_ms.mean, run.throughput_mbps) = (rtt, mbps);
        run
    };
    let runs = [
        at("cubic", "wifi-1", 80.0, 10.0),
        at("copa", "wifi-1", 40.0, 5.0),
        at("cubic", "lte-1", 90.0, 20.0),
        at("copa", "lte-1", 60.0, 15.0),
    ];
    let all = normalised(&runs.iter().collect::<Vec<_>>());
    let of = |cc: &str, parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        moments(&all, cc, &parts).ellipse()
    };
    assert_eq!(of("cubic", &[]).unwrap().mean, (1.75, 1.0));
    assert_eq!(of("copa", &[]).unwrap().mean, (1.0, 0.625));
    assert_eq!(of("copa", &["wifi"]), None, "one place has no spread");
}

#[test]
fn ellipses_have_a_line_for_each_scheme_in_each_panel() {
    let c = recorded();
    let svg = figure(Kind::Ellipses, &c).unwrap();
    assert_eq!(lines(&svg), 6 + 6, "one panel, and the key: {svg}");
    let panels = Panels::from([
        ("all".to_owned(), vec![String::new()]),
        ("none".to_owned(), vec!["x!".to_owned()]),
    ]);
    let svg = figure_in(Kind::Ellipses, &c, &panels).unwrap();
    assert!(svg.contains("all: RTT over the least") && !svg.contains("none: "), "{svg}");
}

#[test]
fn names_become_names_of_files() {
    assert_eq!(file_name("a/b:c d,é.x"), "a-b-c-d-é.x");
}

#[test]
fn periods_are_told_from_names() {
    let c = comparison(
        "cc = [\"cubic\", \"select:power:every=1s\", \"select:power:every=2s\", \"floo:every=1s\"]\n\
         traces = [\"constant:8Mbit/s\"]\nduration = \"6s\"\n[[app]]\nkind = \"web\"\n",
    );
    let svg = figure(Kind::Period, &c).unwrap();
    // The one that has a single period is left out, and CUBIC is level.
    assert_eq!(lines(&svg), 4, "{svg}");
    assert!(svg.contains(">select:power</text>") && svg.contains(">cubic</text>"));
    assert!(!svg.contains("floo") && svg.contains("selection period, s"));
    assert_eq!(figure(Kind::Axis, &c), Err(FigureError::NoAxis));
}

#[test]
fn switches_have_two_distributions_of_bulk_transfers() {
    let c = comparison(
        "cc = [\"switch:cubic,bbr:every=8s\", \"switch:cubic,bbr:every=8s:part\", \"cubic\"]\n\
         traces = [\"constant:8Mbit/s\"]\nduration = \"40s\"\n[[app]]\nkind = \"bulk\"\n\
         [[app]]\nkind = \"web\"\n",
    );
    let svg = figure(Kind::Switches, &c).unwrap();
    assert_eq!(lines(&svg), 2 * 2 + 2, "two panels and the key: {svg}");
    assert_eq!(svg.matches("width=\"460\" height=\"300\" viewBox").count(), 2, "{svg}");
    assert!(svg.contains("lost in the second after") && svg.contains("had settled, s"));
}
