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
