//! What watches the agent names metrics: the dashboard and the alert rules in `packaging/monitoring`,
//! and the reference. Each is compared with a page that has every metric there is.

use std::collections::{BTreeMap, BTreeSet};

use super::tests::full_page;

const ALERTS: &str = include_str!("alerts.yml");
const DASHBOARD: &str = include_str!("dashboard.json");
const REFERENCE: &str = include_str!("agent.md");

/// What Prometheus adds to every series.
const ADDED: [&str; 2] = ["instance", "job"];

/// The labels of each series of the page, by its name.
fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in full_page().lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split(',').filter_map(|pair| pair.split_once('='));
        let labels = labels.map(|(label, _)| label.to_owned());
        all.entry(name.to_owned()).or_default().extend(labels);
    }
    assert!(all.len() >= 30, "{all:?}");
    all
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The metrics that an expression names, each with the labels that it selects by.
fn named(expression: &str) -> Vec<(&str, Vec<&str>)> {
    let starts = expression.match_indices("trimtab_").map(|(at, _)| at);
    starts
        .map(|at| {
            let rest = &expression[at..];
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            let selected = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let pairs = selected.map_or("", |(pairs, _)| pairs).split(',');
            let labels =
                pairs.filter_map(|pair| pair.split_once('=')).map(|(label, _)| label.trim());
            (name, labels.collect())
        })
        .collect()
}

/// The labels by which an expression groups.
fn grouped(expression: &str) -> impl Iterator<Item = &str> {
    let groups = expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    groups.flat_map(|(labels, _)| labels.split(',')).map(str::trim)
}

/// What is wrong with an expression, given what is exported.
fn wrong(expression: &str, exported: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, selected) in named(expression) {
        let Some(labels) = exported.get(name) else {
            wrong.push(format!("the agent exports no {name}: {expression}"));
            continue;
        };
        let unknown = selected.into_iter().chain(grouped(expression));
        let unknown = unknown.filter(|l| !labels.contains(*l) && !ADDED.contains(l) && *l != "le");
        wrong.extend(unknown.map(|label| format!("{name} has no label {label}: {expression}")));
    }
    wrong
}

/// The expressions of the dashboard's panels.
fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn every_alert_names_what_the_agent_exports() {
    let exported = exported();
    let alerts: Vec<&str> = ALERTS.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 10, "{}", alerts.len());
    for alert in alerts {
        assert!(!named(alert).is_empty(), "{alert}");
        assert_eq!(wrong(alert, &exported), [""; 0]);
    }
}

#[test]
fn every_panel_shows_what_the_agent_exports() {
    let exported = exported();
    let expressions = expressions();
    assert!(expressions.len() >= 30, "{}", expressions.len());
    for expression in &expressions {
        assert!(!named(expression).is_empty(), "{expression}");
        assert_eq!(wrong(expression, &exported), [""; 0]);
    }
}

#[test]
fn the_reference_has_every_metric() {
    let documented: BTreeSet<&str> = REFERENCE.split(|c| !is_of_name(c)).collect();
    let missing: Vec<String> = exported()
        .into_keys()
        .filter(|name| {
            let whole = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_there = |name: &str| documented.contains(name);
            !is_there(name) && !whole.is_some_and(is_there)
        })
        .collect();
    assert!(missing.is_empty(), "docs/reference/agent.md lacks {missing:?}");
}

#[test]
fn an_expression_with_a_name_or_a_label_that_is_not_there_is_found() {
    let exported = exported();
    let unknown = wrong("rate(trimtab_connection_total[5m])", &exported);
    assert!(unknown[0].contains("exports no trimtab_connection_total"), "{unknown:?}");
    let unknown = wrong("sum by (rule) (trimtab_slots{arm=\"treated\"})", &exported);
    assert!(unknown[0].contains("trimtab_slots has no label arm"), "{unknown:?}");
    assert!(unknown[1].contains("trimtab_slots has no label rule"), "{unknown:?}");
}
