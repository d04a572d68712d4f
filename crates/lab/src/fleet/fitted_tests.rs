//! A surrogate that is fitted to the log of a simulated fleet.

use std::path::Path;

use rayon::prelude::*;
use trimtab_fleet::{Aggregate, Decision, SurrogateFit, SurrogateFitError};

use super::connection::Sample;
use super::group::{Fleet, Group};
use super::*;

/// The television of the paper for a day of eight aggregates, with a surrogate, and with statistics
/// for the log.
fn television(surrogate: &str) -> FleetScenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fleet/tv.toml");
    let text = std::fs::read_to_string(file).expect("the scenario");
    let kept = "\"mean(throughput)\", \"p25(throughput)\", \"p50(throughput)\", \"mean(rtt)\", \
                \"p50(rtt)\", \"mean(loss)\", \"mean(request_time)\", \"p75(request_time)\"";
    let changed = [
        ("surrogate = \"mean(throughput)\"", format!("surrogate = \"{surrogate}\"")),
        ("statistics = [\"bitrate\"]", format!("statistics = [\"bitrate\", {kept}]")),
        ("aggregates = 12", "aggregates = 8".to_owned()),
    ];
    let text = changed.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    FleetScenario::parse(&text).expect("a scenario")
}

/// The decisions of a fleet that learns.
fn log(scenario: &FleetScenario, seed: u64) -> Vec<Decision> {
    let (fleet, service) = (Fleet::new(scenario, seed), &scenario.services[0]);
    let of = |group: &Group<'_>| {
        let field = group.fields[0];
        let mut aggregate = Aggregate::new(field.key());
        let decide = |n| {
            let spec = aggregate.open(service, field.interval(n)).spec().expect("one of its own");
            let seen = group.seen(n, &[Some(spec)], Sample::Run);
            aggregate.close(service, field.interval(n), &seen[0].summary).expect("it is open")
        };
        (0..scenario.intervals()).map(decide).collect::<Vec<_>>()
    };
    let groups = Group::all(&fleet, service);
    groups.par_iter().flat_map(of).collect()
}

/// The surrogate that the scenario has by hand is found where the service has a poor one, and kept
/// where it has that one.
#[test]
fn the_log_of_a_fleet_leads_to_the_surrogate_by_hand() {
    let by_hand = television("mean(throughput)");
    let log = log(&by_hand, 1);
    let fit = |scenario: &FleetScenario| SurrogateFit::of(&scenario.services[0], &log);
    let kept = fit(&by_hand).unwrap_err();
    println!("{kept}");
    let SurrogateFitError::NoBetter { of_present, .. } = kept else { panic!("{kept}") };
    let found = fit(&television("0 - mean(loss)")).unwrap();
    println!("{}: {:?}, gain {:?}", found.surrogate, found.fitted, found.gain);
    let [term] = &found.terms[..] else { panic!("{found:?}") };
    assert_eq!((term.statistic.as_str(), term.chosen), ("mean(throughput)", found.fits));
    assert!(found.gain.low > 0.0 && found.stands_in && of_present.r_squared > 0.7, "{found:?}");
    assert_eq!((found.intervals, found.held_out), (576, 192));
}
