use trimtab_cc::{Config, CongestionControl, get_knob};
use trimtab_units::{Bytes, Time};

use super::*;
use crate::testing::silent;

mod eq5;

pub(super) const MSS: Bytes = Bytes::new(1500);

/// What a report says of a flow that is alone on a link.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) packets_per_s: f64,
    pub(super) rtt_min_ms: f64,
    pub(super) queue_packets: f64,
    pub(super) loss: f64,
}

pub(super) fn report(now: Time, link: Link) -> Report {
    let rtt = link.rtt_min_ms + 1e3 * link.queue_packets / link.packets_per_s;
    let interval = Duration::from_millis_f64(rtt);
    let packets = link.packets_per_s * interval.as_secs_f64();
    let ms = Duration::from_millis_f64;
    Report {
        sent: MSS.mul_f64(packets),
        acked: MSS.mul_f64(packets * (1.0 - link.loss)),
        lost: MSS.mul_f64(packets * link.loss),
        rtt_samples: 10,
        rtt_mean: Some(ms(rtt)),
        rtt_min: Some(ms(rtt)),
        rtt_max: Some(ms(rtt)),
        srtt: ms(rtt),
        min_rtt: ms(link.rtt_min_ms),
        delivery_rate: Some(Rate::from_bytes_per_sec_f64(link.packets_per_s * 1500.0)),
        delivery_rate_any: Some(Rate::from_bytes_per_sec_f64(link.packets_per_s * 1500.0)),
        window: MSS.mul_f64(packets),
        inflight: MSS.mul_f64(packets),
        mss: MSS,
        factors: Factors::new().with_request(Bytes::new(1_000_000)),
        ..silent(now, interval, "copa")
    }
}

/// Runs the controller over reports of a link; the k-th one may differ.
fn steer(mortise: &mut Mortise, reports: u32, mut link: impl FnMut(u32, f64) -> Link) {
    let mut now = Time::ZERO;
    for k in 0..reports {
        let report = report(now, link(k, mortise.applied_delta()));
        now += report.interval;
        if let Some(Action::Set(values)) = mortise.on_report(&report) {
            values.apply(&mut Mortise::algorithm().build(&trimtab_cc::Config::default())).unwrap();
        }
    }
}

fn mortise() -> Mortise {
    Mortise::new(MortiseConfig::new(Model::download()))
}

/// A link of 12 Mbit/s and 20 ms whose queue is what Copa keeps.
pub(super) fn steady(delta: f64) -> Link {
    let queue_packets = MEAN_QUEUE / delta;
    Link { packets_per_s: 1_000.0, rtt_min_ms: 20.0, queue_packets, loss: 0.0 }
}

/// What docs/concepts/mortise.md says is set once, and nothing else; and the tuner reckons with the
/// δ that runs.
#[test]
fn its_algorithm_is_copa_with_its_settings() {
    let copa = Mortise::algorithm().build(&Config::default());
    let plain = Spec::new(COPA).unwrap().build(&Config::default());
    let changed: Vec<_> = (copa.knobs().iter())
        .filter(|knob| get_knob(&copa, knob.name) != get_knob(&plain, knob.name))
        .map(|knob| (knob.name, get_knob(&copa, knob.name).unwrap()))
        .collect();
    let mut expected = [
        ("delta", 0.035),
        ("velocity_max", 2.0),
        ("growth_max", 0.25),
        ("competitive", 2.0),
        ("min_rtt_window", 30.0),
        ("loss_beta", 0.7),
        ("loss_tolerance", 0.1),
    ];
    let place = |name: &str| copa.knobs().iter().position(|knob| knob.name == name);
    expected.sort_by_key(|(name, _)| place(name));
    assert_eq!(changed, expected);
    assert_eq!(get_knob(&copa, "delta"), Some(mortise().applied_delta()));
}

/// Where the excess over the next tradeoff turns from too little to too much: `eq5` has decisions
/// by it.
#[test]
fn the_crossing_lies_between_the_pairs_where_the_excess_turns() {
    assert!((crossing(&[-1.0, -0.5, 0.0, 0.5]) - 0.5).abs() < 1e-12);
    // Between two pairs it interpolates.
    assert!(crossing(&[-1.0, -0.5, 0.5, 1.0]).abs() < 1e-12);
    assert!((crossing(&[-3.0, 1.0, 2.0, 3.0]) + 0.75).abs() < 1e-12);
    // Where even the boldest pair achieves more than that, it goes there; and the other way round.
    assert_eq!(crossing(&[1.0, 2.0, 3.0, 4.0]), -1.5);
    assert_eq!(crossing(&[-4.0, -3.0, -2.0, -1.0]), 1.5);
}

/// On a link that varies, Copa's window swings by a factor of three within a few round trips while
/// the queues that the path has proven to hold stay as long. So does the gain.
#[test]
fn the_pacing_gain_does_not_swing_with_the_window() {
    let mut m = mortise();
    let (mut now, mut gains) = (Time::ZERO, Vec::new());
    for k in 0..600 {
        let window = if k / 6 % 2 == 0 { 30.0 } else { 90.0 };
        // Little's law: the queue is 20 packets all the time.
        let link =
            Link { queue_packets: 20.0, packets_per_s: (window - 20.0) * 50.0, ..steady(0.1) };
        let report = Report { window: MSS.mul_f64(window), ..report(now, link) };
        now += report.interval;
        if let Some(Action::Set(values)) = m.on_report(&report)
            && k >= 100
        {
            gains.extend(values.get("pacing_gain"));
        }
    }
    assert!(gains.len() <= 2, "after a hundred round trips the gain is known: {gains:?}");
}

/// expected.md X7: losses to the buffer, whose price the preference contains, raise δ.
#[test]
fn overflow_raises_delta() {
    let mut m = mortise();
    steer(&mut m, 200, |k, delta| {
        let full = k % 3 == 0;
        let queue_packets = if full { 20.0 } else { (MEAN_QUEUE / delta).min(20.0) * 0.3 };
        Link { queue_packets, loss: if full { 0.1 } else { 0.0 }, ..steady(delta) }
    });
    assert!(m.applied_delta() > 2.0 * DELTA_START, "{}", m.applied_delta());
}

/// The dearer delay is to the application, the shorter the queue, over more than a decade of
/// prices. Most of this is where flows with such prices start; `eq5` has what Eq. 5 adds.
#[test]
fn a_dear_delay_is_paid_with_throughput() {
    let rest = |formula: &str| {
        let mut m = Mortise::new(MortiseConfig::new(Model::parse(formula, &[]).unwrap()));
        let mut log_mean = 0.0;
        for _ in 0..20 {
            steer(&mut m, 100, |k, delta| {
                let (rate, swing) = if k * 37 % 11 < 6 { (1_500.0, 0.2) } else { (500.0, 1.0) };
                Link {
                    packets_per_s: rate,
                    queue_packets: swing * MEAN_QUEUE / delta,
                    ..steady(delta)
                }
            });
            log_mean += m.applied_delta().ln() / 20.0;
        }
        log_mean.exp()
    };
    let [cheap, fair, dear] = ["T - 5*D", "T - 150*D", "T - 1500*D"].map(rest);
    assert!(cheap < 2.0 * DELTA_START, "{cheap}");
    assert!(fair > 1.5 * cheap && dear > 1.5 * fair && dear > 5.0 * cheap, "{cheap} {fair} {dear}");
}

/// Random loss is the link's own: it is no reason to keep a shorter queue. On a link that varies;
/// on a steady one every δ serves as well, and any rounding decides.
#[test]
fn random_loss_is_no_overflow() {
    let run = |loss: f64| {
        let mut m = mortise();
        let mut log_mean = 0.0;
        for _ in 0..20 {
            steer(&mut m, 100, |k, delta| {
                let (rate, swing) = if k * 37 % 11 < 6 { (1_500.0, 0.2) } else { (500.0, 1.0) };
                let queue_packets = swing * MEAN_QUEUE / delta;
                Link { packets_per_s: rate, queue_packets, loss, ..steady(delta) }
            });
            assert!(m.path.overflow() < OVERFLOW, "{loss}: {}", m.path.overflow());
            log_mean += m.applied_delta().ln() / 20.0;
        }
        log_mean
    };
    let clean = run(0.0);
    for loss in [0.005, 0.02, 0.04] {
        assert!((run(loss) - clean).abs() < 0.2, "{loss}: {} and {}", run(loss).exp(), clean.exp());
    }
}

/// §3.3: a change of bandwidth drops the history and starts a wide search at once.
#[test]
fn a_change_of_bandwidth_starts_a_new_search() {
    let jump = |k: u32, delta: f64| {
        // A link is never quite steady.
        let wobble = 1.0 + 0.05 * f64::from(k * 37 % 11) / 11.0;
        let factor = if k < 300 { wobble } else { 4.0 * wobble };
        Link { packets_per_s: 1_000.0 * factor, ..steady(delta) }
    };
    let mut m = mortise();
    steer(&mut m, 300, jump);
    let before = m.path.steps().len();
    steer(&mut m, 24, |k, delta| jump(k + 300, delta));
    assert!(m.path.steps().len() < before, "{before} steps and still as many");
    // And without detection it does not.
    let mut blind = Mortise::new(MortiseConfig { change_points: false, ..m.config().clone() });
    steer(&mut blind, 300, jump);
    steer(&mut blind, 24, |k, delta| jump(k + 300, delta));
    assert_eq!(blind.path.steps().len(), path::STEPS_MAX);
}

/// Persistent harm ends at the safe setting, whatever the model wants.
#[test]
fn harm_leads_to_the_safe_setting() {
    let greedy = Model::parse("T", &[]).unwrap();
    let mut m = Mortise::new(MortiseConfig::new(greedy));
    steer(&mut m, 400, |k, delta| {
        let full = k % 2 == 0;
        let loss = if full { 0.4 } else { 0.0 };
        Link { queue_packets: if full { 30.0 } else { 1.0 }, loss, ..steady(delta) }
    });
    assert!(m.applied_delta() >= DELTA_SAFE, "{m:?}");
}

/// A formula's own factors reach the preference: ten times the price of delay, ten times λ.
#[test]
fn fixed_factors_reach_the_preference() {
    let lambda = |price: f64| {
        let model = Model::parse("T - price*D", &["price"]).unwrap();
        let mut config = MortiseConfig::new(model);
        config.factors.set_named("price", price).unwrap();
        let mut m = Mortise::new(config);
        steer(&mut m, 50, |_, delta| steady(delta));
        m.hints().lambda
    };
    assert!((lambda(5.0) - 5.0).abs() < 1e-9);
    assert!((lambda(50.0) - 50.0).abs() < 1e-9);
}

/// The nearest by ratio, not by difference.
#[test]
fn discrete_values_are_the_nearest_by_ratio() {
    assert_eq!([0.01, 0.05, 0.07, 0.2, 0.45].map(nearest), [0.04, 0.04, 0.08, 0.16, 0.5]);
}

/// Reports in which every odd value of one field meets every one of the others.
pub(super) fn odd_reports() -> impl Iterator<Item = Report> {
    let odd = [0.0, 1e-9, 1.0, 1e12];
    let mut now = Time::ZERO;
    (0..4_usize.pow(7)).map(move |k| {
        let mut r = report(now, steady(0.1));
        let pick = |place: u32| odd[(k / 4_usize.pow(place)) % 4];
        r.acked = Bytes::from_f64(pick(0));
        r.lost = Bytes::from_f64(pick(1));
        r.rtt_min = Some(Duration::from_secs_f64(pick(2)));
        r.rtt_mean = Some(Duration::from_secs_f64(pick(3)));
        r.rtt_max = r.rtt_mean.max(r.rtt_min);
        r.interval = Duration::from_secs_f64(pick(4).min(10.0));
        r.min_rtt = Duration::from_secs_f64(pick(5));
        r.srtt = Duration::from_secs_f64(pick(6).min(1.0));
        r.busy = r.interval;
        now += r.interval;
        r
    })
}

/// Any reports, however odd, leave the knobs in their ranges and the state finite.
#[test]
fn odd_reports_do_no_harm() {
    let mut m = mortise();
    for r in odd_reports() {
        if let Some(Action::Set(values)) = m.on_report(&r) {
            assert!(values.iter().all(|(_, value)| value.is_finite()));
        }
        assert!((DELTA_MIN..=DELTA_MAX).contains(&m.delta), "{}", m.delta);
    }
}

#[test]
fn another_model_keeps_delta_and_settings() {
    let config =
        MortiseConfig { sigma: 0.3, discrete: true, ..MortiseConfig::new(Model::download()) };
    let mut mortise = Mortise::new(config);
    steer(&mut mortise, 200, |_, delta| steady(delta));
    let delta = mortise.applied_delta();
    let before = mortise.insight().preference;
    assert!(before.is_some());
    mortise.on_model(&Model::web());
    assert_eq!(mortise.applied_delta(), delta);
    assert_eq!((mortise.config().sigma, mortise.config().discrete), (0.3, true));
    assert!(matches!(mortise.config().model, Model::Web(_)));
    assert_ne!(mortise.insight().preference, before, "nothing is known by the new model yet");
}

/// A host explains each action: δ follows the gradient, the pacing gain the path's bursts.
#[test]
fn a_reason_is_that_of_the_knob_that_is_turned() {
    let mortise = Mortise::new(MortiseConfig::new(Model::download()));
    let reason = |knob| mortise.reason(&Action::Set(KnobValues::one(knob, 1.0)));
    assert_eq!(reason("delta"), Some(Reason::Preference));
    assert_eq!(reason("competitive"), Some(Reason::Preference));
    assert_eq!(reason("pacing_gain"), Some(Reason::Burst));
}

/// One whose users would give so many Mbit/s for a second of delay less, after decisions on a path
/// of 12 Mbit/s and 20 ms, and what it told the algorithm last to do next to flows that fill the
/// queue.
fn priced(mut mortise: Mortise, price: f64) -> (Mortise, Option<f64>) {
    mortise.on_model(&Model::parse(&format!("T - {price}*D"), &[]).unwrap());
    let (mut now, mut told) = (Time::ZERO, None);
    for _ in 0..400 {
        let report = report(now, steady(mortise.applied_delta()));
        now += report.interval;
        if let Some(Action::Set(values)) = mortise.on_report(&report) {
            told = values.get("competitive").or(told);
        }
    }
    (mortise, told)
}

/// `DEAR` is 60 Mbit/s a second on this path, and three times that is the bound.
#[test]
fn a_flow_yields_to_others_where_delay_is_dear() {
    let (cheap, told) = priced(mortise(), 150.0);
    assert_eq!(told, Some(2.0), "after a change of the model it tells anew");
    let (dear, told) = priced(cheap, 300.0);
    assert_eq!(told, Some(0.0));
    let (_, told) = priced(dear, 150.0);
    assert_eq!(told, Some(2.0), "and claims its share again");
    let deaf = MortiseConfig { sigma: 0.0, ..MortiseConfig::new(Model::download()) };
    let (_, told) = priced(Mortise::new(deaf), 300.0);
    assert_eq!(told, Some(2.0), "the preference has no weight");
}

/// The tuner says nothing twice, and a new connection already runs with what is set at first.
#[test]
fn what_the_algorithm_knows_is_not_told_again() {
    let model = Model::parse("T - 20*D", &[]).unwrap();
    let mut mortise = Mortise::new(MortiseConfig::new(model));
    let mut now = Time::ZERO;
    for _ in 0..400 {
        let report = report(now, steady(mortise.applied_delta()));
        now += report.interval;
        if let Some(Action::Set(values)) = mortise.on_report(&report) {
            assert_eq!(values.get("competitive"), None);
        }
    }
}

#[test]
fn reports_come_every_round_trip_within_bounds() {
    let wanted = [1, 10, 40, 250, 900].map(|rtt| mortise().interval(Duration::from_millis(rtt)));
    assert_eq!(wanted, [10, 10, 40, 250, 250].map(Duration::from_millis));
}

#[test]
fn a_flow_goes_on_from_the_delta_that_it_had() {
    let config = || MortiseConfig::new(Model::download());
    assert_eq!(Mortise::resume(config(), 0.2).applied_delta(), 0.2);
    assert_eq!(Mortise::resume(config(), 9.0).applied_delta(), DELTA_MAX);
    assert_eq!(Mortise::resume(config(), 0.0).applied_delta(), DELTA_MIN);
}

#[test]
fn slow_start_and_other_algorithms_decide_nothing() {
    let decided = |phase: Phase, algorithm: &'static str| {
        let (mut m, mut now, mut actions) = (mortise(), Time::ZERO, 0);
        for _ in 0..100 {
            let report = Report { phase, algorithm, ..report(now, steady(0.3)) };
            now += report.interval;
            actions += u32::from(m.on_report(&report).is_some());
        }
        (actions > 0, m.path.steps().len() > 0)
    };
    assert_eq!(decided(Phase::Steady, "copa"), (true, true));
    assert_eq!(decided(Phase::SlowStart, "copa"), (false, true), "it learns of the path");
    assert_eq!(decided(Phase::Steady, "cubic"), (false, false));
}

/// Jitter idles a link whose queue is shorter than four packets or 2.5 ms.
#[test]
fn some_queue_is_kept_where_delay_is_not_dear() {
    let queue = |capacity: f64| {
        let mut m = mortise();
        m.path.capacity = capacity;
        MEAN_QUEUE / m.delta_max()
    };
    assert!((queue(1_000.0) - 4.0).abs() < 1e-9);
    assert!((queue(10_000.0) - 25.0).abs() < 1e-9);
    // There is no need for more than 62.5 packets.
    assert!((queue(1e6) - 62.5).abs() < 1e-9);
    // Below DEAR nothing else matters, and above it the queue shrinks in proportion.
    let kept = |price: f64| MEAN_QUEUE / priced(mortise(), price).0.delta_max();
    assert!((kept(30.0) - 4.0).abs() < 1e-9);
    assert!((kept(180.0) - 4.0 / 3.0).abs() < 0.1, "{}", kept(180.0));
}

/// Of two applications the one to whom delay is three times as dear starts with a third of the
/// queue, beyond what is dear at all.
#[test]
fn flows_to_whom_delay_is_dear_start_shyer() {
    let origin = |price: f64| {
        let mut m = mortise();
        m.price = price.ln();
        m.origin()
    };
    assert_eq!(origin(DEAR / 10.0), origin(DEAR / 2.0));
    assert!((origin(DEAR) / DELTA_START - 1.0).abs() < 1e-9);
    assert!((origin(3.0 * DEAR) / DELTA_START - 3.0).abs() < 1e-9);
    assert_eq!(origin(1e6), DELTA_SAFE);
}

#[test]
fn flows_on_a_path_that_overflows_start_shyer() {
    let origin = |loss: f64| {
        let mut m = mortise();
        steer(&mut m, 600, |_, _| Link { queue_packets: 20.0, loss, ..steady(0.1) });
        m.price = f64::MIN;
        m.origin()
    };
    let [none, some, more] = [0.0, 0.01, 0.04].map(origin);
    assert_eq!(none, DELTA_START);
    assert!(none < some && some < more && more <= DELTA_SAFE, "{some} {more}");
}

/// expected.md X9: δ rests. A link that stands still for some seconds is no reason to move.
#[test]
fn an_outage_leaves_delta_where_it_was() {
    let mut m = mortise();
    steer(&mut m, 600, |_, delta| steady(delta));
    let before = m.applied_delta();
    steer(&mut m, 3, |_, _| Link { packets_per_s: 5.0, queue_packets: 20.0, ..steady(0.1) });
    steer(&mut m, 600, |_, delta| steady(delta));
    let after = m.applied_delta();
    assert!((after / before - 1.0).abs() < 0.1, "{before} to {after}");
}

/// After a change the neighbours that are tried lie further apart, and a decision follows at once.
#[test]
fn a_new_search_is_wide_and_decides_soon() {
    let mut m = mortise();
    steer(&mut m, 400, |_, delta| steady(delta));
    assert_eq!((m.period, m.exploring), (PERIOD_MAX, false));
    m.explore();
    assert_eq!((m.period, m.reports, m.exploring), (PERIOD_MIN, 0, true));
    assert_eq!(m.path.steps().len(), PERIOD_MIN as usize);
    let spread = |ratio: f64| {
        let points = m.neighbours(ratio);
        assert!(points.is_sorted_by(|bold, shy| bold.delay > shy.delay), "{points:?}");
        points[0].delay - points[POINTS - 1].delay
    };
    assert!(spread(NEIGHBOUR_FAR) > 1.5 * spread(NEIGHBOUR));
    steer(&mut m, PERIOD_MIN, |_, delta| steady(delta));
    assert!(!m.exploring, "it has decided");
}
