//! Three arms, rollouts, and rules that do harm.

use std::collections::BTreeSet;

use trimtab_fleet_client::edge::{Configuration, InForce};

use super::learnt::WithPolicy;
use super::*;
use crate::core::Before;
use crate::operate::{Order, Verb};

const STEP: Duration = Duration::from_millis(125);

/// A host whose own algorithm is BBR, with so many connections, four to a network.
fn host(fake: &Fake, connections: u32) -> Vec<Rc<RefCell<Pipe>>> {
    let remote = |i: u32| format!("10.{}.{}.{}:5000", i / 4 / 256, i / 4 % 256, i % 4 + 1);
    (0..connections).map(|i| fake.open("10.200.0.1:443", &remote(i)).0).collect()
}

fn begin(fake: &Fake, config: Config, edge: Option<Arc<Edge>>) -> Core<Fake> {
    let before = Before { system: Some(named("bbr")), ..Before::default() };
    Core::begin(fake.clone(), config, edge, before, Time::ZERO)
}

fn resume(core: &mut Core<Fake>, now: Time) {
    let order = Order { verb: Verb::Resume, target: "rule:web".parse().unwrap(), lasts: None };
    core.operate(&order, "root", now).unwrap();
}

/// Lets a thousand connections suffer from what a rule does: the time until it lets go of them.
fn until_tripped(core: &mut Core<Fake>, fake: &Fake) -> (f64, String) {
    let mut now = Time::ZERO;
    while now < Time::from_secs(60) {
        now = pass_by(core, fake, now, 1.0, STEP);
        if let Some(alert) = told(core.take_alerts()).pop() {
            return (now.as_secs_f64(), alert);
        }
    }
    panic!("it never trips: {:?}", core.take_notes());
}

/// δ forced low, a policy that prefers what loses, and a knob of the engine of a fleet.
#[test]
fn a_rule_that_does_harm_to_a_thousand_connections_is_stopped_within_30_s() {
    let rule = "[[rule]]\nname = \"web\"\nport = 443\n";
    let compare = "[compare]\nshare = \"20%\"\n";
    let candidates: &[(&str, f32, &[f32])] = &[("cubic", 2.0, &[0.0]), ("copa", 1.0, &[0.0])];
    let file =
        model::Policy { features: &["rtt_min"], candidates, range: (0.0, 1.0), period_ms: 12_000 };
    let with = WithPolicy::new(Some(&file.file()));
    let mut policy = with.config("copa");
    policy.compare = config(compare).compare;
    let fleet = "[fleet]\nengine = \"http://127.0.0.1:1\"\ntoken_file = \"nowhere\"\n";
    let edge = Arc::new(Edge::alone());
    for network in 0..250 {
        let knobs = vec![("delta".to_owned(), 0.01)];
        let (version, algorithm) = (1, "copa".to_owned());
        let configuration = Configuration { version, algorithm, knobs, control: None };
        let force = InForce { configuration, interval: Duration::from_secs(86_400) };
        edge.learn(format!("tv/10.0.{network}.0/24").parse().unwrap(), force);
    }
    let low = |compare: &str| config(&format!("{compare}{rule}knobs = {{ delta = 0.04 }}\n"));
    let cases = [
        ("delta", low(compare), None, "in the former arm"),
        ("policy", policy, None, "in the former arm"),
        (
            "fleet",
            config(&format!(
                "{compare}{fleet}{rule}steer = \"fleet\"\nservice = \"tv\"\nalgorithm = \"copa\"\n"
            )),
            Some(edge),
            "in the former arm",
        ),
        ("no control", low(""), None, "no control arm"),
    ];
    for (what, config, edge, says) in cases {
        let fake = Fake::default();
        let pipes = host(&fake, 1000);
        pipes.iter().for_each(|pipe| pipe.borrow_mut().shallow = true);
        let mut core = begin(&fake, config, edge);
        let (took, alert) = until_tripped(&mut core, &fake);
        println!("{what}: after {took:.0} s: {alert}");
        assert!(took <= 30.0, "{what}: after {took} s");
        assert!(
            alert.contains(says) && alert.contains("`trimtab agent resume rule:web`"),
            "{alert}"
        );
        let runs: BTreeSet<(&str, bool)> = pipes
            .iter()
            .map(|pipe| (pipe.borrow().identity.algorithm, pipe.borrow().loss() > 0.0))
            .collect();
        assert_eq!(runs, BTreeSet::from([("bbr", false)]), "{what}");
        let now = Time::from_secs_f64(took);
        let now = pass_by(&mut core, &fake, now, 10.0, STEP);
        assert_eq!(standing(&core, 1), Standing::Tripped, "{what}");
        assert_eq!(told(core.take_alerts()), [""; 0], "{what}: once is enough");
        // Armed again it steers again.
        resume(&mut core, now);
        pass_by(&mut core, &fake, now, 2.0, STEP);
        let tripped = (1..=1000).filter(|id| standing(&core, *id) == Standing::Tripped).count();
        assert_eq!(tripped, 0, "{what}");
    }
}

/// Each network has one side at a time, and in a control arm what it would run without Trimtab.
#[test]
fn three_arms_are_whole_networks_and_change_sides_together() {
    let fake = Fake::default();
    let pipes = host(&fake, 400);
    let text = "[compare]\nshare = \"50%\"\nblock = \"20s\"\nwash_out = \"5s\"\npairs = 4\n\
                [[rule]]\nname = \"web\"\nport = 443\nknobs = { delta = 0.2 }\nqoe = \"download\"\n\
                factors = { R = 8 }\n";
    let mut core = begin(&fake, config(text), None);
    let (mut now, mut seen) = (Time::ZERO, BTreeSet::new());
    for _ in 0..8 {
        now = pass_by(&mut core, &fake, now, 20.0, STEP);
        for network in pipes.chunks(4) {
            let runs: BTreeSet<(&str, String)> = network
                .iter()
                .map(|pipe| {
                    let pipe = pipe.borrow();
                    (pipe.identity.algorithm, pipe.knobs["delta"].to_string())
                })
                .collect();
            assert_eq!(runs.len(), 1, "a network has one side: {runs:?}");
            seen.extend(runs);
        }
    }
    let arms = [("bbr", "0.5"), ("copa", "0.2"), ("copa", "0.5")];
    assert_eq!(seen, BTreeSet::from(arms.map(|(a, d)| (a, d.to_owned()))));
    // The fake's queue is 1.25/δ packets of 1 ms: 6.25 ms when steered and 2.5 ms in both controls.
    let now = pass_by(&mut core, &fake, now, 10.0, STEP);
    let told = told(core.take_notes());
    assert!(
        told.iter().any(|note| note.starts_with("the comparison is over: rule web")),
        "{told:?}"
    );
    let known = core.comparing().comparisons(now);
    assert_eq!(known.len(), 2);
    for comparison in known {
        let rtt = comparison.metrics.iter().find(|of| of.metric == "rtt_ms").unwrap();
        let change = rtt.change.unwrap();
        let expected = 26.25 / 22.5 - 1.0;
        assert!((change.value - expected).abs() < 0.01 && change.low > 0.0, "{comparison}");
        assert!(comparison.over && comparison.networks > 20, "{comparison}");
    }
}

/// Else the controls would begin with the queues that the rule had filled.
#[test]
fn another_rule_leaves_every_network_in_its_arm() {
    let fake = Fake::default();
    let pipes = host(&fake, 400);
    let text = |share: u32, delta: f64| {
        format!(
            "[compare]\nshare = \"{share}%\"\nblock = \"20s\"\nwash_out = \"5s\"\npairs = 4\n\
             [[rule]]\nname = \"web\"\nport = 443\nknobs = {{ delta = {delta} }}\n"
        )
    };
    let mut core = begin(&fake, config(&text(50, 0.2)), None);
    let treated = |delta: f64| -> Vec<bool> {
        let is = |pipe: &Rc<RefCell<Pipe>>| {
            let pipe = pipe.borrow();
            pipe.identity.algorithm == "copa" && pipe.knobs["delta"] == delta
        };
        pipes.iter().map(is).collect()
    };
    let now = pass_by(&mut core, &fake, Time::ZERO, 28.0, STEP);
    let before = treated(0.2);
    assert!((100..300).contains(&before.iter().filter(|is| **is).count()), "{before:?}");
    core.reload(config(&text(50, 0.3)), now);
    // Blocks begin after 5, 25 and 45 s.
    let now = pass_by(&mut core, &fake, now, 12.0, STEP);
    assert_eq!(treated(0.3), before);
    // Another comparison deals anew.
    core.reload(config(&text(49, 0.3)), now);
    pass_by(&mut core, &fake, now, 12.0, STEP);
    assert_ne!(treated(0.3), before);
}

#[test]
fn a_rollout_reaches_more_networks_stage_by_stage() {
    let fake = Fake::default();
    let pipes = host(&fake, 400);
    let text = "[rollout]\nstages = [\"5%\", \"25%\", \"100%\"]\nevery = \"60s\"\n\
                [[rule]]\nname = \"web\"\nport = 443\nknobs = { delta = 0.2 }\n";
    let mut core = begin(&fake, config(text), None);
    let mut shares = Vec::new();
    let mut now = Time::ZERO;
    for _ in 0..3 {
        now = pass_by(&mut core, &fake, now, 30.0, STEP);
        let ours = pipes.iter().filter(|pipe| pipe.borrow().knobs["delta"] == 0.2).count();
        let former = pipes.iter().filter(|p| p.borrow().identity.algorithm == "bbr").count();
        assert_eq!(ours + former, 400, "the others run what they would without Trimtab");
        shares.push((ours, core.comparing().rollout(now).map(|rollout| rollout.stage)));
        now = pass_by(&mut core, &fake, now, 35.0, STEP);
    }
    // Of 100 networks, binomial: 5 ± 2.2, 25 ± 4.3.
    let [(first, Some(1)), (second, Some(2)), (400, None)] = shares[..] else {
        panic!("{shares:?}")
    };
    assert!((4..=48).contains(&first) && (48..=152).contains(&second), "{shares:?}");
}

#[test]
fn a_rollout_of_what_does_harm_stops_by_itself() {
    let fake = Fake::default();
    let pipes = host(&fake, 1000);
    pipes.iter().for_each(|pipe| pipe.borrow_mut().shallow = true);
    let text = "[rollout]\nstages = [\"5%\", \"100%\"]\nevery = \"1h\"\n\
                [[rule]]\nname = \"web\"\nport = 443\nknobs = { delta = 0.04 }\n";
    let mut core = begin(&fake, config(text), None);
    let (took, alert) = until_tripped(&mut core, &fake);
    assert!(took <= 30.0 && alert.contains("in the former arm"), "after {took} s: {alert}");
    assert!(pipes.iter().all(|pipe| pipe.borrow().identity.algorithm == "bbr"));
}
