//! What is done for safety around a steering: hints in the application's words, the comparison with
//! a holdback, and the guard.

mod support;

use support::{Setting, World};
use trimtab_noq::units::{Bytes, Duration, Time};
use trimtab_noq::{Arm, Config, Factor, Factors, Harm, Safety, Share};

/// With a guard that acts after three seconds of a queue above 50 ms, and steers again after ten.
fn guarded(scheme: &str) -> Config {
    let safety = Safety {
        delay: Duration::from_millis(50),
        after: Duration::from_secs(3),
        rest: Duration::from_secs(10),
        ..Safety::default()
    };
    Config::new(scheme).unwrap().with_guard(safety)
}

/// Each second's scheme, and from what the path rests.
fn course(world: &mut World, seconds: u64) -> Vec<(String, Option<Harm>)> {
    let second = |_| {
        world.run_until(world.now + Duration::from_secs(1));
        let metrics = world.handle.metrics().unwrap();
        (metrics.scheme, metrics.resting)
    };
    (0..seconds).map(second).collect()
}

/// CUBIC fills a buffer of 160 ms, Copa leaves it empty.
#[test]
fn a_path_that_suffers_goes_back_rests_and_is_steered_again() {
    let config = guarded("cubic").with_baseline("copa").unwrap();
    let deep = Setting { buffer: 4.0, ..Setting::default() };
    let mut world = World::with(&config, &deep);
    let seen = course(&mut world, 30);
    let resting = ("copa".to_owned(), Some(Harm::Delay));
    let back = seen.iter().position(|second| *second == resting).expect("it suffers");
    let again = seen[back..].iter().position(|second| second.0 == "cubic").expect("again") + back;
    println!("back after {back} s, again after {again} s");
    assert!((3..10).contains(&back), "{seen:?}");
    assert!((9..13).contains(&(again - back)), "the rest has ten seconds: {seen:?}");
    assert!(seen[back..again].iter().all(|second| *second == resting), "{seen:?}");
    let later = seen[again..].iter().position(|second| *second == resting);
    assert!(later.is_some(), "it does harm again: {seen:?}");
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.fallbacks, metrics.algorithm, metrics.refused), (2, "copa", 0));
    assert_eq!(world.handle.scheme(), "cubic", "what the caller wants");
    assert!(metrics.switches >= 3 && metrics.srtt.unwrap() < Duration::from_millis(70));
    // The second rest has 20 seconds.
    let seen = course(&mut world, 6);
    assert!(seen.iter().all(|second| *second == resting), "{seen:?}");
    // The caller's word ends it, and what is new is guarded from the beginning.
    world.handle.set_scheme("bbr3").unwrap();
    world.run_until(world.now + Duration::from_secs(2));
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.scheme.as_str(), metrics.resting), ("bbr3", None));
    assert!(world.goodput_until(world.now + Duration::from_secs(5)).mbps() > 0.8 * 8.0);
}

/// A knob alone does the harm, and goes back to what the algorithm has by itself.
#[test]
fn the_guard_turns_back_knobs_of_the_same_algorithm() {
    let deep = Setting { buffer: 8.0, ..Setting::default() };
    let mut world = World::with(&guarded("copa"), &deep);
    world.run_until(Time::from_secs(6));
    assert_eq!(world.handle.metrics().unwrap().fallbacks, 0, "Copa by itself is the baseline");
    world.handle.set_knob("delta", 0.01).unwrap();
    let seen = course(&mut world, 10);
    assert!(seen.contains(&("copa".to_owned(), Some(Harm::Delay))), "{seen:?}");
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.knobs.get("delta"), metrics.fallbacks), (Some(0.5), 1));
}

/// The path loses 8 % of every scheme's packets: that costs a rest of some seconds, once.
#[test]
fn what_the_path_does_by_itself_is_forgiven() {
    let safety = Safety { after: Duration::from_secs(3), ..Safety::default() };
    let config = Config::new("bbr3").unwrap().with_baseline("copa:mvfst").unwrap();
    let lossy = Setting { loss: 0.08, ..Setting::default() };
    let mut world = World::with(&config.with_guard(safety), &lossy);
    let seen = course(&mut world, 60);
    let rests = seen.iter().filter(|(_, resting)| *resting == Some(Harm::Loss)).count();
    println!("{rests} seconds of rest in a minute");
    assert!((2..10).contains(&rests), "{seen:?}");
    assert_eq!(world.handle.metrics().unwrap().fallbacks, 1);
    assert_eq!(seen.last().unwrap().0, "bbr3");
}

#[test]
fn an_idle_application_is_no_harm() {
    let config = guarded("cubic").with_baseline("copa").unwrap();
    let deep = Setting { buffer: 4.0, ..Setting::default() };
    let mut world = World::with(&config, &deep);
    // Half a second of a long queue every ten, which is no three seconds in a row.
    for second in 0..60 {
        world.has_data = second % 10 == 0;
        world.run_until(Time::from_millis(1000 * second + 500));
        world.has_data = false;
        world.run_until(Time::from_secs(second + 1));
    }
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.fallbacks, metrics.resting), (0, None), "{metrics:?}");
    assert!(metrics.delivered > Bytes::new(1_000_000));
}

#[test]
fn the_holdback_keeps_the_baseline_whatever_the_caller_sets() {
    let all = Config::new("mortise").unwrap().with_holdback(Share::new(1.0));
    let mut world = World::with(&all, &Setting::default());
    world.run_until(Time::from_secs(2));
    assert_eq!(world.handle.take_reports().len(), 1, "the last; later ones are kept");
    world.handle.set_scheme("bbr3").unwrap();
    world.handle.set_knob("delta", 0.1).unwrap();
    assert!(world.handle.set_scheme("bbr4").is_err(), "it refuses mistakes all the same");
    world.run_until(Time::from_secs(4));
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.arm, world.handle.arm()), (Arm::Holdback, Arm::Holdback));
    assert_eq!((metrics.scheme.as_str(), metrics.switches), ("copa", 0));
    assert_eq!(metrics.knobs.get("delta"), Some(0.5));
    assert_eq!(world.handle.scheme(), "bbr3");
    assert!(world.handle.take_reports().len() > 10, "it is measured");

    let mut world = World::with(&all.with_baseline("cubic").unwrap(), &Setting::default());
    world.run_until(Time::from_secs(1));
    assert_eq!(world.handle.metrics().unwrap().algorithm, "cubic");
}

#[test]
fn peers_and_keys_are_held_back_in_the_share_that_was_asked_for() {
    let config = Config::new("mortise").unwrap().with_holdback(Share::new(0.2));
    let held =
        |config: &Config, peer: [u8; 4]| config.connection_to(peer.into()).1.arm() == Arm::Holdback;
    let peers = (0..1000_u16).map(|i| [10, (i >> 8) as u8, i as u8, 7]);
    let share = peers.clone().filter(|peer| held(&config, *peer)).count();
    assert!((150..250).contains(&share), "binomial, 200 give or take 13: {share}");
    let alike =
        |[a, b, c, _]: [u8; 4]| held(&config, [a, b, c, 9]) == held(&config, [a, b, c, 200]);
    assert!(peers.clone().all(alike), "a network is in one arm");
    let users = (0..1000_u32).map(|user| config.clone().with_key(&user.to_be_bytes()));
    let share = users.filter(|config| held(config, [10, 0, 0, 1])).count();
    assert!((150..250).contains(&share), "keys come before the peer: {share}");
    assert_eq!(config.connection().1.arm(), Arm::Treated, "nothing tells it apart");
}

/// What a web server knows, in its own words, does what the bare factors do.
#[test]
fn responses_move_mortise_and_are_reported() {
    let delta_with = |size: Bytes| {
        let mut world = World::new("mortise", &Setting::default());
        let response = world.handle.begin_response(size);
        world.run_until(Time::from_secs(10));
        response.set_remaining(size.mul_f64(0.5));
        world.run_until(Time::from_secs(11));
        let report = world.handle.last_report().unwrap();
        let mbit = size.bits() / 1e6;
        assert_eq!(report.factors.get(Factor::Request), Some(mbit));
        assert_eq!(report.factors.get(Factor::Remaining), Some(mbit / 2.0));
        assert_eq!(report.responses.unsent, size.mul_f64(0.5) - report.inflight);
        world.handle.take_reports();
        response.end();
        world.run_until(Time::from_secs(12));
        let reports = world.handle.take_reports();
        let [ended] = reports.iter().filter(|r| r.responses.arrived > 0).collect::<Vec<_>>()[..]
        else {
            panic!("one report tells of it")
        };
        assert_eq!((ended.responses.arrived, ended.responses.size_mean), (1, size));
        let whole = (size / Duration::from_secs(11)).mbps();
        let rate = ended.responses.goodput_mean.mbps();
        assert!((rate / whole - 1.0).abs() < 0.02, "{rate} and {whole} Mbit/s");
        assert_eq!(reports.last().unwrap().factors.get(Factor::Request), None, "it is over");
        world.handle.metrics().unwrap().knobs.get("delta").unwrap()
    };
    let (small, large) = (delta_with(Bytes::new(5_000)), delta_with(Bytes::new(100_000_000)));
    assert!(small > large, "{small} and {large}");
}

#[test]
fn hints_are_in_the_words_of_the_agent() {
    let mut world = World::new("mortise", &Setting::default());
    let mut live = Factors::new().with_chunk(Bytes::new(900_000));
    live.set_named("patience", 3.0).unwrap();
    // A formula of the application's own, with a factor of its own.
    world.handle.describe(Some("T - patience * D"), &live).unwrap();
    let problem = world.handle.describe(Some("T - patince * D"), &live).unwrap_err().to_string();
    assert!(problem.contains("patince"), "{problem}");
    world.handle.update(&Factors::new().with_buffer(Duration::from_secs(8)));
    world.run_until(Time::from_secs(3));
    let report = world.handle.last_report().unwrap();
    let known: Vec<_> = report.factors.iter().collect();
    assert_eq!(known, [("C", 7.2), ("V", 8.0), ("patience", 3.0)], "all that was said");
    let preference = world.handle.metrics().unwrap().insight.preference.unwrap();
    assert!((preference.lambda - 3.0).abs() < 1e-6, "{preference:?}");
    // Bare factors take the place of all.
    world.handle.set_factors(Factors::new().with_buffer(Duration::from_secs(7)));
    world.run_until(Time::from_secs(4));
    let report = world.handle.last_report().unwrap();
    assert_eq!(report.factors.iter().collect::<Vec<_>>(), [("V", 7.0)]);
}
