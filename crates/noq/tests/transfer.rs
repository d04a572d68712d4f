//! Transfers over a link of 8 Mbit/s and 40 ms with a buffer of one bandwidth-delay product.

mod support;

use support::{MarkConfig, Setting, World, first_megabyte, goodput, over_marks, trace};
use trimtab_noq::units::{Bytes, Duration, Rate, Time};
use trimtab_noq::{Config, Factors, Memory, Stage};

#[test]
fn each_kind_of_scheme_fills_the_link() {
    for scheme in [
        "bbr3",
        "cubic",
        "copa:mvfst",
        "mortise",
        "vivace",
        "muses",
        "floo",
        "switch:cubic,bbr:every=3s",
    ] {
        let goodput = goodput(scheme, &Setting::default());
        assert!(goodput.mbps() > 0.85 * 8.0, "{scheme}: {goodput:?}");
    }
}

#[test]
fn random_loss_and_marks_do_not_stop_a_transfer() {
    let lossy = Setting { loss: 0.01, ..Setting::default() };
    for scheme in ["bbr3", "copa:mvfst", "mortise"] {
        let goodput = goodput(scheme, &lossy);
        assert!(goodput.mbps() > 0.8 * 8.0, "{scheme}: {goodput:?}");
    }
    // CUBIC answers each loss: about 1.2 packets per round trip and square root of the loss.
    assert!(goodput("cubic", &lossy).mbps() > 1.0);
    let marking = Setting { mark: MarkConfig::Random(0.01), ..Setting::default() };
    let marked = goodput("cubic", &marking);
    let unmarked = goodput("cubic", &Setting::default());
    assert!(marked.mbps() > 1.0 && marked < unmarked.mul_f64(0.9), "{marked:?}");
    assert!(goodput("bbr3", &marking).mbps() > 1.0);
}

/// RFC 3168 §5: a mark stands where a packet would have been dropped. BBRv1 does not answer, as in
/// Linux.
#[test]
fn marks_keep_the_queue_short_without_losses() {
    for scheme in ["cubic", "bbr3", "copa:mvfst", "vivace", "mortise"] {
        let (goodput, [before, after]) = over_marks(scheme);
        assert!(goodput.mbps() > 0.8 * 8.0, "{scheme}: {goodput:?}");
        assert_eq!(after.lost, before.lost, "{scheme}");
        assert!(after.marked > 0 && after.srtt.unwrap() < Duration::from_millis(70), "{scheme}");
    }
}

#[test]
fn the_pacing_rate_and_the_quantum_are_obeyed() {
    // Vivace sets a rate; its window is twice what is in flight, so noq's own pacing would let out
    // two and a half times as much.
    let mut world = World::new("vivace", &Setting::default());
    world.run_until(Time::from_secs(5));
    world.has_data = false;
    let idle = Time::from_secs(7);
    world.run_until(idle);
    world.has_data = true;
    let rate = world.handle.metrics().unwrap().pacing_rate.unwrap();
    let span = Duration::from_millis(30);
    world.run_until(idle + span);
    assert_eq!(world.handle.metrics().unwrap().pacing_rate, Some(rate));

    let burst = world.batches.iter().filter(|batch| batch.at >= idle);
    let burst = burst.fold(Bytes::ZERO, |sum, batch| sum + batch.bytes);
    // noq's bucket: ten packets, or 10 ms' worth where that is less.
    let bucket = (rate * Duration::from_millis(10)).min(Bytes::new(10 * 1452));
    let window = world.handle.metrics().unwrap().window;
    println!("{rate:?}: {burst:?} in 30 ms, of a window of {window:?}");
    assert!(burst <= rate * span + bucket && burst * 2 < window + bucket * 2);
    assert!(burst > (rate * span).mul_f64(0.9), "it uses what it may");
    // A millisecond's worth is less than two packets here.
    let late = world.batches.iter().filter(|batch| batch.at >= idle);
    let largest = late.map(|batch| batch.bytes).max().unwrap();
    assert!(largest <= Bytes::new(2 * 1452), "{largest:?}");
    // Without a rate of its own an algorithm has no quantum, and larger batches leave.
    let mut world = World::new("cubic", &Setting::default());
    world.run_until(Time::from_secs(5));
    assert!(world.handle.metrics().unwrap().pacing_rate.is_none());
    assert!(world.batches.iter().any(|batch| batch.bytes > largest));
}

#[test]
fn a_live_change_hands_over_the_window_and_the_transfer_goes_on() {
    let mut world = World::new("cubic", &Setting::default());
    world.run_until(Time::from_secs(5));
    let before = world.handle.metrics().unwrap();
    assert_eq!((before.algorithm, before.switches), ("cubic", 0));
    world.handle.set_scheme("bbr3").unwrap();
    assert_eq!(world.handle.metrics().unwrap().scheme, "bbr3");
    let during = world.goodput_until(Time::from_secs(6));
    let after = world.handle.metrics().unwrap();
    assert_eq!((after.algorithm, after.pending, after.switches), ("bbr3", None, 1));
    // A bandwidth-delay product is 40 KB; BBRv3 without what was known would begin with 14 KB.
    assert!(after.window >= Bytes::new(40_000), "{after:?}");
    assert!(after.delivery_rate.unwrap().mbps() > 7.0);
    let later = world.goodput_until(Time::from_secs(10));
    println!("cubic to bbr3: {during:?} in the first second, {later:?} then");
    assert!(during.mbps() > 6.0 && later.mbps() > 0.85 * 8.0);
}

#[test]
fn any_scheme_follows_any_other() {
    let mut world = World::new("muses:safe=none", &Setting::default());
    world.run_until(Time::from_secs(2));
    for (i, (scheme, algorithm)) in [
        ("copa", "copa"),
        ("mortise", "copa"),
        ("muses", "muses"),
        ("cubic", "cubic"),
        ("muses:lstm", "muses"),
        ("bbr", "bbr"),
        ("mortise:cubic", "cubic"),
    ]
    .into_iter()
    .enumerate()
    {
        world.handle.set_scheme(scheme).unwrap();
        let goodput = world.goodput_until(Time::from_secs(2 + 5 * (i as u64 + 1)));
        let metrics = world.handle.metrics().unwrap();
        println!("{scheme}: {goodput:?}, switches {}", metrics.switches);
        assert_eq!((metrics.algorithm, metrics.pending), (algorithm, None), "{scheme}");
        assert!(goodput.mbps() > 0.7 * 8.0, "{scheme}: {goodput:?}");
        // Mortise goes on with the Copa that runs.
        assert!(metrics.switches >= 1.max(i as u64), "{metrics:?}");
    }
}

#[test]
fn live_factors_move_mortise() {
    let delta_with = |request: Bytes| {
        let config = Config::new("mortise").unwrap().with_model("download").unwrap();
        let mut world = World::with(&config, &Setting::default());
        world.handle.set_factors(Factors::new().with_request(request));
        assert!(world.handle.take_reports().is_empty(), "they are kept from now on");
        world.run_until(Time::from_secs(10));
        let metrics = world.handle.metrics().unwrap();
        let reports = world.handle.take_reports();
        assert!(reports.len() > 20 && metrics.reason.is_some(), "{metrics:?}");
        assert!(metrics.insight.preference.is_some(), "{metrics:?}");
        assert_eq!(reports.last().unwrap().algorithm, "copa");
        println!("R = {request:?}: {:?}, {:?}", metrics.knobs, metrics.insight);
        metrics.knobs.get("delta").unwrap()
    };
    let (small, large) = (delta_with(Bytes::new(5_000)), delta_with(Bytes::new(100_000_000)));
    assert!(small > large, "{small} and {large}");
}

#[test]
fn a_wrong_change_leaves_all_as_it_is() {
    let mut world = World::new("mortise", &Setting::default());
    world.run_until(Time::from_secs(2));
    let problem = world.handle.set_scheme("bbr4").unwrap_err().to_string();
    assert!(problem.contains("\"bbr4\": unknown congestion control; did you mean"), "{problem}");
    assert!(world.handle.set_model("T - D D").is_err());
    world.run_until(Time::from_secs(3));
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.scheme.as_str(), metrics.algorithm), ("mortise", "copa"));
    // The price of delay as a formula is the hint itself, whatever is downloaded.
    world.handle.set_model("T - 50*D").unwrap();
    world.run_until(Time::from_secs(5));
    let preference = world.handle.metrics().unwrap().insight.preference.unwrap();
    assert!((preference.lambda - 50.0).abs() < 1e-6, "{preference:?}");
}

/// A change that comes before the handshake, and one that follows at once.
#[test]
fn the_last_of_several_changes_counts() {
    let mut world = World::new("cubic", &Setting::default());
    for scheme in ["muses:safe=none", "mortise", "bbr3"] {
        world.handle.set_scheme(scheme).unwrap();
    }
    world.run_until(Time::from_secs(1));
    assert_eq!(world.handle.metrics().unwrap().algorithm, "bbr3");
    for scheme in ["muses:safe=none", "bbr", "mortise"] {
        world.handle.set_scheme(scheme).unwrap();
    }
    world.run_until(Time::from_secs(4));
    let metrics = world.handle.metrics().unwrap();
    assert_eq!((metrics.algorithm, metrics.refused), ("copa", 0));
    assert!(world.goodput_until(Time::from_secs(8)).mbps() > 0.85 * 8.0);
}

#[test]
fn a_knob_is_set_live_and_a_wrong_one_is_refused() {
    let mut world = World::new("copa", &Setting::default());
    assert!(world.handle.set_knob("delta", 0.1).unwrap_err().to_string().contains("no path yet"));
    world.run_until(Time::from_secs(2));
    world.handle.set_knob("delta", 0.1).unwrap();
    assert_eq!(world.handle.metrics().unwrap().knobs.get("delta"), Some(0.1));
    let problem = world.handle.set_knob("alpha", 1.0).unwrap_err().to_string();
    assert!(problem.contains("alpha of copa") && problem.contains("delta"), "{problem}");
    let problem = world.handle.set_knob("delta", -1.0).unwrap_err().to_string();
    assert!(problem.contains("outside its range"), "{problem}");
}

/// What differs by its knobs alone goes on where it is.
#[test]
fn another_scheme_of_the_same_algorithm_turns_its_knobs() {
    let mut world = World::new("vivace:gamma=100", &Setting::default());
    world.run_until(Time::from_secs(3));
    let before = world.handle.metrics().unwrap();
    world.handle.set_scheme("vivace:omega=0.5").unwrap();
    world.run_until(Time::from_millis(3100));
    let after = world.handle.metrics().unwrap();
    assert_eq!((after.scheme.as_str(), after.switches), ("vivace:omega=0.5", 0));
    let knobs = ["gamma", "omega"].map(|knob| after.knobs.get(knob));
    assert_eq!(knobs, [Some(900.0), Some(0.5)], "what it does not name is the default");
    let rate = |of: &trimtab_noq::Metrics| of.pacing_rate.unwrap().mbps();
    assert!((rate(&after) / rate(&before) - 1.0).abs() < 0.3, "{before:?} and {after:?}");
    // A change that waits is forgotten.
    world.handle.set_scheme("bbr3").unwrap();
    world.handle.set_scheme("vivace").unwrap();
    assert!(world.goodput_until(Time::from_secs(8)).mbps() > 0.8 * 8.0);
    assert_eq!(world.handle.metrics().unwrap().switches, 0);
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    assert_eq!(trace("mortise", 1), trace("mortise", 1));
    assert_ne!(trace("mortise", 1), trace("mortise", 2));
}

/// An application that sends little proves nothing about the path.
#[test]
fn an_idle_application_does_not_grow_the_window() {
    let mut world = World::new("cubic", &Setting::default());
    world.run_until(Time::from_secs(4));
    world.has_data = false;
    world.run_until(Time::from_secs(5));
    let idle = world.handle.metrics().unwrap();
    assert_eq!(idle.inflight, Bytes::ZERO, "what arrived has left flight");
    world.run_until(Time::from_secs(20));
    assert_eq!(world.handle.metrics().unwrap().window, idle.window);
    world.has_data = true;
    world.run_until(Time::from_secs(21));
    assert!(world.goodput_until(Time::from_secs(25)).mbps() > 0.85 * 8.0);
}

/// RFC 9000 §9.4: another address is another path, another port alone may be the same one.
#[test]
fn a_client_that_moves_gets_a_fresh_path_with_what_was_set() {
    let mut world = World::new("cubic", &Setting::default());
    world.run_until(Time::from_secs(3));
    world.handle.set_scheme("copa:delta=0.1").unwrap();
    world.run_until(Time::from_secs(5));
    let before = world.handle.metrics().unwrap();
    world.move_client(([127, 0, 0, 1], 3).into());
    assert!(world.goodput_until(Time::from_secs(8)).mbps() > 0.7 * 8.0);
    let same = world.handle.metrics().unwrap();
    assert!(same.sent > before.sent && same.switches == 1, "{same:?}");
    assert!(same.inflight < same.window * 2, "{same:?}");

    world.move_client(([127, 0, 0, 9], 3).into());
    assert!(world.goodput_until(Time::from_secs(11)).mbps() > 0.7 * 8.0);
    let fresh = world.handle.metrics().unwrap();
    assert!(fresh.sent < same.sent && fresh.switches == 0, "{fresh:?}");
    assert_eq!((fresh.algorithm, fresh.knobs.get("delta")), ("copa", Some(0.1)));
}

/// RFC 9959: a bandwidth-delay product is 500 KB here, 34 initial windows.
#[test]
fn a_connection_resumes_what_the_last_one_to_its_peer_observed() {
    let memory = Memory::new();
    let (rate, rtt) = (Rate::from_mbps(40.0), Duration::from_millis(100));
    let setting = Setting { rate, rtt, ..Setting::default() };
    let (first, world) = first_megabyte(&memory, &setting);
    assert_eq!(world.handle.metrics().unwrap().resume, Some(Stage::Normal));
    assert!(memory.is_empty(), "the connection lives");
    drop(world);
    assert_eq!(memory.len(), 1);
    let (second, world) = first_megabyte(&memory, &setting);
    assert!(memory.is_empty(), "one connection at a time uses it (§3.2)");
    let (third, other) = first_megabyte(&memory, &setting);
    println!("1 MB: {first:?}, resumed {second:?}, next to the one that resumes {third:?}");
    assert!(second.mul_f64(1.3) < first, "{second:?} vs. {first:?}");
    assert_eq!(third, first, "it has nothing to resume");
    drop((world, other));
    assert_eq!(memory.len(), 1, "the same destination");

    // A tenth of the capacity: the connection retreats, and what misled it is gone.
    let narrow = Setting { rate: rate.mul_f64(0.1), ..setting };
    let (alone, _) = first_megabyte(&Memory::new(), &narrow);
    let (misled, world) = first_megabyte(&memory, &narrow);
    println!("1 MB on a tenth: {alone:?}, misled {misled:?}");
    assert!(misled < alone.mul_f64(1.25), "{misled:?} vs. {alone:?}");
    drop(world);
    let (again, _) = first_megabyte(&memory, &setting);
    assert!(again > second, "what was saved is the tenth, or nothing");
}

/// The policy leaves what it starts with; a later connection knows that.
#[test]
fn a_connection_begins_with_what_suited_the_last_one_to_its_peer() {
    let memory = Memory::new();
    let setting = Setting { buffer: 8.0, ..Setting::default() };
    let begin = |scheme: &str, memory: &Memory| {
        let mut world = World::with(&Config::new(scheme).unwrap().with_memory(memory), &setting);
        world.run_until(Time::from_millis(200));
        let metrics = world.handle.metrics().unwrap();
        (world, metrics)
    };
    let scheme = "floo:counterfactual:every=2s";
    let (mut world, metrics) = begin(scheme, &memory);
    let first = metrics.algorithm;
    let mut found = metrics;
    while found.algorithm == first {
        assert!(world.now < Time::from_secs(30), "{found:?}");
        world.run_until(world.now + Duration::from_millis(500));
        found = world.handle.metrics().unwrap();
    }

    let (during, _) = begin(scheme, &memory);
    assert_eq!(during.handle.metrics().unwrap().algorithm, first, "nothing is known yet");
    drop((world, during));
    let (next, begun) = begin(scheme, &memory);
    let (other, next_to_it) = begin(scheme, &memory);
    assert_eq!((begun.algorithm, begun.switches), (found.algorithm, 0));
    assert_eq!(next_to_it.algorithm, found.algorithm, "all connections may know it");
    drop((next, other));
    let (_, other_scheme) = begin("floo:counterfactual:every=3s", &memory);
    assert_eq!(other_scheme.algorithm, first, "it is of another scheme");
    memory.clear();
    assert_eq!(begin(scheme, &memory).1.algorithm, first);
}

#[test]
fn a_scheme_names_what_its_connections_resume() {
    let (rate, rtt) = (Rate::from_mbps(40.0), Duration::from_millis(100));
    let setting = Setting { rate, rtt, ..Setting::default() };
    let half_a_second = |scheme: &str| {
        let mut world = World::new(scheme, &setting);
        world.run_until(Time::from_millis(500));
        world.received
    };
    let (plain, resumed) =
        (half_a_second("bbr3"), half_a_second("resume:cwnd=500KB,rtt=100ms:bbr3"));
    println!("bbr3: {plain:?} in half a second, resumed {resumed:?}");
    assert!(resumed > plain.mul_f64(1.5), "{resumed:?} vs. {plain:?}");
}
