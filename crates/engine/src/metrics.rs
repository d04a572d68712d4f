//! What Prometheus reads: sums over everything, never a series for an aggregate or an edge.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};
use trimtab_fleet_client::Counts;

use crate::store::Shown;
use crate::traces::Spans;
use crate::who::Standing;

/// The type of what [`Metrics::page`] writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One label.
type Label = [(&'static str, String); 1];

/// From the last report that a decision goes by to the decision, without the grace.
const DELAY_BOUNDS_S: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// A read or a commit of the store.
const LATENCY_BOUNDS_S: [f64; 10] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];

/// A mean of rewards reaches back over about so many decisions.
const REWARDS_OF_MEAN: f64 = 500.0;

/// How long the store takes.
#[derive(Clone)]
pub(crate) struct Latency {
    read: Histogram,
    write: Histogram,
}

impl Latency {
    /// Times a question until it is dropped.
    pub(crate) fn read(&self) -> Timed {
        Timed(self.read.clone(), Instant::now())
    }

    /// The same for a transaction, with the wait for its turn.
    pub(crate) fn write(&self) -> Timed {
        Timed(self.write.clone(), Instant::now())
    }
}

/// What is timed until it is dropped.
pub(crate) struct Timed(Histogram, Instant);

impl Drop for Timed {
    fn drop(&mut self) {
        self.0.observe(self.1.elapsed().as_secs_f64());
    }
}

/// What is counted.
pub(crate) struct Metrics {
    registry: Registry,
    /// Batches, by what became of them.
    batches: Family<Label, Counter>,
    reports: Family<Label, Counter>,
    refused: Family<Label, Counter>,
    decisions: Family<Label, Counter>,
    changes: Family<Label, Counter>,
    delay: Histogram,
    studies: Family<Label, Counter>,
    store_errors: Counter,
    aggregates: Gauge,
    held: Gauge,
    waiting: Gauge,
    damaged: Gauge,
    safe: Gauge,
    behind: Gauge<f64, AtomicU64>,
    panics: Counter,
    tokens: Family<Label, Gauge>,
    connections_refused: Counter,
    /// By service, and by the alarm.
    fallbacks: Family<[(&'static str, String); 2], Counter>,
    guards_broken: Family<Label, Counter>,
    /// Means by service and who chose, and how many rewards there were.
    rewards: Family<[(&'static str, String); 2], Gauge<f64, AtomicU64>>,
    reward_counts: Family<[(&'static str, String); 2], Counter>,
    latency: Family<Label, Histogram, fn() -> Histogram>,
    edges: Family<Label, Gauge>,
    /// Attempts by webhook, and by what became of them.
    webhooks: Family<[(&'static str, String); 2], Counter>,
    webhook_behind: Family<Label, Gauge<f64, AtomicU64>>,
    report_age: Family<Label, Gauge<f64, AtomicU64>>,
    spans: Family<Label, Counter>,
}

/// Puts a new metric on the page.
fn counted<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Puts a metric of seconds on the page.
fn timed<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("trimtab_engine");
        let r = &mut registry;
        Self {
            batches: counted(r, "batches", "Batches of reports, by what became of them"),
            reports: counted(r, "reports", "Reports, by what became of them"),
            refused: counted(r, "refused", "Requests that were refused, by reason"),
            decisions: counted(r, "decisions", "Intervals of aggregates that were closed"),
            changes: counted(r, "changes", "Configurations that changed"),
            delay: timed(
                r,
                "decision_delay",
                "From when an interval may be closed, its grace over, to its being closed",
                Histogram::new(DELAY_BOUNDS_S),
            ),
            studies: counted(
                r,
                "study_steps",
                "Steps of experiments and rollouts, by what they did",
            ),
            store_errors: counted(
                r,
                "store_errors",
                "Times that the store did not do what it should",
            ),
            aggregates: counted(r, "aggregates", "Aggregates"),
            held: counted(r, "held_aggregates", "Aggregates that an operator paused or pinned"),
            waiting: counted(r, "waiting_reports", "Reports whose interval is not closed yet"),
            damaged: counted(
                r,
                "damaged_aggregates",
                "Aggregates that are set aside, since what is kept of them cannot be read",
            ),
            safe: counted(
                r,
                "safe_services",
                "Services that an order keeps on their safe configurations",
            ),
            behind: timed(
                r,
                "behind",
                "How long ago the oldest interval that is not closed might have been",
                Gauge::default(),
            ),
            panics: counted(
                r,
                "closer_panics",
                "Times that what closes intervals had to be started again",
            ),
            tokens: counted(
                r,
                "tokens",
                "Tokens that are not revoked: valid, expiring within 14 days, and expired",
            ),
            connections_refused: counted(
                r,
                "refused_connections",
                "Connections that were closed, since their address had all of its own",
            ),
            fallbacks: counted(
                r,
                "fallbacks",
                "Aggregates that fell back to the safe configuration, by the alarm that made them",
            ),
            guards_broken: counted(r, "guards_broken", "Guards that were broken in an interval"),
            rewards: counted(
                r,
                "reward",
                "Mean reward of about the last 500 intervals, by who chose what was in force",
            ),
            reward_counts: counted(r, "rewards", "Intervals with a reward, by who chose"),
            latency: timed(
                r,
                "store_latency",
                "How long the store takes to read and to write, with the wait for its turn",
                Family::new_with_constructor(|| Histogram::new(LATENCY_BOUNDS_S)),
            ),
            edges: counted(r, "edges", "Edges with a valid token that ever reported, by state"),
            webhooks: counted(
                r,
                "webhooks",
                "Attempts to send an event: delivered, failed, or given up",
            ),
            webhook_behind: timed(
                r,
                "webhook_behind",
                "How long ago the event happened that a webhook does not take",
                Family::default(),
            ),
            spans: counted(
                r,
                "spans",
                "Spans of traces: sent to the collector, or dropped since it does not take them",
            ),
            report_age: timed(
                r,
                "report_age",
                "Time since the last report of an edge: of the freshest, the median, the oldest",
                Family::default(),
            ),
            registry,
        }
    }

    /// What the store is timed with.
    pub(crate) fn latency(&self) -> Latency {
        let of = |what: &str| self.latency.get_or_create(&[("op", what.to_owned())]).clone();
        Latency { read: of("read"), write: of("write") }
    }

    /// What decisions about a service show of the learning.
    pub(crate) fn shown<'a>(&self, service: &str, all: impl Iterator<Item = &'a Shown>) {
        let labels =
            |name, value: &str| [("service", service.to_owned()), (name, value.to_owned())];
        for one in all {
            if let Some(alarm) = one.alarm {
                self.fallbacks.get_or_create(&labels("alarm", alarm)).inc();
            }
            let broken =
                self.guards_broken.get_or_create(&[("service", service.to_owned())]).clone();
            broken.inc_by(one.broken as u64);
            if let Some((by, reward)) = one.reward {
                let count = self.reward_counts.get_or_create(&labels("by", by)).clone();
                count.inc();
                let mean = self.rewards.get_or_create(&labels("by", by)).clone();
                let weight = (1.0 / count.get() as f64).max(1.0 / REWARDS_OF_MEAN);
                mean.set(mean.get() + weight * (reward - mean.get()));
            }
        }
    }

    /// What counts spans that are sent and dropped.
    pub(crate) fn spans(&self) -> Spans {
        let of =
            |outcome: &str| self.spans.get_or_create(&[("outcome", outcome.to_owned())]).clone();
        Spans::new(of("sent"), of("dropped"))
    }

    /// An attempt to send an event was `delivered`, `failed` or `given_up`.
    pub(crate) fn webhook(&self, name: &str, outcome: &str) {
        let labels = [("webhook", name.to_owned()), ("outcome", outcome.to_owned())];
        self.webhooks.get_or_create(&labels).inc();
    }

    /// How old the event is that a webhook does not take.
    pub(crate) fn webhook_behind(&self, name: &str, age_ms: i64) {
        let behind = self.webhook_behind.get_or_create(&[("webhook", name.to_owned())]).clone();
        behind.set(age_ms as f64 / 1000.0);
    }

    /// How long ago edges reported last, in ms, and after how long one is silent.
    pub(crate) fn edges(&self, mut ages_ms: Vec<i64>, silent_ms: i64) {
        ages_ms.sort_unstable();
        let fresh = ages_ms.partition_point(|age| *age <= silent_ms);
        for (state, count) in [("fresh", fresh), ("silent", ages_ms.len() - fresh)] {
            self.edges.get_or_create(&[("state", state.to_owned())]).set(count as i64);
        }
        let last = ages_ms.len().saturating_sub(1);
        for (of, index) in [("freshest", 0), ("median", last / 2), ("oldest", last)] {
            let age_s = ages_ms.get(index).map_or(0.0, |age| (*age).max(0) as f64 / 1000.0);
            self.report_age.get_or_create(&[("of", of.to_owned())]).set(age_s);
        }
    }

    pub(crate) fn batch(&self, outcome: &'static str, (kept, late): (usize, u32), repeated: u32) {
        self.batches.get_or_create(&[("outcome", outcome.to_owned())]).inc();
        self.reports.get_or_create(&[("outcome", "kept".to_owned())]).inc_by(kept as u64);
        for (outcome, count) in [("late", late), ("repeated", repeated)] {
            self.reports.get_or_create(&[("outcome", outcome.to_owned())]).inc_by(u64::from(count));
        }
    }

    /// Reports of batches that were kept, which are not.
    pub(crate) fn reports_refused(&self, count: usize) {
        self.reports.get_or_create(&[("outcome", "refused".to_owned())]).inc_by(count as u64);
    }

    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// Intervals were closed, so late after the first moment at which they might have been.
    pub(crate) fn closed(&self, service: &str, closed: usize, changed: usize, delay_s: f64) {
        self.decisions.get_or_create(&[("service", service.to_owned())]).inc_by(closed as u64);
        self.changes.get_or_create(&[("service", service.to_owned())]).inc_by(changed as u64);
        self.delay.observe(delay_s);
    }

    /// An experiment or a rollout began, went on, or ended.
    pub(crate) fn study(&self, step: &str) {
        self.studies.get_or_create(&[("step", step.to_owned())]).inc();
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    pub(crate) fn store_error(&self) {
        self.store_errors.inc();
    }

    pub(crate) fn closer_panicked(&self) {
        self.panics.inc();
    }

    /// How many tokens there are.
    pub(crate) fn tokens(&self, Standing { valid, expiring, expired }: Standing) {
        let lasting = valid - expiring;
        for (state, count) in [("valid", lasting), ("expiring", expiring), ("expired", expired)] {
            self.tokens.get_or_create(&[("state", state.to_owned())]).set(count as i64);
        }
    }

    /// The page, with aggregates that are set aside, services that are kept safe, and how far behind
    /// closing is, in seconds.
    pub(crate) fn page(
        &self,
        counts: &Counts,
        (damaged, safe): (usize, usize),
        behind_s: f64,
    ) -> String {
        self.damaged.set(damaged as i64);
        self.safe.set(safe as i64);
        self.behind.set(behind_s);
        self.aggregates.set(counts.aggregates);
        self.held.set(counts.paused + counts.pinned);
        self.waiting.set(counts.waiting_reports);
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("writing to a text does not fail");
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with every metric there is.
    fn full_page() -> String {
        let metrics = Metrics::new();
        for reason in ["token", "certificate", "expired", "role", "service", "replayed", "clock"] {
            metrics.refused(reason);
        }
        let shown = |by| Shown { alarm: Some("guard"), broken: 2, reward: Some((by, -1.0)) };
        metrics.shown("tv", [shown("learnt"), shown("safe")].iter());
        metrics.edges(vec![1000], 60_000);
        drop((metrics.latency().read(), metrics.latency().write(), metrics.spans()));
        metrics.webhook("chat", "given_up");
        metrics.webhook_behind("chat", 1000);
        metrics.batch("kept", (3, 1), 2);
        metrics.reports_refused(1);
        metrics.closed("tv", 5, 4, 0.2);
        metrics.study("rollout rolled back");
        metrics.tokens(Standing { valid: 9, expiring: 2, expired: 1 });
        metrics.page(&Counts::default(), (1, 2), 2.5)
    }

    /// The names in a text that begin as ours do, and the values of labels that it selects by.
    fn named(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
        text.match_indices("trimtab_engine_").map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let selected = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let pairs = selected.map_or("", |(pairs, _)| pairs).split(", ");
            let own = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("instance="));
            (name, own.collect())
        })
    }

    #[test]
    fn alerts_and_panels_name_what_the_engine_exports() {
        let page = full_page();
        let expressions =
            |text: &'static str| text.lines().filter(|line| !line.trim().starts_with('#'));
        let alerts = expressions(include_str!("engine-alerts.yml"));
        let panels: serde_json::Value =
            serde_json::from_str(include_str!("engine-dashboard.json")).expect("JSON");
        let panels = panels["panels"].as_array().expect("panels");
        let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
        let shown = targets.map(|target| target["expr"].as_str().expect("an expression"));
        let mut count = 0;
        for (name, selected) in alerts.chain(shown).flat_map(named) {
            count += 1;
            let mut series = page.lines().filter(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            let is_there = |line: &str| {
                selected.iter().all(|pair| match pair.split_once("=~") {
                    // Of these any.
                    Some((label, values)) => values
                        .trim_matches('"')
                        .split('|')
                        .all(|value| page.contains(&format!("{name}{{{label}=\"{value}\"}}"))),
                    None => line.contains(pair),
                })
            };
            assert!(series.any(is_there), "the engine exports no {name} {selected:?}");
        }
        assert!(count >= 25, "{count}");
    }

    #[test]
    fn what_is_counted_is_on_the_page() {
        let metrics = Metrics::new();
        metrics.batch("kept", (3, 1), 2);
        metrics.refused("token");
        metrics.refused("token");
        metrics.closed("tv", 5, 4, 0.2);
        metrics.store_error();
        metrics.connection_refused();
        metrics.study("rollout rolled back");
        metrics.tokens(Standing { valid: 9, expiring: 2, expired: 1 });
        let one = |by, reward| Shown { alarm: Some("debt"), broken: 2, reward: Some((by, reward)) };
        metrics.shown("tv", [one("learnt", 1.0), one("learnt", 3.0), one("safe", -1.0)].iter());
        metrics.shown("tv", [Shown { alarm: None, broken: 0, reward: None }].iter());
        metrics.edges(vec![500, 90_000, 2000], 60_000);
        drop(metrics.latency().write());
        let counts = Counts { aggregates: 7, paused: 1, pinned: 2, ..Counts::default() };
        let page = metrics.page(&counts, (1, 2), 2.5);
        for line in [
            "trimtab_engine_batches_total{outcome=\"kept\"} 1",
            "trimtab_engine_reports_total{outcome=\"kept\"} 3",
            "trimtab_engine_reports_total{outcome=\"late\"} 1",
            "trimtab_engine_reports_total{outcome=\"repeated\"} 2",
            "trimtab_engine_refused_total{reason=\"token\"} 2",
            "trimtab_engine_decisions_total{service=\"tv\"} 5",
            "trimtab_engine_changes_total{service=\"tv\"} 4",
            "trimtab_engine_decision_delay_seconds_bucket{le=\"0.25\"} 1",
            "trimtab_engine_study_steps_total{step=\"rollout rolled back\"} 1",
            "trimtab_engine_store_errors_total 1",
            "trimtab_engine_refused_connections_total 1",
            "trimtab_engine_fallbacks_total{service=\"tv\",alarm=\"debt\"} 3",
            "trimtab_engine_guards_broken_total{service=\"tv\"} 6",
            "trimtab_engine_reward{service=\"tv\",by=\"learnt\"} 2.0",
            "trimtab_engine_reward{service=\"tv\",by=\"safe\"} -1.0",
            "trimtab_engine_rewards_total{service=\"tv\",by=\"learnt\"} 2",
            "trimtab_engine_store_latency_seconds_count{op=\"write\"} 1",
            "trimtab_engine_edges{state=\"fresh\"} 2",
            "trimtab_engine_edges{state=\"silent\"} 1",
            "trimtab_engine_report_age_seconds{of=\"median\"} 2.0",
            "trimtab_engine_report_age_seconds{of=\"oldest\"} 90.0",
            "trimtab_engine_aggregates 7",
            "trimtab_engine_held_aggregates 3",
            "trimtab_engine_damaged_aggregates 1",
            "trimtab_engine_safe_services 2",
            "trimtab_engine_behind_seconds 2.5",
            "trimtab_engine_tokens{state=\"valid\"} 7",
            "trimtab_engine_tokens{state=\"expiring\"} 2",
            "trimtab_engine_tokens{state=\"expired\"} 1",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }
}
