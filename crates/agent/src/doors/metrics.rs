//! What Prometheus reads: sums by rule and arm, never a series per connection, so that their number is the
//! configuration's and not the clients'.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use trimtab_kernel::ProgramTime;

use crate::arms::compare::Compared;
use crate::config::Mode;
use crate::core::tally::RTT_BOUNDS_S;
use crate::doors::view::{RuleStatus, Status};
use crate::operate::{Held, HoldStatus, Target};

/// The type of what [`text`] writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A number of a rule and arm: its name, its help, whether it only grows, and where it is.
type RuleSeries = (&'static str, &'static str, MetricType, fn(&RuleStatus) -> f64);

/// Counters get `_total` at the end when they are written.
const BY_RULE: [RuleSeries; 16] = [
    ("open_connections", "Connections that are open", MetricType::Gauge, |r| r.open as f64),
    ("active_connections", "Open connections that send or receive", MetricType::Gauge, |r| {
        r.active as f64
    }),
    (
        "closing_connections",
        "Connections that this side has closed, with nothing left to send, whose sockets are there",
        MetricType::Gauge,
        |r| r.closing as f64,
    ),
    ("connections", "Connections that came", MetricType::Counter, |r| r.tally.opened as f64),
    (
        "decisions",
        "Decisions to turn a knob or switch the algorithm, carried out or only advised",
        MetricType::Counter,
        |r| r.tally.decisions as f64,
    ),
    ("fallbacks", "Connections that went back to the fallback", MetricType::Counter, |r| {
        r.tally.fallbacks as f64
    }),
    (
        "yielded",
        "Connections whose knobs somebody else turned, and that were left alone",
        MetricType::Counter,
        |r| r.tally.yielded as f64,
    ),
    (
        "unanswered_selections",
        "Selections for which a learnt policy declined, so that the fallback was chosen",
        MetricType::Counter,
        |r| r.tally.unanswered as f64,
    ),
    (
        "alarms",
        "Connections in which the guard of a learnt policy let the fallback take over",
        MetricType::Counter,
        |r| r.tally.alarms as f64,
    ),
    (
        "refused_switches",
        "Switches to another algorithm that the kernel refused",
        MetricType::Counter,
        |r| r.tally.refused_switches as f64,
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
struct Snapshot {
    status: Status,
    /// What the eBPF programs took, where the kernel counts it.
    programs: Option<ProgramTime>,
}

impl Snapshot {
    fn by_rule(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, kind, value): RuleSeries,
    ) -> fmt::Result {
        let name = format!("trimtab_{name}");
        let mut family = encoder.encode_descriptor(&name, help, None, kind)?;
        for rule in &self.status.rules {
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
        for rule in &self.status.rules {
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
        let status = &self.status;
        let applies = f64::from(u8::from(status.mode == Mode::Apply));
        for (name, help, value) in [
            ("trimtab_agent_applies", "Whether decisions are carried out", applies),
            (
                "trimtab_agent_adopted_connections",
                "Connections that were open when the agent started",
                status.adopted as f64,
            ),
            ("trimtab_agent_cpu_share", "Share of a core that decisions take", status.cpu),
            (
                "trimtab_agent_interval_stretch",
                "Length of the agent's intervals, in round trips",
                status.stretch,
            ),
            (
                "trimtab_agent_troubles",
                "Problems and exceptions; `trimtab agent status` lists them",
                status.troubles.len() as f64,
            ),
            (
                "trimtab_agent_orders",
                "Orders of operators in force, and breakers that have tripped",
                status.orders.len() as f64,
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
    fn build(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Always 1, with the agent's version";
        let name = "trimtab_agent_build_info";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let labels = [("version", self.status.version.as_str())];
        family.encode_family(&labels)?.encode_gauge(&1_i64)
    }

    /// Of the kernel's side and of the edge: each a number, which only grows where it is a counter.
    fn counts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (gauge, counter) = (MetricType::Gauge, MetricType::Counter);
        let of = &self.status.datapath;
        let mut all = vec![
            ("slots", "Connections that can be steered at once", gauge, f64::from(of.slots)),
            ("taken_slots", "Slots in use", gauge, of.taken as f64),
            (
                "cgroup_slots",
                "Slots that the connections of one cgroup may hold",
                gauge,
                f64::from(of.cgroup_slots),
            ),
            (
                "slotless_connections",
                "Connections that found no slot when they were to have one, since the datapath was loaded",
                counter,
                of.slotless as f64,
            ),
            (
                "over_quota_connections",
                "Connections that got no slot since their cgroup held its share, since the datapath was loaded",
                counter,
                of.over_quota as f64,
            ),
            (
                "brief_connections",
                "Connections that ended before they had sent enough for a slot, since the datapath was loaded",
                counter,
                of.brief as f64,
            ),
            (
                "lost_events",
                "Events of the kernel that found no room since the datapath was loaded",
                counter,
                of.lost_events as f64,
            ),
            (
                "reaped_connections",
                "Connections that ended without a close event from the kernel",
                counter,
                of.reaped as f64,
            ),
        ];
        if let Some(edge) = &self.status.edge {
            let kept = "Reports that the engine has stored";
            let late = "Reports that reached the engine after their interval was closed";
            let waiting = "Reports that wait to be sent to the engine";
            all.extend([
                (
                    "edge_aggregates",
                    "Aggregates with a configuration",
                    gauge,
                    edge.aggregates as f64,
                ),
                ("edge_kept_reports", kept, counter, edge.kept as f64),
                ("edge_late_reports", late, counter, edge.late as f64),
                ("edge_dropped_reports", "Reports that were dropped", counter, edge.dropped as f64),
                ("edge_waiting_reports", waiting, gauge, edge.waiting as f64),
            ]);
        }
        if let Some(programs) = &self.programs {
            let (runs, time) = (programs.runs as f64, programs.time.as_secs_f64());
            all.extend([
                ("program_runs", "Runs of Trimtab's eBPF programs that are loaded", counter, runs),
                ("program_seconds", "Time that these took", counter, time),
            ]);
        }
        for (name, help, kind, value) in all {
            let name = format!("trimtab_{name}");
            let mut one = encoder.encode_descriptor(&name, help, None, kind)?;
            match kind {
                MetricType::Counter => one.encode_counter::<NoLabelSet, f64, f64>(&value, None)?,
                _ => one.encode_gauge(&value)?,
            }
        }
        Ok(())
    }

    /// What steering brings: by rule, control and metric, never by connection.
    fn comparisons(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Value = fn(&Compared) -> Option<f64>;
        let all: [(&str, &str, Value); 5] = [
            ("compare_steered", "Mean of a metric when steered", |of| Some(of.steered)),
            ("compare_control", "Mean of a metric in the control arm", |of| Some(of.control)),
            ("compare_change_ratio", "Steered less control, as a share of the control", |of| {
                Some(of.change?.value)
            }),
            ("compare_change_low_ratio", "The lower end of its interval of confidence", |of| {
                Some(of.change?.low)
            }),
            ("compare_change_high_ratio", "The upper end of its interval of confidence", |of| {
                Some(of.change?.high)
            }),
        ];
        for (name, help, value) in all {
            let name = format!("trimtab_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for of in &self.status.comparisons {
                for metric in &of.metrics {
                    let Some(value) = value(metric) else { continue };
                    let labels = [
                        ("rule", of.rule.as_str()),
                        ("control", of.control.name()),
                        ("metric", metric.metric.as_str()),
                    ];
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }

    /// Rules that did harm, and how far a rollout is.
    fn breakers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = ("trimtab_breaker_tripped", "Whether the breaker of a rule has tripped");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for rule in self.status.trips.keys() {
            let is = |order: &&HoldStatus| {
                order.held == Held::Tripped && order.target == Target::Rule(rule.clone())
            };
            let tripped = u8::from(self.status.orders.iter().any(|order| is(&order)));
            let labels = [("rule", rule.as_str())];
            family.encode_family(&labels)?.encode_gauge(&f64::from(tripped))?;
        }
        let (name, help) = ("trimtab_breaker_trips", "Times that the breaker of a rule tripped");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (rule, trips) in &self.status.trips {
            let labels = [("rule", rule.as_str())];
            let trips = *trips as f64;
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, f64, f64>(&trips, None)?;
        }
        let help = "Share of the networks to which the rules apply; 1 without a rollout";
        let mut share =
            encoder.encode_descriptor("trimtab_rollout_share", help, None, MetricType::Gauge)?;
        share.encode_gauge(&self.status.rollout.map_or(1.0, |rollout| rollout.share))
    }

    fn assigned(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Sockets to which a rule with assign applies, by state";
        let kind = MetricType::Gauge;
        let mut family = encoder.encode_descriptor("trimtab_assigned_sockets", help, None, kind)?;
        for assigned in &self.status.assigned {
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
        self.build(&mut encoder)?;
        self.agent(&mut encoder)?;
        self.counts(&mut encoder)?;
        for series in BY_RULE {
            self.by_rule(&mut encoder, series)?;
        }
        self.round_trips(&mut encoder)?;
        self.comparisons(&mut encoder)?;
        self.breakers(&mut encoder)?;
        self.assigned(&mut encoder)
    }
}

/// The page.
pub(crate) fn page(status: Status, programs: Option<ProgramTime>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot { status, programs }));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("writing to a text does not fail");
    page
}

#[cfg(test)]
mod watched;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::compare::Comparison;
    use crate::core::tally::Tally;
    use crate::doors::view::{DatapathStatus, EdgeStatus};
    use crate::kernel::assign::Assigned;
    use trimtab_fleet::experiment::Effect;
    use trimtab_steer::safety::Arm;

    fn status(rules: Vec<RuleStatus>) -> Status {
        Status {
            schema: String::new(),
            version: "0.1.0".to_owned(),
            pid: 1,
            config: String::new(),
            mode: Mode::Apply,
            algorithm: String::new(),
            programs: crate::doors::view::Programs::default(),
            up_s: 12.5,
            open: 3,
            active: 1,
            closing: 2,
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
            orders: vec![HoldStatus {
                held: Held::Tripped,
                target: Target::Rule("web".to_owned()),
                for_s: 3.0,
                left_s: None,
                by: "the breaker".to_owned(),
            }],
            comparisons: vec![Comparison {
                rule: "web".to_owned(),
                control: Arm::Former,
                over: true,
                networks: 12,
                metrics: vec![Compared {
                    metric: "score".to_owned(),
                    steered: 2.2,
                    control: 2.0,
                    change: Some(Effect { value: 0.1, low: 0.05, high: 0.15 }),
                    difference: None,
                    pairs: 24,
                }],
            }],
            rollout: None,
            trips: [("web".to_owned(), 2), ("other".to_owned(), 1)].into(),
            datapath: DatapathStatus {
                slots: 64,
                taken: 3,
                cgroup_slots: 32,
                slotless: 2,
                over_quota: 6,
                brief: 9,
                lost_events: 1,
                reaped: 4,
            },
            edge: Some(EdgeStatus { kept: 7, late: 1, ..EdgeStatus::default() }),
        }
    }

    /// A page with every metric there is.
    pub(super) fn full_page() -> String {
        let (rule, arm) = ("web".to_owned(), Arm::Treated);
        let tally = Tally::default();
        let rule = RuleStatus { rule, arm, open: 0, active: 0, closing: 0, tally };
        page(status(vec![rule]), Some(ProgramTime::default()))
    }

    #[test]
    fn a_page_has_sums_by_rule_and_arm_and_nothing_of_a_connection() {
        let mut tally =
            Tally { opened: 3, windows: 3, rtt_sum_s: 3.03, alarms: 6, ..Tally::default() };
        (tally.rtt_counts[2], tally.rtt_counts[9]) = (2, 1);
        tally.score_sum = -1.5;
        let (rule, arm) = ("web".to_owned(), Arm::Treated);
        let rule = RuleStatus { rule, arm, open: 3, active: 1, closing: 2, tally };
        let programs = ProgramTime { runs: 5, time: trimtab_units::Duration::from_millis(2) };
        let page = page(status(vec![rule]), Some(programs));
        for line in [
            "# TYPE trimtab_open_connections gauge",
            "trimtab_open_connections{rule=\"web\",arm=\"treated\"} 3.0",
            "trimtab_closing_connections{rule=\"web\",arm=\"treated\"} 2.0",
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
            "trimtab_agent_build_info{version=\"0.1.0\"} 1",
            "trimtab_alarms_total{rule=\"web\",arm=\"treated\"} 6.0",
            "trimtab_refused_switches_total{rule=\"web\",arm=\"treated\"} 0.0",
            "trimtab_slots 64.0",
            "trimtab_taken_slots 3.0",
            "trimtab_cgroup_slots 32.0",
            "trimtab_slotless_connections_total 2.0",
            "trimtab_over_quota_connections_total 6.0",
            "trimtab_brief_connections_total 9.0",
            "trimtab_lost_events_total 1.0",
            "trimtab_reaped_connections_total 4.0",
            "trimtab_edge_kept_reports_total 7.0",
            "trimtab_edge_late_reports_total 1.0",
            "trimtab_edge_waiting_reports 0.0",
            "trimtab_program_runs_total 5.0",
            "trimtab_program_seconds_total 0.002",
            "trimtab_agent_up_seconds 12.5",
            "trimtab_agent_orders 1.0",
            "trimtab_compare_steered{rule=\"web\",control=\"former\",metric=\"score\"} 2.2",
            "trimtab_compare_change_low_ratio{rule=\"web\",control=\"former\",metric=\"score\"} 0.05",
            "trimtab_breaker_tripped{rule=\"web\"} 1.0",
            "trimtab_breaker_tripped{rule=\"other\"} 0.0",
            "trimtab_breaker_trips_total{rule=\"web\"} 2.0",
            "trimtab_rollout_share 1.0",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }
}
