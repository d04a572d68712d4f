//! A simulated fleet as a table for people.

use std::fmt::Write;

use super::Joined;
use super::cross::{OTHERS, mean_harm};
use super::estimate::Estimate;
use super::result::{
    BEST_BY_CONTEXT, FleetResult, LEARNT, OutageResult, SchemeResult, ServiceResult, VersusResult,
};
use super::verdict;

/// A statistic of the table: its name, heading, scale and digits.
type Column = (&'static str, &'static str, f64, usize);

const COLUMNS: [Column; 7] = [
    ("mean(throughput)", "Mbit/s", 1.0, 2),
    ("p50(rtt)", "median RTT", 1000.0, 0),
    ("mean(rtt)", "mean RTT", 1000.0, 0),
    ("mean(loss)", "loss %", 100.0, 2),
    ("p50(request_time)", "median s", 1.0, 2),
    ("mean(rebuffering)", "stalled %", 100.0, 2),
    ("mean(bitrate)", "bitrate", 1.0, 2),
];

/// A table for people.
pub fn render(result: &FleetResult) -> String {
    let seeds = match result.seeds {
        1 => format!("seed {}", result.seed),
        count => format!("seeds {} to {}", result.seed, result.seed + count - 1),
    };
    let mut out = format!(
        "{}: {} aggregates, {} intervals, {} connections in each, {seeds}\n",
        result.scenario, result.aggregates, result.intervals, result.connections
    );
    if result.baselines_every > 1 {
        let every = result.baselines_every;
        let _ = writeln!(
            out,
            "baselines but the incumbent, and the start: in one of {every} intervals"
        );
    }
    for service in &result.services {
        let _ = writeln!(out, "\n{}: {}", service.service, service.reward);
        let used: Vec<&Column> = COLUMNS
            .iter()
            .filter(|(name, ..)| service.schemes.iter().any(|c| shown(c, name) > 0.0))
            .collect();
        render_schemes(&mut out, service, &used);
        render_learning(&mut out, service);
        if !service.ran.is_empty() {
            let share = |(name, share): &(String, f64)| format!("{name} {:.0}%", 100.0 * share);
            let shares: Vec<String> = service.ran.iter().map(share).collect();
            let _ = writeln!(out, " in force in the last third: {}", shares.join(", "));
        }
        if let Some(Joined { pairs, found, wrong }) = service.joined {
            let _ = writeln!(
                out,
                " one aggregate from some time on: {found} of {pairs} pairs that share a \
                 bottleneck; {wrong} more that share none were found"
            );
        }
        if let Some(verdict) = &service.verdict {
            verdict::render(&mut out, verdict);
        }
        if let Some(versus) = &service.versus {
            render_versus(&mut out, versus, &used);
        }
        if let Some(outage) = &service.outage {
            let all = u64::from(result.aggregates) * result.seeds;
            render_outage(&mut out, outage, all);
        }
    }
    for line in &result.paper {
        let _ = writeln!(out, "\nPaper: {line}");
    }
    out
}

/// A statistic of a scheme; 0 where it has none.
fn shown(scheme: &SchemeResult, name: &str) -> f64 {
    scheme.statistics.iter().find(|(n, _)| n == name).map_or(0.0, |(_, v)| *v)
}

/// A row per scheme, and how soon learning came close to the best.
fn render_schemes(out: &mut String, service: &ServiceResult, used: &[&Column]) {
    let has_goal = service.schemes.iter().any(|c| c.name == BEST_BY_CONTEXT);
    let _ = write!(out, " {:<18} {:>8} {:>11}", "", "reward", "last third");
    if has_goal {
        let _ = write!(out, " {:>8} {:>15} {:>6}", "to best", "95% of it", "regret");
    }
    for (_, heading, ..) in used {
        let _ = write!(out, " {heading:>10}");
    }
    let has_cross = service.schemes.iter().any(|c| !c.cross.is_empty());
    if has_cross {
        let _ = write!(out, " {:>10} {:>10}", "others", "harm %");
    }
    out.push('\n');
    for c in &service.schemes {
        let _ = write!(out, " {:<18} {:>8.3} {:>11.3}", c.name, c.reward, c.late_reward);
        if let Some(e) = &c.to_best {
            let range = format!("{:.1} to {:.1}", 100.0 * e.low, 100.0 * e.high);
            let grows = c.regret_exponent.map_or("-".into(), |e| format!("t^{:.2}", e.value));
            let _ = write!(out, " {:>7.1}% {range:>15} {grows:>6}", 100.0 * e.value);
        }
        for &&(name, _, scale, digits) in used {
            let _ = write!(out, " {:>10.digits$}", shown(c, name) * scale);
        }
        if has_cross {
            let sum: f64 = c.cross.iter().map(|other| other.throughput_mbps).sum();
            let mean = sum / c.cross.len().max(1) as f64;
            let harm = mean_harm(&c.cross).map_or("-".into(), |h| format!("{:.1}", 100.0 * h));
            let _ = write!(out, " {mean:>10.2} {harm:>10}");
        }
        out.push('\n');
    }
    if has_goal {
        let after = service
            .close_after
            .map_or("not in this run".to_owned(), |n| format!("after {n} intervals"));
        let _ = writeln!(out, " within 3% of the best per context: {after}");
    }
}

/// The cost of looking around, and the growth of the regret.
fn render_learning(out: &mut String, service: &ServiceResult) {
    let Some(learnt) = service.schemes.iter().find(|c| c.name == LEARNT) else { return };
    if let (Some(guess), Some(all)) = (&learnt.guess_to_best, &learnt.to_best) {
        let _ = writeln!(
            out,
            " its best guesses alone: {:.1}% to best; looking around costs {:.1}%",
            100.0 * guess.value,
            100.0 * (guess.value - all.value)
        );
    }
    if let Some(e) = &learnt.regret_exponent {
        let _ = writeln!(
            out,
            " regret of what is learnt grows as t^{:.2} ({:.2} to {:.2})",
            e.value, e.low, e.high
        );
    }
}

fn render_versus(out: &mut String, versus: &VersusResult, used: &[&Column]) {
    let _ = writeln!(out, " learnt vs. {}, with 95% intervals:", versus.name);
    let mut row = |heading: &str, e: &Estimate| {
        let _ = writeln!(
            out,
            "  {heading:<12} {:>+7.1}% ({:+.1} to {:+.1})",
            100.0 * e.value,
            100.0 * e.low,
            100.0 * e.high
        );
    };
    for &&(name, heading, ..) in used {
        if let Some((_, e)) = versus.statistics.iter().find(|(n, _)| n == name) {
            row(heading.trim_end_matches(" %").trim_end_matches(" s"), e);
        }
    }
    for (name, e) in versus.statistics.iter().filter(|(name, _)| name.starts_with(OTHERS)) {
        row(name, e);
    }
}

fn render_outage(out: &mut String, o: &OutageResult, aggregates: u64) {
    let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let _ = writeln!(
        out,
        " outage: {} of {aggregates} aggregates fell back, after {} intervals (median) and {} (most)\n  \
         reward in it {:.3}, of the safe configuration {:.3}; after it {:.3} and {:.3}\n  \
         most behind the safe configuration over any stretch: {:.1} (median) and {:.1} (most) \
         of its mean rewards",
        o.fell_back,
        number(o.median_intervals),
        number(o.most_intervals),
        o.reward,
        o.safe_reward,
        o.reward_after,
        o.safe_reward_after,
        o.behind_median,
        o.behind_most
    );
}
