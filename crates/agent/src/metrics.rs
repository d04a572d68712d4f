//! What Prometheus reads: sums by rule and arm, never a series per connection, so that their number is the
//! configuration's and not the clients'.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::config::Mode;
use crate::tally::RTT_BOUNDS_S;
use crate::view::{RuleStatus, Status};

/// The type of what [`text`] writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A number of a rule and arm: its name, its help, whether it only grows, and where it is.
type RuleSeries = (&'static str, &'static str, MetricType, fn(&RuleStatus) -> f64);

/// Counters get `_total` at the end when they are written.
const BY_RULE: [RuleSeries; 13] = [
    ("open_connections", "Connections that are open", MetricType::Gauge, |r| r.open as f64),
    ("active_connections", "Open connections on which something happens", MetricType::Gauge, |r| {
        r.active as f64
    }),
    ("connections", "Connections that came", MetricType::Counter, |r| r.tally.opened as f64),
    (
        "decisions",
        "Knobs turned and algorithms asked for, or would have been",
        MetricType::Counter,
        |r| r.tally.decisions as f64,
    ),
    ("fallbacks", "Connections that went back to what is safe", MetricType::Counter, |r| {
        r.tally.fallbacks as f64
    }),
    ("yielded", "Connections that were left to somebody else", MetricType::Counter, |r| {
        r.tally.yielded as f64
    }),
    (
        "unanswered_selections",
        "Selections for which a learnt policy had no answer, so that what is safe was asked for",
        MetricType::Counter,
        |r| r.tally.unanswered as f64,
    ),
    ("sent_bytes", "Bytes sent in measured windows", MetricType::Counter, |r| {
        r.tally.sent_bytes as f64
    }),
    ("lost_bytes", "Bytes lost in measured windows", MetricType::Counter, |r| {
        r.tally.lost_bytes as f64
    }),
    ("windows", "Seconds of connections that were measured", MetricType::Counter, |r| {
        r.tally.windows as f64
    }),
    ("scored_windows", "Measured windows that have a score", MetricType::Counter, |r| {
        r.tally.scored as f64
    }),
    // Scores may be below zero, so their sum is no counter.
    ("score_sum", "Sum of the scores of scored windows", MetricType::Gauge, |r| r.tally.score_sum),
    (
        "throughput_sum_bits_per_second",
        "Sum of the mean throughputs of scored windows",
        MetricType::Gauge,
        |r| r.tally.throughput_sum_mbps * 1e6,
    ),
];

/// A moment of the agent.
#[derive(Debug)]
struct Snapshot(Status);

impl Snapshot {
    fn by_rule(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, kind, value): RuleSeries,
    ) -> fmt::Result {
        let name = format!("trimtab_{name}");
        let mut family = encoder.encode_descriptor(&name, help, None, kind)?;
        for rule in &self.0.rules {
            let labels = [("rule", rule.rule.as_str()), ("arm", rule.arm.name())];
            let mut series = family.encode_family(&labels)?;
            match kind {
                MetricType::Counter => {
                    series.encode_counter::<NoLabelSet, f64, f64>(&value(rule), None)?;
                }
                _ => series.encode_gauge(&value(rule))?,
            }
        }
        Ok(())
    }

    fn round_trips(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Mean round-trip times of measured windows";
        let mut family =
            encoder.encode_descriptor("trimtab_rtt_seconds", help, None, MetricType::Histogram)?;
        for rule in &self.0.rules {
            let bounds = RTT_BOUNDS_S.into_iter().chain([f64::INFINITY]);
            let classes: Vec<(f64, u64)> = bounds.zip(rule.tally.rtt_counts).collect();
            let labels = [("rule", rule.rule.as_str()), ("arm", rule.arm.name())];
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                rule.tally.rtt_sum_s,
                rule.tally.windows,
                &classes,
                None,
            )?;
        }
        Ok(())
    }

    fn agent(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        let applies = f64::from(u8::from(status.mode == Mode::Apply));
        for (name, help, value) in [
            ("trimtab_agent_applies", "Whether decisions are carried out", applies),
            (
                "trimtab_agent_adopted_connections",
                "Connections open when it came",
                status.adopted as f64,
            ),
            ("trimtab_agent_cpu_share", "Share of a core that deciding takes", status.cpu),
            (
                "trimtab_agent_interval_stretch",
                "How many times as long as a round trip its intervals are",
                status.stretch,
            ),
            (
                "trimtab_agent_troubles",
                "Things that it leaves to somebody else or that are wrong; `trimtab agent status` names them",
                status.troubles.len() as f64,
            ),
            ("trimtab_agent_up_seconds", "Time since it came", status.up_s),
        ] {
            let mut gauge: MetricEncoder<'_> =
                encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            gauge.encode_gauge(&value)?;
        }
        Ok(())
    }
}

impl Snapshot {
    fn assigned(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Sockets whose algorithm a rule with assign is about, by how they stand";
        let kind = MetricType::Gauge;
        let mut family = encoder.encode_descriptor("trimtab_assigned_sockets", help, None, kind)?;
        for assigned in &self.0.assigned {
            for (state, count) in [
                ("listening", assigned.listeners),
                ("connected", assigned.connections),
                ("pending", assigned.pending),
                ("by_hand", assigned.by_hand),
            ] {
                let labels = [("rule", assigned.rule.as_str()), ("state", state)];
                family.encode_family(&labels)?.encode_gauge(&(count as f64))?;
            }
        }
        Ok(())
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.agent(&mut encoder)?;
        for series in BY_RULE {
            self.by_rule(&mut encoder, series)?;
        }
        self.round_trips(&mut encoder)?;
        self.assigned(&mut encoder)
    }
}

/// The page.
pub(crate) fn page(status: Status) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(status)));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("writing to a text does not fail");
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Arm;
    use crate::assign::Assigned;
    use crate::tally::Tally;

    fn status(rules: Vec<RuleStatus>) -> Status {
        Status {
            schema: String::new(),
            version: String::new(),
            pid: 1,
            config: String::new(),
            mode: Mode::Apply,
            algorithm: String::new(),
            up_s: 12.5,
            open: 3,
            active: 1,
            adopted: 2,
            ahead: 0,
            reports: 0,
            cpu: 0.01,
            stretch: 1.0,
            troubles: Vec::new(),
            rules,
            assigned: vec![Assigned {
                rule: "web".to_owned(),
                listeners: 2,
                by_hand: 1,
                ..Assigned::default()
            }],
        }
    }

    #[test]
    fn a_page_has_sums_by_rule_and_arm_and_nothing_of_a_connection() {
        let mut tally = Tally { opened: 3, windows: 3, rtt_sum_s: 3.03, ..Tally::default() };
        (tally.rtt_counts[2], tally.rtt_counts[9]) = (2, 1);
        tally.score_sum = -1.5;
        let rule =
            RuleStatus { rule: "web".to_owned(), arm: Arm::Treated, open: 3, active: 1, tally };
        let page = page(status(vec![rule]));
        for line in [
            "# TYPE trimtab_open_connections gauge",
            "trimtab_open_connections{rule=\"web\",arm=\"treated\"} 3.0",
            "# TYPE trimtab_connections counter",
            "trimtab_connections_total{rule=\"web\",arm=\"treated\"} 3.0",
            "trimtab_score_sum{rule=\"web\",arm=\"treated\"} -1.5",
            "trimtab_rtt_seconds_bucket{le=\"0.01\",rule=\"web\",arm=\"treated\"} 0",
            "trimtab_rtt_seconds_bucket{le=\"0.02\",rule=\"web\",arm=\"treated\"} 2",
            "trimtab_rtt_seconds_bucket{le=\"2.0\",rule=\"web\",arm=\"treated\"} 2",
            "trimtab_rtt_seconds_bucket{le=\"+Inf\",rule=\"web\",arm=\"treated\"} 3",
            "trimtab_rtt_seconds_count{rule=\"web\",arm=\"treated\"} 3",
            "trimtab_assigned_sockets{rule=\"web\",state=\"listening\"} 2.0",
            "trimtab_assigned_sockets{rule=\"web\",state=\"by_hand\"} 1.0",
            "trimtab_agent_applies 1.0",
            "trimtab_agent_up_seconds 12.5",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }
}
