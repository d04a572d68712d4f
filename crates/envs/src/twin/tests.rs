use trimtab_cc::migrate::Switch;
use trimtab_net::Capacity;
use trimtab_units::{Duration, Rate};

use super::*;
use crate::condition::Condition;
use crate::{CourseConfig, Draw, Objective, Part, RivalsConfig, Traffic};

fn prior() -> Arc<Prior> {
    let course = Course::new(CourseConfig {
        rules: Rules {
            algorithms: ["cubic", "bbr"].map(|name| name.parse().unwrap()).into(),
            period: Duration::from_secs(4),
            periods: 6,
            switch: Switch::Full,
            objective: Objective::Mean,
        },
        part: Part::Train,
        conditions: 20,
        generated: 24,
        wifi: 0,
        recorded: None,
        traffic: vec![Traffic::WebBurst],
        flows: vec![1],
        rivals: RivalsConfig::default(),
        start: None,
    });
    Arc::new(Prior::new(Arc::new(course.unwrap()), 10))
}

/// Pages over a link of 4 Mbit/s.
fn real(prior: &Prior, rtt_ms: u64, loss: f64) -> Episode {
    let condition = Condition {
        rtt: Duration::from_millis(rtt_ms),
        jitter: Duration::from_millis(2),
        loss,
        buffer_bdp: 1.0,
    };
    let link = Capacity::Constant(Rate::from_mbps(4.0));
    let draw = Draw {
        link,
        condition,
        traffic: Traffic::WebBurst,
        flows: 1,
        rivals: Vec::new(),
        start: 1,
        seed: 5,
        luck: 6,
    };
    Episode::new(prior.course.shared(), &draw)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn worlds_come_to_be_like_the_real_one() {
    let prior = prior();
    for (rtt_ms, loss) in [(40, 0.03), (120, 0.0)] {
        let mut real = real(&prior, rtt_ms, loss);
        let mut twin = Twin::new(prior.clone(), &real, 16, 1);
        for choice in [1, 0, 1] {
            real.step(choice);
            twin.observe(&real);
        }
        let of = |f: &dyn Fn(&Condition) -> f64| {
            middle(twin.particles.iter().map(|p| f(&p.path.condition())).collect())
        };
        let rtt = of(&|c| c.rtt.as_millis_f64());
        assert!((rtt / rtt_ms as f64 - 1.0).abs() < 0.15, "{rtt} ms vs. {rtt_ms}");
        let lost = of(&|c| c.loss);
        assert!(if loss > 0.0 { lost > 0.01 } else { lost < 0.004 }, "{lost} vs. {loss}");
    }
}

/// What was asked for is known, and what will be is not.
#[test]
fn worlds_have_the_requests_of_the_past_and_others_to_come() {
    let prior = prior();
    let mut real = real(&prior, 60, 0.01);
    let mut twin = Twin::new(prior, &real, 6, 1);
    real.step(0);
    twin.observe(&real);
    let asked = |episode: &Episode| -> Vec<_> {
        episode.requests().map(|request| (request.sent_at, request.size)).collect()
    };
    let past = asked(&real);
    real.step(0);
    let whole = asked(&real);
    let mut others = 0;
    for mut world in twin.worlds(7) {
        assert_eq!(asked(&world), past);
        assert_eq!(world.current(), 0);
        world.step(0);
        others += usize::from(asked(&world) != whole);
    }
    assert_eq!(others, 6);
}

#[test]
fn a_seed_has_one_twin() {
    let prior = prior();
    let real = real(&prior, 60, 0.01);
    let costs = |seed, future| -> Vec<_> {
        let twin = Twin::new(prior.clone(), &real, 4, seed);
        twin.worlds(future).map(|world| world.costs(1)).collect()
    };
    assert_eq!(costs(1, 1), costs(1, 1));
    assert_ne!(costs(1, 1), costs(2, 1));
    assert_ne!(costs(1, 1), costs(1, 2));
}

/// A world that takes all the weight is kept once as it is; its copies have other luck.
#[test]
fn copies_of_a_world_part() {
    let prior = prior();
    let real = real(&prior, 60, 0.01);
    let mut twin = Twin::new(prior, &real, 4, 1);
    let of = twin.particles.clone();
    let mut copies = twin.resampled(&of, &[-900.0, 0.0, -900.0, -800.0], 4);
    assert_eq!(copies.len(), 4);
    let asked = |particle: &Particle| particle.world.requests().count();
    let before: Vec<_> = copies.iter().map(|copy| copy.world.state()).collect();
    assert!(before.iter().all(|state| *state == of[1].world.state()));
    let waited: std::collections::BTreeSet<_> =
        copies.iter_mut().map(|copy| copy.world.step(0).waited).collect();
    assert_eq!(waited.len(), 4, "four lucks");
    assert!(copies.iter().all(|copy| asked(copy) == asked(&copies[0])), "the same requests");
    let mixed = twin.resampled(&of, &[0.0; 4], 4);
    let kept = mixed.iter().zip(&of).all(|(one, other)| one.world.state() == other.world.state());
    assert!(kept, "of equal weights each is kept");
}
