//! A table for people.

use std::fmt::Write;

use super::result::{ArmResult, EdgeResult, Estimate, FleetRun};

/// A table for people.
pub fn render(run: &FleetRun) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} edges on {}, one engine; {:.0} s of learning by intervals of {:.0} s, {} of {:.0} s for each arm",
        run.scenario,
        run.edges.len(),
        run.kernel,
        run.learn_s,
        run.interval_s,
        if run.rounds == 1 { "a round".to_owned() } else { format!("{} rounds", run.rounds) },
        run.block_s
    );
    let _ = writeln!(out, "{}: {}\n", run.service, run.reward);
    knobs(&mut out, run);
    for edge in &run.edges {
        of_edge(&mut out, edge);
    }
    out
}

/// What was learnt, by edge.
fn knobs(out: &mut String, run: &FleetRun) {
    let Some(first) = run.edges.first() else { return };
    let names: Vec<&String> = first.default.keys().collect();
    let _ = write!(out, " {:<14}", "");
    for name in &names {
        let _ = write!(out, " {name:>20}");
    }
    out.push('\n');
    let mut row = |label: &str, values: &std::collections::BTreeMap<String, f64>| {
        let _ = write!(out, " {label:<14}");
        for name in &names {
            let _ = write!(out, " {:>20}", short(values.get(*name).copied().unwrap_or(f64::NAN)));
        }
        out.push('\n');
    };
    row("default", &first.default);
    for edge in &run.edges {
        row(&edge.name, &edge.learnt);
    }
}

/// Three digits that say something.
fn short(value: f64) -> String {
    let digits = (2.0 - libm::floor(libm::log10(value.abs().max(1e-6)))).clamp(0.0, 4.0) as usize;
    format!("{value:.digits$}")
}

fn of_edge(out: &mut String, edge: &EdgeResult) {
    let _ = writeln!(
        out,
        "\n{}: {}, {:.1} Mbit/s, {:.0} ms, {:.0} KB, {}% lost at random",
        edge.name,
        edge.link,
        edge.capacity_mbps,
        edge.rtt_ms,
        edge.buffer_kb,
        edge.loss * 100.0
    );
    if edge.blocks.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        " {:<8} {:>23} {:>9} {:>8} {:>7}  {:<24} reward",
        "", "download [95% interval]", "queue", "lost", "reward", "download vs. default"
    );
    for arm in &edge.arms {
        row(out, edge, arm);
    }
}

fn row(out: &mut String, edge: &EdgeResult, arm: &ArmResult) {
    let with_ends = |e: Estimate, text: &dyn Fn(f64) -> String| match e.ends() {
        Some([lo, hi]) => format!("{} [{}, {}]", text(e.mean), text(lo), text(hi)),
        None => text(e.mean),
    };
    let seconds = |e: Estimate| with_ends(e, &|v| format!("{v:.3}")) + " s";
    let percent = |e: Estimate| with_ends(e, &|v| format!("{:+.1}%", 100.0 * v));
    let more = |e: Estimate| with_ends(e, &|v| format!("{v:+.3}"));
    let versus = edge.differences.iter().find(|difference| difference.arm == arm.arm);
    let text = |value: Option<String>| value.unwrap_or_default();
    let line = format!(
        " {:<8} {:>23} {:>6} ms {:>7}% {:>7}  {:<24} {}",
        arm.arm.name(),
        text(arm.download_s.map(seconds)),
        text(arm.queue_ms.map(|e| format!("{:.1}", e.mean))),
        text(arm.lost.map(|e| format!("{:.2}", e.mean * 100.0))),
        text(arm.reward.map(|e| format!("{:.3}", e.mean))),
        text(versus.and_then(|b| b.download).map(percent)),
        text(versus.and_then(|b| b.reward).map(more)),
    );
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::super::result::{Arm, Difference, Moment};
    use super::*;

    fn mean(mean: f64) -> Option<Estimate> {
        Some(Estimate { mean, lo: None, hi: None })
    }

    fn arm(arm: Arm, download_s: Estimate) -> ArmResult {
        let [queue_ms, lost, download_mbps, reward] = [12.34, 0.0123, 4.0, 0.5].map(mean);
        let download_s = Some(download_s);
        ArmResult { arm, downloads: 3, download_s, queue_ms, lost, download_mbps, reward }
    }

    /// A run with an edge that was compared, and one on which only learning is over.
    fn run() -> FleetRun {
        let knobs = |alpha: f64| [("alpha".to_owned(), alpha)].into();
        let edge = |name: &str, learnt: f64| EdgeResult {
            name: name.to_owned(),
            prefix: "10.0.0.0/24".to_owned(),
            link: "constant".to_owned(),
            capacity_mbps: 20.0,
            rtt_ms: 40.0,
            buffer_kb: 100.0,
            loss: 0.01,
            default: knobs(0.9),
            learnt: knobs(learnt),
            course: [(0.0, 0.9), (2.0, learnt)]
                .map(|(at_s, guess)| Moment {
                    at_s,
                    tried: knobs(guess),
                    guess: knobs(guess),
                    reward: None,
                })
                .into(),
            blocks: Vec::new(),
            arms: Vec::new(),
            differences: Vec::new(),
        };
        let mut compared = edge("near", 0.123_45);
        let (lo, hi) = (Some(0.9), Some(1.1));
        compared.arms = vec![
            arm(Arm::Learnt, Estimate { mean: 1.0, lo, hi }),
            arm(Arm::Default, Estimate { mean: 1.25, lo: None, hi: None }),
        ];
        compared.differences =
            vec![Difference { arm: Arm::Learnt, reward: mean(0.25), download: mean(-0.2) }];
        compared.blocks = vec![super::super::Block {
            round: 0,
            arm: Arm::Learnt,
            downloads: 3,
            done: 3,
            failed: 0,
            download_s: 1.0,
            download_mbps: 4.0,
            queue_ms: 12.34,
            lost: 0.0123,
            carried_mbps: 5.0,
            reward: None,
        }];
        FleetRun {
            schema: "trimtab.fleet-kernel/2",
            version: "0",
            command: "trimtab".to_owned(),
            kernel: "Linux 6.18".to_owned(),
            scenario: "two edges".to_owned(),
            about: String::new(),
            service: "tv".to_owned(),
            reward: "throughput".to_owned(),
            interval_s: 2.0,
            learn_s: 60.0,
            block_s: 10.0,
            rounds: 1,
            clients: 4,
            edges: vec![compared, edge("far", 12.345)],
            late_p99_ms: 0.1,
            lost_elsewhere: 0,
        }
    }

    #[test]
    fn the_table_has_what_was_learnt_and_how_each_arm_did() {
        let table = render(&run());
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("two edges: 2 edges on Linux 6.18"), "{table}");
        assert!(lines[0].ends_with("a round of 10 s for each arm"), "{table}");
        let row = |name: &str| {
            let mut found = lines.iter().filter(|line| line.starts_with(&format!(" {name} ")));
            found.next().unwrap_or_else(|| panic!("no {name}: {table}"))
        };
        // Three digits that say something.
        assert!(row("near").ends_with(" 0.123") && row("far").ends_with(" 12.3"), "{table}");
        let learnt = row("learnt");
        assert!(
            learnt.contains("1.000 [0.900, 1.100] s") && learnt.contains("12.3 ms"),
            "{learnt}"
        );
        assert!(learnt.contains("1.23%") && learnt.contains("-20.0%"), "{learnt}");
        assert!(learnt.ends_with("+0.250"), "{learnt}");
        let safe = lines.iter().rfind(|line| line.starts_with(" default ")).expect("an arm");
        assert!(safe.contains(" 1.250 s ") && safe.ends_with("0.500"), "not vs. itself: {safe}");
        assert_eq!(table.matches("vs. default").count(), 1, "nothing was compared at the far one");
    }

    #[test]
    fn the_plot_has_a_line_for_each_edge() {
        let svg = super::super::plot(&run());
        assert!(svg.starts_with("<svg") && svg.contains("seconds of learning"), "{svg}");
        for text in ["near", "far", "alpha"] {
            assert!(svg.contains(text), "no {text}: {svg}");
        }
    }
}
