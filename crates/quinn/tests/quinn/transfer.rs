//! Transfers over a link of 8 Mbit/s and 40 ms with a buffer of one bandwidth-delay product.

use trimtab_quinn::units::{Bytes, Duration, Rate, Time};
use trimtab_quinn::{Config, Factors, Memory, Stage};

use crate::support::{MarkConfig, Setting, World, first_megabyte, goodput, over_marks, trace};

#[test]
fn each_kind_of_scheme_fills_the_link() {
    for scheme in
        ["bbr3", "cubic", "copa:mvfst", "mortise", "muses", "floo", "switch:cubic,bbr:every=3s"]
    {
        let goodput = goodput(scheme, &Setting::default());
        assert!(goodput.mbps() > 0.85 * 8.0, "{scheme}: {goodput:?}");
    }
}

/// Vivace compares rates that it tries for a round trip each. Bursts of ten packets blur them.
#[test]
fn vivace_fills_four_fifths_of_the_link() {
    let goodput = goodput("vivace", &Setting::default());
    assert!(goodput.mbps() > 0.8 * 8.0, "{goodput:?}");
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

/// quinn ignores rates. Vivace's window is twice what is in flight, so the window that makes the
/// rate is what holds it back.
#[test]
fn the_window_makes_the_rate_that_quinn_ignores() {
    let mut world = World::new("vivace", &Setting::default());
    world.run_until(Time::from_secs(5));
    for _ in 0..100 {
        world.run_until(world.now + Duration::from_millis(50));
        let metrics = world.handle.metrics().unwrap();
        let made = metrics.pacing_rate.unwrap() * metrics.srtt.unwrap();
        // What was sent at a higher rate is in flight for a round trip.
        let most = made.mul_f64(1.3) + Bytes::new(4 * 1452);
        assert!(metrics.inflight <= most, "{metrics:?}");
    }
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
    assert!(after.delivery_rate.unwrap().mbps() > 7.0);
    let later = world.goodput_until(Time::from_secs(10));
    println!("cubic to bbr3: {during:?} in the first second, {later:?} then");
    assert!(during.mbps() > 6.0 && later.mbps() > 0.85 * 8.0);
    // And on, to a learnt policy and back to a knob.
    world.handle.set_scheme("muses").unwrap();
    assert!(world.goodput_until(Time::from_secs(15)).mbps() > 0.7 * 8.0);
    world.handle.set_scheme("copa").unwrap();
    world.handle.set_knob("delta", 0.1).unwrap_err();
    assert!(world.goodput_until(Time::from_secs(20)).mbps() > 0.7 * 8.0);
    world.handle.set_knob("delta", 0.1).unwrap();
    assert_eq!(world.handle.metrics().unwrap().knobs.get("delta"), Some(0.1));
    let problem = world.handle.set_scheme("noq:cubic").unwrap_err().to_string();
    assert!(problem.contains("quinn_proto::congestion::CubicConfig"), "{problem}");
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
        println!("R = {request:?}: {:?}, {:?}", metrics.knobs, metrics.insight);
        metrics.knobs.get("delta").unwrap()
    };
    let (small, large) = (delta_with(Bytes::new(5_000)), delta_with(Bytes::new(100_000_000)));
    assert!(small > large, "{small} and {large}");
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
    assert!(idle.inflight <= Bytes::new(1452), "what arrived has left flight: {idle:?}");
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
    drop(world);
    assert_eq!(memory.len(), 1);
    let (second, world) = first_megabyte(&memory, &setting);
    println!("1 MB: {first:?}, resumed {second:?}");
    assert!(second.mul_f64(1.2) < first, "{second:?} vs. {first:?}");
    drop(world);

    // A tenth of the capacity: the connection retreats.
    let narrow = Setting { rate: rate.mul_f64(0.1), ..setting };
    let (alone, _) = first_megabyte(&Memory::new(), &narrow);
    let (misled, _) = first_megabyte(&memory, &narrow);
    println!("1 MB on a tenth: {alone:?}, misled {misled:?}");
    assert!(misled < alone.mul_f64(1.25), "{misled:?} vs. {alone:?}");
}
