//! Reports of edges: any bytes are a report that can be merged and learnt from, or an error.

use trimtab_fleet::{Aggregate, Report, Service};

pub(crate) fn target(bytes: &[u8]) {
    let Ok(report) = Report::decode(bytes) else { return };
    let again = report.encode().expect("what was decoded is small enough");
    assert_eq!(Report::decode(&again).as_ref(), Ok(&report));
    let mut merged = report.summary.clone();
    merged.merge(&report.summary);
    let text = "name = \"fuzz\"\nreward = \"mean(throughput) - p75(rtt)\"\n[knobs]\ngamma = {}\n";
    let service = Service::parse(text).expect("a good service");
    let mut aggregate = Aggregate::new(report.key.clone());
    aggregate.open(&service, report.interval);
    let decision = aggregate.close(&service, report.interval, &merged).expect("it is open");
    assert!(decision.reward.is_none_or(f64::is_finite));
}
