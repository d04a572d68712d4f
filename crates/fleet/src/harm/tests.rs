use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::{Aggregate, Decision, Interval, Service, Sketch};

const NIGHT: Context = Context(0);
const DAY: Context = Context(1);

fn seen(rtt: f64, loss: f64) -> Summary {
    let mut summary = Summary::new(2);
    summary.set("rtt", Sketch::of([rtt, rtt])).unwrap();
    summary.set("loss", Sketch::of([loss, loss])).unwrap();
    summary
}

/// By hand: 1 - exp(-(0.5 ln 1.44 + 1.5 · 0.1)) = 1 - exp(-0.15) / 1.2.
#[test]
fn a_longer_queue_and_more_loss_are_harm() {
    let mut reference = Reference::default();
    assert_eq!(reference.take(NIGHT, false, &seen(0.1, 0.0)), None, "nothing to compare with");
    assert_eq!(reference.take(NIGHT, true, &seen(0.1, 0.02)), None);
    let harm = reference.take(NIGHT, false, &seen(0.144, 0.12)).unwrap();
    assert!((harm - (1.0 - (-0.15_f64).exp() / 1.2)).abs() < 0.01, "{harm}");
    let gain = reference.take(NIGHT, false, &seen(0.05, 0.0)).unwrap();
    assert!(gain < -0.4, "an empty queue leaves others more: {gain}");
    assert_eq!(reference.take(DAY, false, &seen(0.1, 0.02)), None, "another context");
}

#[test]
fn what_is_usual_follows_the_safe_configuration() {
    let mut reference = Reference::default();
    (0..40).for_each(|_| assert_eq!(reference.take(NIGHT, true, &seen(0.1, 0.01)), None));
    (0..40).for_each(|_| assert_eq!(reference.take(NIGHT, true, &seen(0.2, 0.05)), None));
    let harm = reference.take(NIGHT, false, &seen(0.2, 0.05)).unwrap();
    assert!(harm.abs() < 0.02, "{harm}");
}

#[test]
fn without_round_trip_times_or_losses_harm_is_not_known() {
    let mut reference = Reference::default();
    let mut only_rtt = Summary::new(1);
    only_rtt.set("rtt", Sketch::of([0.1])).unwrap();
    assert_eq!(reference.take(NIGHT, true, &only_rtt), None);
    assert!(reference.is_new());
    reference.take(NIGHT, true, &seen(0.1, 0.0));
    assert_eq!(reference.take(NIGHT, false, &only_rtt), None);
}

/// CUBIC is installed. BBR gets twice as much, with a longer queue and a tenth of loss: by the
/// formula others lose 1 - exp(-(0.5 ln 1.3 + 1.5 · 0.1)) = 24.5%. Copa gets a fifth more with a
/// shorter queue.
fn service(seed: u64, more: &str) -> Service {
    let text = format!(
        r#"
        name = "tv"
        reward = "mean(throughput)"
        incumbent = "cubic"
        others = ["bbr", "copa"]
        {more}
        [contexts]
        bands = [0]
        weekend = false
        [knobs]
        gamma = {{ min = 10, max = 5000, scale = "log" }}
        "#
    );
    Service::parse(&text).unwrap().with_seed(seed)
}

/// So many decisions, each of 20 connections that differ by chance.
fn run(service: &Service, intervals: u64) -> Vec<Decision> {
    let mut aggregate = Aggregate::new("tv/203.0.113.0/24".parse().unwrap());
    let mut random = Pcg64Mcg::seed_from_u64(service.seed());
    let one = |n| {
        let configuration = aggregate.open(service, Interval(n));
        let (mbps, rtt, loss) = match configuration.algorithm.as_str() {
            "bbr" => (8.0, 0.13, 0.12),
            "copa" => (4.8, 0.09, 0.02),
            "cubic" => (4.0, 0.1, 0.02),
            _ => (3.0, 0.1, 0.03),
        };
        let mut summary = Summary::new(20);
        for (name, value) in [("throughput", mbps), ("rtt", rtt), ("loss", loss)] {
            let values: Vec<f64> =
                (0..20).map(|_| value * 1.5 * (0.33 + 0.67 * random.random::<f64>())).collect();
            summary.set(name, Sketch::of(values)).unwrap();
        }
        aggregate.close(service, Interval(n), &summary).unwrap()
    };
    (0..intervals).map(one).collect()
}

fn tried<'a>(decisions: &'a [Decision], algorithm: &str) -> Vec<&'a Decision> {
    let is_of = |d: &&Decision| d.algorithms.as_ref().unwrap().tried == algorithm;
    decisions.iter().filter(is_of).collect()
}

/// 20 seeds of two days: with the bound, BBR is tried and given up, and Copa is found; without it
/// BBR is in force.
#[test]
fn what_takes_from_others_is_given_up_by_default() {
    let (mut bbr, mut copa, mut selfish) = (0, 0, 0);
    for seed in 1..=20 {
        let decisions = run(&service(seed, ""), 144);
        bbr += tried(&decisions, "bbr").len();
        copa += tried(&decisions[72..], "copa").len();
        selfish += tried(&run(&service(seed, "harm_max = 1"), 144)[72..], "bbr").len();
    }
    println!(
        "of 20 runs of 144 intervals: bbr in {bbr} of 2880, copa in {copa} of the last 1440; \
         without a bound bbr in {selfish} of the last 1440"
    );
    assert!(bbr > 0 && bbr < 2880 / 20, "{bbr}");
    assert!(copa > 1440 * 7 / 10, "{copa}");
    assert!(selfish > 1440 * 8 / 10, "{selfish}");
}

#[test]
fn a_decision_shows_the_harm_and_what_becomes_of_it() {
    let decisions = run(&service(3, ""), 72);
    let bbr = tried(&decisions, "bbr");
    let harm = bbr[0].harm.unwrap();
    assert!((harm.interval - 0.245).abs() < 0.1 && harm.most == 0.1, "{harm:?}");
    let last = bbr.last().unwrap();
    let expected = format!("It takes about {:.0}% from", 100.0 * last.harm.unwrap().expected);
    assert!(last.to_string().contains(&expected), "{last}");
    assert!(last.to_string().contains("and 10% are permitted"), "{last}");
    assert!(tried(&decisions, "cubic").iter().all(|d| d.harm.is_none()));
    let copa = tried(&decisions, "copa");
    assert!(copa.iter().all(|d| !d.to_string().contains("permitted")), "{}", copa[0]);
}

#[test]
fn a_bound_that_is_none_is_named() {
    let said = |more: &str| {
        let text = format!("name = \"a\"\nreward = \"mean(rtt)\"\n{more}\n[knobs]\ngamma = {{}}");
        Service::parse(&text).map(|s| s.harm_max()).map_err(|e| e.to_string())
    };
    assert_eq!((said(""), said("harm_max = 0.3")), (Ok(0.1), Ok(0.3)));
    for wrong in ["-0.1", "1.5", "nan"] {
        let message = said(&format!("harm_max = {wrong}")).unwrap_err();
        assert!(message.contains("the share of the throughput that flows of others"), "{message}");
    }
    let paper = "learning = { preset = \"paper\" }";
    assert_eq!(said(paper), Ok(1.0), "gradients know of no bound");
    assert!(said(&format!("harm_max = 0.2\n{paper}")).unwrap_err().contains("needs a model"));
}
