use super::*;
use crate::Spec;
use crate::migrate::Migrate;
use crate::testing::hand_over;
use crate::testing::link::{self, Link, MSS};
use trimtab_units::Time;

fn seen(rate: f64, loss: f64) -> Seen {
    let (slope, slope_error2) = (0.0, 0.0);
    Seen { rate, arrived: None, packets: 50.0, loss, lost_ranges: 3, slope, slope_error2 }
}

/// §2.2: without losses the utility is nearly the rate (1 / (1 + e^-5) of it); at 5% the sigmoid is
/// a half; far above it what was lost is all that counts.
#[test]
fn the_utility_is_the_throughput_below_five_percent_of_losses_and_a_fine_above() {
    let values = Values::default();
    let u = |rate, loss| utility(&values, &seen(rate, loss));
    assert!((u(10.0, 0.0) - 10.0 / (1.0 + libm::exp(-5.0))).abs() < 1e-9);
    assert!((u(10.0, 0.05) - 10.0 * (0.95 / 2.0 - 0.05)).abs() < 1e-9);
    assert!((u(10.0, 0.5) + 5.0).abs() < 1e-6);
    // Random losses of 2% do not make a lower rate better; congestion losses of 10% do.
    assert!(u(10.1, 0.02) > u(10.0, 0.02));
    assert!(u(10.1, 0.10) < u(9.9, 0.08));
}

/// §3.1: 10 Mbit/s of a link without losses, one trial after another with these utilities.
fn decided(better: impl Fn(f64) -> f64) -> Allegro {
    let mut cca = Allegro::new(&Config::with_mss(MSS, 7));
    cca.srtt = Duration::from_millis(20);
    cca.decide(10.0, 0.01);
    let State::Deciding(mut trials) = cca.state else { panic!("trials") };
    while let Some(up) = trials.next() {
        trials.add(up, better(if up { 10.1 } else { 9.9 }));
    }
    cca.state = State::Deciding(trials);
    cca.conclude_trials();
    cca
}

/// §3.1: both pairs agree: the rate of the trial, and from there n ε more with each step.
#[test]
fn a_direction_that_wins_both_pairs_is_followed_in_growing_steps() {
    let cca = decided(|rate| rate);
    let State::Adjusting { up: true, step: 1, before } = cca.state else { panic!("{cca:?}") };
    assert!((before.0 - 10.1).abs() < 1e-9 && (before.1 - 10.1).abs() < 1e-9);
    assert!((cca.rate - 10.1 * 1.01).abs() < 1e-9, "{}", cca.rate);
    let cca = decided(|rate| -rate);
    let State::Adjusting { up: false, step: 1, .. } = cca.state else { panic!("{cca:?}") };
    assert!((cca.rate - 9.9 * 0.99).abs() < 1e-9, "{}", cca.rate);
    let mut cca = decided(|rate| rate);
    cca.adjust(true, 2, (cca.rate, 11.0));
    assert!((cca.rate - 10.1 * 1.01 * 1.02).abs() < 1e-9, "{}", cca.rate);
}

/// §3.1: no direction won: the same rate, and ε grows up to its greatest.
#[test]
fn trials_that_disagree_are_repeated_further_apart() {
    let mut cca = Allegro::new(&Config::with_mss(MSS, 7));
    cca.srtt = Duration::from_millis(20);
    cca.decide(10.0, 0.01);
    for epsilon in [0.02, 0.03, 0.04, 0.05, 0.05] {
        let State::Deciding(mut trials) = cca.state else { panic!("trials") };
        // The higher rate wins the first pair, the lower one the second.
        for utility in [(2.0, 1.0), (1.0, 2.0)] {
            for _ in 0..2 {
                let up = trials.next().unwrap();
                trials.add(up, if up { utility.0 } else { utility.1 });
            }
        }
        assert_eq!(trials.next(), None, "four trials");
        cca.state = State::Deciding(trials);
        cca.conclude_trials();
        let State::Deciding(next) = cca.state else { panic!("it decides again") };
        assert!((next.epsilon - epsilon).abs() < 1e-9, "{next:?}");
        assert_eq!(cca.rate, 10.0);
    }
}

/// §3.1: the order within each pair is random, and by the seed.
#[test]
fn the_order_of_trials_is_drawn_for_each_pair() {
    let mut rng = Pcg32::seed_from_u64(3);
    let mut orders = [0; 4];
    for _ in 0..1000 {
        let [first, second] = Trials::new(0.01, &mut rng).up_first;
        orders[usize::from(first) * 2 + usize::from(second)] += 1;
    }
    assert!(orders.iter().all(|n| (200..300).contains(n)), "{orders:?}");
}

/// Alone it uses the link; what it queues is bounded by the window of two round trips alone, since
/// its utility does not know delay.
#[test]
fn it_uses_a_link_and_fills_its_buffer() {
    let link = Link { buffer: 80, ..Link::fast() };
    let seen = link::run(link, &[("allegro", Time::ZERO)], |_, _, _| {});
    assert!(seen.shares[0] > 0.93, "{seen:?}");
    assert!(seen.loss < 0.05, "{seen:?}");
}

#[test]
fn it_takes_over_at_the_rate_of_the_one_before() {
    let mut cca = "allegro".parse::<Spec>().unwrap().build(&Config::with_mss(MSS, 0));
    cca.take_over(&hand_over(MSS * 80, Duration::from_millis(20)));
    assert!(cca.is_converged());
    let rate = cca.pacing_rate().unwrap().mbps();
    assert!((rate - 48.0).abs() < 0.01, "{rate}");
    assert!((cca.window().ratio(MSS) - 160.0).abs() < 1.0, "{}", cca.window());
}

/// RFC 9002 §7.6: one timeout halves the rate; a second without anything between starts anew.
#[test]
fn timeouts_halve_the_rate_and_then_start_over() {
    let mut cca = Allegro::new(&Config::with_mss(MSS, 0));
    cca.take_over(&hand_over(MSS * 80, Duration::from_millis(20)));
    cca.on_timeout(&crate::testing::timed_out(Time::from_secs(31)));
    assert!((cca.rate - 24.0).abs() < 0.01 && cca.phase() == Phase::Steady);
    cca.on_timeout(&crate::testing::timed_out(Time::from_secs(32)));
    // The initial window: ten packets in 20 ms are 6 Mbit/s.
    assert!((cca.rate - 6.0).abs() < 0.01 && cca.phase() == Phase::SlowStart, "{}", cca.rate);
}
