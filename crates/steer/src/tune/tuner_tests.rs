use trimtab_units::{Bytes, Time};

use super::*;
use crate::testing::silent;

const MSS: Bytes = Bytes::new(1500);

/// What a flow gets.
#[derive(Clone, Copy)]
struct Link {
    mbps: f64,
    /// Mean queue, and whether it is gone sometimes.
    queue_ms: f64,
    idle: bool,
    loss: f64,
}

/// A link that is never idle.
const FULL: Link = Link { mbps: 24.0, queue_ms: 5.0, idle: false, loss: 0.0 };

fn tuner_for(formula: &str, sigma: f64) -> Tuner {
    let model = Model::parse(formula, &[]).unwrap();
    let config = TunerConfig { model, factors: Factors::new(), sigma };
    Tuner::new(Tuned::find("bbr3").unwrap(), config)
}

/// The boldness of values of BBR's knob.
fn boldness(values: &KnobValues) -> f64 {
    let thresh = values.get("loss_thresh").unwrap() / 0.02;
    if thresh < 1.0 { -thresh.ln() / 0.5_f64.ln() } else { thresh.ln() / 5.0_f64.ln() }
}

fn report(now: Time, link: Link) -> Report {
    let interval = Duration::from_millis(20);
    let sent = Rate::from_mbps(link.mbps) * interval;
    let rtt = Duration::from_millis_f64(20.0 + link.queue_ms);
    let min_rtt = Duration::from_millis(20);
    Report {
        acked: sent.mul_f64(1.0 - link.loss),
        lost: sent.mul_f64(link.loss),
        sent,
        rtt_samples: 10,
        rtt_mean: Some(rtt),
        rtt_min: Some(if link.idle { min_rtt } else { rtt }),
        rtt_max: Some(rtt),
        srtt: rtt,
        min_rtt,
        mss: MSS,
        ..silent(now, interval, "bbr3")
    }
}

/// Steers for so many seconds over a link on which boldness may matter. Gives what was set.
fn steer(t: &mut Tuner, seconds: u64, link: impl Fn(u64, f64) -> Link) -> Vec<KnobValues> {
    let (mut in_force, mut set) = (0.0, Vec::new());
    for k in 0..seconds * 50 {
        let report = report(Time::from_millis(20 * k), link(k, in_force));
        if let Some(Action::Set(values)) = t.on_report(&report) {
            in_force = boldness(&values);
            set.push(values);
        }
    }
    set
}

/// The mean boldness from the third minute to the sixth.
fn rest(t: &mut Tuner, link: impl Fn(u64, f64) -> Link) -> f64 {
    steer(t, 120, &link);
    (0..60).fold(0.0, |sum, _| {
        steer(t, 4, &link);
        sum + t.boldness / 60.0
    })
}

/// A link that is idle in so many of ten reports. At λ = 1000 Mbit/s per second, what boldness
/// brings in throughput is what it costs in delay at `best`: 36·e^(1.5·best) Mbit/s each.
fn concave(best: f64, idle: u64) -> impl Fn(u64, f64) -> Link {
    move |k, b| Link {
        mbps: 24.0 * (1.5 * b).exp(),
        queue_ms: 6.0 + 6.0 * (1.5 * best + 6.0 * (b - best)).exp(),
        idle: k % 10 < idle,
        loss: 0.0,
    }
}

/// Without Eq. 5 it rests where flows start: at 0.85 on a link that is always idle, at 0.25 on one
/// that is so for four tenths of the time.
#[test]
fn it_goes_towards_the_optimum_from_both_sides() {
    let of = |sigma: f64, best: f64, idle: u64| {
        rest(&mut tuner_for("T - 1000*D", sigma), concave(best, idle))
    };
    let (above, start) = (of(0.5, 0.2, 10), of(0.0, 0.2, 10));
    println!("best 0.2, from {start}: {above}");
    assert!(start > 0.6 && (0.0..0.4).contains(&above), "{start} {above}");
    let (below, start) = (of(0.5, 1.0, 4), of(0.0, 1.0, 4));
    println!("best 1, from {start}: {below}");
    assert!(start < 0.3 && (start + 0.15..1.0).contains(&below), "{start} {below}");
}

/// The dearer delay is, the shyer.
#[test]
fn the_application_s_price_decides() {
    let [cheap, fair, dear] = ["T - 100*D", "T - 1000*D", "T - 10000*D"]
        .map(|formula| rest(&mut tuner_for(formula, 0.5), concave(0.2, 10)));
    println!("{cheap} {fair} {dear}");
    assert!(cheap > fair + 0.2 && fair > dear + 0.2, "{cheap} {fair} {dear}");
}

#[test]
fn without_a_share_of_the_preference_it_stays_where_flows_start() {
    let mut t = tuner_for("T - 10000*D", 0.0);
    steer(&mut t, 200, concave(-0.5, 6));
    assert_eq!(t.learnt, 0.0);
    assert!((t.boldness - t.origin()).abs() < 0.1, "{} {}", t.boldness, t.origin());
}

/// A capacity that scatters by a third, whatever boldness is.
#[test]
fn noise_alone_does_not_move_it() {
    let mut t = tuner_for("T - 100*D", 0.5);
    let mut most = 0.0_f64;
    for turn in 0..100 {
        steer(&mut t, 4, |k, _| {
            let random = ((turn * 200 + k / 25) * 2_654_435_761 % 4_294_967_296) as f64 / 4.3e9;
            Link { mbps: 24.0 * (0.67 + 0.66 * random), queue_ms: 5.0, idle: false, loss: 0.0 }
        });
        most = most.max(t.learnt.abs());
    }
    println!("{most}");
    assert!(most < 0.15, "{most}");
}

/// A path that gets worse all the time favours neither of two neighbours: their order alternates.
#[test]
fn a_trend_is_no_difference() {
    let mut t = tuner_for("T", 0.5);
    steer(&mut t, 60, |k, _| Link { mbps: 1_000.0 * (-0.002 * k as f64).exp(), ..FULL });
    assert!(t.learnt.abs() < 0.05, "{}", t.learnt);
}

/// What a bold flow gets on a full link, others lose. What it loses by being bold counts.
#[test]
fn on_a_full_link_it_takes_nothing_from_others() {
    let run = |mbps: fn(f64) -> f64| {
        let mut t = tuner_for("T", 0.5);
        steer(&mut t, 120, |_, b| Link { mbps: mbps(b), ..FULL });
        t.boldness
    };
    assert_eq!(run(|b| 24.0 * b.exp()), 0.0);
    assert!(run(|b| 24.0 * (-b).exp()) < -0.3);
}

/// And so on a slow one, where a packet takes longer than what counts as a queue elsewhere.
#[test]
fn a_packet_on_a_slow_link_is_no_queue() {
    let mut t = tuner_for("T", 0.5);
    steer(&mut t, 60, |_, _| Link { mbps: 0.5, queue_ms: 24.0, idle: false, loss: 0.0 });
    assert!(t.idle > 0.9, "{}", t.idle);
    steer(&mut t, 60, |_, _| Link { mbps: 0.5, queue_ms: 60.0, idle: false, loss: 0.0 });
    assert!(t.idle < 0.1, "{}", t.idle);
}

/// After four windows in a row that lost much, every knob is as it was, for eight windows.
#[test]
fn harm_restores_every_knob_and_it_rests() {
    let model = Model::parse("T", &[]).unwrap();
    let config = TunerConfig { model, factors: Factors::new(), sigma: 0.5 };
    let mut t = Tuner::new(Tuned::find("cubic").unwrap(), config);
    let default = t.tuned.at(0.0);
    assert_eq!(default.iter().len(), 2);
    let mut set = Vec::new();
    for k in 0..20 * 50 {
        let link = Link { mbps: 24.0, queue_ms: 5.0, idle: true, loss: 0.2 };
        let report = Report { algorithm: "cubic", ..report(Time::from_millis(20 * k), link) };
        if let Some(Action::Set(values)) = t.on_report(&report) {
            set.push(values == default);
        }
    }
    let (first, rest) = set.split_at(HARM_WINDOWS as usize);
    assert!(first.iter().all(|is_default| !is_default), "{set:?}");
    let rest = &rest[..REST_WINDOWS as usize];
    assert!(rest.iter().all(|is_default| *is_default), "{set:?}");
    assert_eq!((t.learnt, t.boldness), (0.0, 0.0));
}

/// The last window of the rest ran with the defaults and is no neighbour.
#[test]
fn a_pair_after_the_rest_has_two_neighbours() {
    let mut t = tuner_for("T", 0.5);
    let mut run = |rests: bool, link: Link| {
        let mut set = None;
        while (t.resting > 0) == rests {
            set = t.on_report(&report(Time::ZERO, link));
        }
        (set, t.first.is_none())
    };
    run(false, Link { loss: 0.2, ..FULL });
    let (set, begins) = run(true, FULL);
    assert!(begins && matches!(set, Some(Action::Set(values)) if boldness(&values).abs() > 0.2));
}

#[test]
fn slow_start_idle_times_and_other_algorithms_decide_nothing() {
    let acts = |change: fn(Report) -> Report| {
        let mut t = tuner_for("T", 0.5);
        (0..400).any(|k| t.on_report(&change(report(Time::from_millis(20 * k), FULL))).is_some())
    };
    assert!(acts(|report| report));
    assert!(!acts(|report| Report { phase: Phase::SlowStart, ..report }));
    assert!(!acts(|report| Report { algorithm: "copa", ..report }));
    assert!(!acts(|report| Report { busy: report.interval.mul_f64(0.4), ..report }));
}

/// What arrives in the first two round trips was sent with the knobs before.
#[test]
fn what_was_sent_before_a_change_does_not_count() {
    let mut t = tuner_for("T", 0.5);
    let mut before = 0;
    for k in 0..20 {
        t.on_report(&report(Time::from_millis(20 * k), FULL));
        before += u32::from(t.window.time == 0.0);
    }
    // One report to begin with, and three of 20 ms each for two round trips of 25 ms.
    assert_eq!(before, 4);
}

#[test]
fn another_model_keeps_what_was_learnt_and_forgets_the_evidence() {
    let mut t = tuner_for("T - 1000*D", 0.5);
    steer(&mut t, 120, concave(0.2, 10));
    let boldness = t.boldness;
    assert!(t.evidence.count > 1.0 && t.insight().tradeoff.is_some());
    t.on_model(&Model::web());
    assert_eq!((t.boldness, t.evidence.count), (boldness, 0.0));
}

/// A window that is under way when the model changes is neither neighbour of the next pair.
#[test]
fn another_model_begins_a_new_pair() {
    let mut t = tuner_for("T", 0.5);
    // The first window of a pair is over, and half of the second.
    while t.first.is_none() || t.window.time < 0.5 {
        t.on_report(&report(Time::ZERO, FULL));
    }
    t.on_model(&Model::web());
    let Some(Action::Set(values)) = t.on_report(&report(Time::ZERO, FULL)) else {
        panic!("the neighbour is set anew");
    };
    assert!(boldness(&values) < 0.0);
    assert_eq!((t.first.is_none(), t.window.time), (true, 0.0));
}

/// Any reports, however odd, leave the knobs in their ranges.
#[test]
fn odd_reports_do_no_harm() {
    let mut t = tuner_for("T - 5*D", 0.5);
    let odd = [0.0, 1e-9, 1.0, 1e12];
    for k in 0..4_000_usize {
        let pick = |shift: usize| odd[(k >> (2 * shift)) % 4];
        let mut r = report(Time::from_millis(k as u64), FULL);
        (r.acked, r.lost) = (Bytes::from_f64(pick(0)), Bytes::from_f64(pick(1)));
        r.rtt_min = Some(Duration::from_secs_f64(pick(2)));
        (r.rtt_mean, r.srtt) = (r.rtt_min, Duration::from_secs_f64(pick(3).min(1.0)));
        r.interval = Duration::from_secs_f64(pick(4).min(10.0));
        r.busy = r.interval;
        if let Some(Action::Set(values)) = t.on_report(&r) {
            values.apply(&mut t.algorithm().build(&trimtab_cc::Config::default())).unwrap();
        }
        assert!((-1.0..=1.0).contains(&t.boldness), "{}", t.boldness);
    }
}
