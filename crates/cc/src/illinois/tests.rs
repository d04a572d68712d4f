use super::*;
use crate::migrate::PathView;
use crate::newreno::NewReno;
use crate::testing::link::{Link, MSS, Outcome, run};
use crate::testing::{acked, hand_over, lost, timed_out};
use crate::{Phase, set_knob};

const BASE: Duration = Duration::from_millis(50);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[track_caller]
fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got}, not {want}");
}

/// Past slow start with a window of so many packets, and 100 ms seen in the queue at most.
fn steady(packets: u64) -> Illinois {
    let config = Config { initial_window: MSS * packets, ..Config::with_mss(MSS, 0) };
    let mut illinois = Illinois::new(&config);
    illinois.window.ssthresh = illinois.window.size;
    (illinois.delays.base, illinois.delays.max) = (BASE, BASE + ms(100));
    illinois.round.ends(&acked(at(1), at(1), MSS, BASE));
    illinois
}

/// Rounds of one acknowledgement each, at these queueing delays; the factors after each.
fn rounds(illinois: &mut Illinois, queues: &[u64]) -> std::vec::Vec<Factors> {
    let mut factors = std::vec![];
    for queue in queues {
        let now = illinois_now(illinois) + ms(1000);
        let rtt = BASE + ms(*queue);
        // A window that is not used: what moves is alpha and beta alone.
        let ack = Ack { cwnd_limited: false, ..acked(now, now - ms(1), MSS, rtt) };
        illinois.on_ack(&ack);
        factors.push(illinois.factors);
    }
    factors
}

/// A time after the present round began.
fn illinois_now(illinois: &Illinois) -> Time {
    let mut now = at(1);
    let ends = |now: Time| illinois.round.clone().ends(&acked(now, now, Bytes::ZERO, BASE));
    while !ends(now) {
        now += ms(500);
    }
    now
}

/// The paper's f1 at d1 and dm, and κ1 / (κ2 + da) between them, with κ1 = (dm - d1) αmin αmax /
/// (αmax - αmin) and κ2 = (dm - d1) αmin / (αmax - αmin) - d1.
#[test]
fn alpha_is_hyperbolic_in_the_delay() {
    let values = Values::default();
    let (dm, d1, least, most) = (100.0, 1.0, 0.3, 10.0);
    close(alpha(d1, dm, &values), most);
    close(alpha(dm, dm, &values), least);
    let kappa1 = (dm - d1) * least * most / (most - least);
    let kappa2 = (dm - d1) * least / (most - least) - d1;
    for da in [1.5, 2.0, 10.0, 37.0, 80.0, 99.0] {
        close(alpha(da, dm, &values), kappa1 / (kappa2 + da));
    }
    // Half the greatest delay: 99 * 10 / (99 + 49 * 9.7 / 0.3).
    close(alpha(50.0, 100.0, &values), 990.0 / (99.0 + 49.0 * 97.0 / 3.0));
}

/// The paper's f2 at d2 and d3 and half-way between them.
#[test]
fn beta_is_linear_between_d2_and_d3() {
    let values = Values::default();
    for (da, want) in [
        (0.0, 0.125),
        (10.0, 0.125),
        (10.7, 0.12875),
        (45.0, 0.3125),
        (79.3, 0.49625),
        (80.0, 0.5),
        (100.0, 0.5),
    ] {
        close(beta(da, 100.0, &values), want);
    }
    close(beta(0.0, 0.0, &values), 0.125);
}

/// tcp_illinois.c `alpha()` with theta = 5: after delay was seen, four rounds without it change
/// nothing, and the fifth opens. Before, the first does.
#[test]
fn growth_is_fastest_again_after_five_rounds_without_delay() {
    let mut illinois = steady(100);
    let alphas = |illinois: &mut Illinois, queues: &[u64]| {
        rounds(illinois, queues).iter().map(|f| f.alpha).collect::<std::vec::Vec<_>>()
    };
    assert_eq!(alphas(&mut illinois, &[0, 1]), [10.0, 10.0], "d1 is 1 ms");
    let slow = alpha(0.05, 0.1, &Values::default());
    assert_eq!(alphas(&mut illinois, &[50, 0, 0, 0, 0, 0]), [slow, slow, slow, slow, slow, 10.0]);
    // A round with delay between them does not begin the count again (tcp_illinois.c `rtt_low`).
    assert_eq!(alphas(&mut illinois, &[50, 0, 0, 0, 50, 0, 0])[5..], [slow, 10.0]);
    set_knob(&mut illinois, "theta", 1.0).unwrap();
    assert_eq!(alphas(&mut illinois, &[50, 0]), [slow, 10.0]);
}

/// Once the guard has opened it stays open until delay is seen (tcp_illinois.c `rtt_above`).
#[test]
fn an_open_guard_stays_open() {
    let mut guard = Guard { above: true, low: 0 };
    let opens = [true; 7].map(|low| guard.opens(low, 5.0));
    assert_eq!(opens, [false, false, false, false, true, true, true]);
    assert_eq!([false, true].map(|low| guard.opens(low, 5.0)), [false, false]);
}

/// The average of a round counts, not its last sample; and the greatest of all rounds.
#[test]
fn the_delay_is_the_average_of_the_round() {
    let mut illinois = steady(100);
    let ack = |illinois: &mut Illinois, now: u64, sent: u64, queue: u64| {
        let rtt = BASE + ms(queue);
        illinois.on_ack(&Ack { cwnd_limited: false, ..acked(at(now), at(sent), MSS, rtt) });
    };
    for queue in [0, 30, 60] {
        ack(&mut illinois, 50, 1, queue); // sent in the round trip before
    }
    ack(&mut illinois, 51, 50, 90);
    close(illinois.factors.alpha, alpha(0.045, 0.1, &Values::default()));
    close(illinois.factors.beta, 0.125 + 0.375 * 35.0 / 70.0);
    // A queue of 200 ms is the greatest from now on: 50 of 200.
    ack(&mut illinois, 60, 50, 200);
    assert_eq!(illinois.delays.queues(), Some((ms(200), ms(200))));
    ack(&mut illinois, 110, 60, 0);
    ack(&mut illinois, 120, 111, 50);
    close(illinois.factors.beta, 0.125 + 0.375 * (50.0 - 20.0) / 140.0);
}

/// tcp_illinois.c `update_params()` with win_thresh = 15.
#[test]
fn small_windows_are_renos() {
    for (packets, win_thresh, reno) in [(14, 15.0, true), (15, 15.0, false), (14, 14.0, false)] {
        let mut illinois = steady(packets);
        set_knob(&mut illinois, "win_thresh", win_thresh).unwrap();
        let factors = rounds(&mut illinois, &[0])[0];
        let want = if reno { RENO } else { Factors { alpha: 10.0, beta: 0.125 } };
        assert_eq!(factors, want, "{packets} packets, threshold {win_thresh}");
    }
}

/// The paper's increase of α packets, for a window acknowledged.
#[test]
fn a_window_acknowledged_adds_alpha_packets() {
    for (alpha, want) in [(10.0, 110), (1.0, 101), (0.3, 100)] {
        let mut illinois = steady(100);
        illinois.factors.alpha = alpha;
        for _ in 0..105 {
            let ack = Ack { delivered: Bytes::ZERO, ..acked(at(1), at(0), MSS, BASE) };
            illinois.on_ack(&ack);
        }
        // A packet more is due after a window that grows meanwhile: 105 of 100 to 110.
        assert_eq!(illinois.window().get() / MSS.get(), want, "{alpha}");
    }
    let mut illinois = steady(100);
    illinois.factors.alpha = 0.3;
    for _ in 0..334 {
        illinois.on_ack(&Ack { delivered: Bytes::ZERO, ..acked(at(1), at(0), MSS, BASE) });
    }
    assert_eq!(illinois.window(), MSS * 101, "parts of packets are kept");
    let idle = Ack { cwnd_limited: false, ..acked(at(1), at(0), MSS * 1000, BASE) };
    illinois.on_ack(&idle);
    assert_eq!(illinois.window(), MSS * 101, "a window that is not used does not grow");
}

#[test]
fn slow_start_doubles_whatever_alpha_is() {
    let mut illinois = Illinois::new(&Config::with_mss(MSS, 0));
    for _ in 0..10 {
        illinois.on_ack(&acked(at(50), at(0), MSS, BASE));
    }
    assert_eq!((illinois.window(), illinois.phase()), (MSS * 20, Phase::SlowStart));
    // Of 8 packets, 5 go up to the threshold; the rest counts α times: 30 of the 25 that it takes.
    illinois.window.ssthresh = MSS * 25;
    illinois.on_ack(&acked(at(51), at(0), MSS * 8, BASE));
    assert_eq!((illinois.window(), illinois.phase()), (MSS * 26, Phase::Steady));
}

/// The paper's decrease of β W, once in a round trip.
#[test]
fn a_loss_takes_beta_of_the_window() {
    for (queue, left) in [(0, 875), (45, 688), (80, 500), (100, 500)] {
        let mut illinois = steady(1000);
        rounds(&mut illinois, &[queue]);
        let now = illinois_now(&illinois);
        illinois.on_loss(&lost(now, now));
        let got = (illinois.window().ratio(MSS) + 0.5) as u64;
        assert_eq!((got, illinois.phase()), (left, Phase::Recovery), "{queue} ms queued");
        illinois.on_loss(&lost(now + ms(1), now));
        let again = (illinois.window().ratio(MSS) + 0.5) as u64;
        assert_eq!(again, left, "the same round trip");
        illinois.on_spurious_loss(now + ms(2));
        assert_eq!(illinois.window(), MSS * 1000);
    }
}

/// RFC 3168 §5: without a queue a loss takes an eighth, and a mark three tenths (`ceiling.rs`).
/// What then comes back is that bound's, not ten packets in a round trip.
#[test]
fn a_mark_bounds_the_window() {
    let mut illinois = steady(100);
    rounds(&mut illinois, &[0]);
    let mut now = illinois_now(&illinois);
    let marked = Marked { now, newest_sent_at: now, inflight: MSS, prior_inflight: MSS * 2 };
    illinois.on_marked(&marked);
    assert_eq!((illinois.window(), illinois.factors.beta), (MSS * 70, 0.125));
    assert_eq!((illinois.phase(), illinois.ssthresh()), (Phase::Recovery, Some(MSS * 70)));
    illinois.on_marked(&marked);
    assert_eq!(illinois.window(), MSS * 70, "the same round trip");
    for _ in 0..17 {
        now += BASE;
        for _ in 0..70 {
            illinois.on_ack(&acked(now, now - ms(1), MSS, BASE));
        }
    }
    let got = illinois.window().get() / MSS.get();
    assert!((77..=79).contains(&got), "9/17 of a packet in each of 17 round trips: {got}");
    illinois.on_spurious_loss(now);
    assert!(illinois.window() <= MSS * 79, "the bound is not undone: {}", illinois.window());
    // With a full queue the loss's half is less than the bound, and grows to it at alpha.
    let mut full = steady(100);
    rounds(&mut full, &[100]);
    let now = illinois_now(&full);
    full.on_marked(&Marked { now, newest_sent_at: now, ..marked });
    assert_eq!(full.window(), MSS * 50);
}

/// In recovery samples add up for the round that ends after it.
#[test]
fn rounds_wait_for_the_end_of_recovery() {
    let mut illinois = steady(100);
    let before = illinois.factors;
    illinois.on_loss(&lost(at(100), at(90)));
    let held = illinois.window();
    illinois.on_ack(&acked(at(110), at(95), MSS * 90, BASE + ms(100)));
    assert_eq!((illinois.factors, illinois.window()), (before, held));
    illinois.on_ack(&Ack { cwnd_limited: false, ..acked(at(160), at(101), MSS, BASE) });
    close(illinois.factors.beta, 0.125 + 0.375 * 40.0 / 70.0); // 50 ms on average
}

/// tcp_illinois.c `tcp_illinois_state()`: Reno until a round is measured, and the guard is open.
#[test]
fn a_timeout_forgets_the_delay() {
    let mut illinois = steady(100);
    rounds(&mut illinois, &[0, 50, 0]);
    assert!(illinois.guard.above && illinois.guard.low == 1);
    let (beta, now) = (illinois.factors.beta, illinois_now(&illinois));
    assert_eq!(beta, 0.125);
    illinois.on_timeout(&timed_out(now));
    assert_eq!((illinois.window(), illinois.factors), (MSS * 2, RENO));
    assert_eq!(illinois.ssthresh(), Some((MSS * 100).mul_f64(1.0 - beta)), "the old beta");
    assert!(!illinois.guard.above && illinois.guard.low == 0);
    assert_eq!(illinois.delays.queues(), None);
    illinois.on_timeout(&timed_out(now + ms(1000)));
    assert_eq!(illinois.ssthresh(), Some(MSS * 100 * 7 / 8), "the second holds the threshold");
}

#[test]
fn knobs_bound_the_factors() {
    let mut illinois = steady(100);
    for (name, value) in
        [("alpha_min", 0.5), ("alpha_max", 4.0), ("beta_min", 0.2), ("beta_max", 0.6)]
    {
        set_knob(&mut illinois, name, value).unwrap();
    }
    assert_eq!(rounds(&mut illinois, &[0])[0], Factors { alpha: 4.0, beta: 0.2 });
    let full = rounds(&mut illinois, &[100])[0];
    close(full.alpha, 0.5);
    close(full.beta, 0.6);
}

/// A round trip with Reno's factors, then what its delay says.
#[test]
fn after_a_hand_over_a_round_is_renos() {
    let rtt = ms(40);
    let mut illinois = Illinois::new(&Config::with_mss(MSS, 0));
    let record = hand_over(MSS * 150, rtt);
    illinois.take_over(&record);
    assert_eq!((illinois.window(), illinois.factors), (MSS * 150, RENO));
    assert!(illinois.is_converged());
    assert_eq!((illinois.delays.base, illinois.delays.max), (ms(20), ms(40)));
    let ack = |sent: Time, packets: u64| Ack {
        delivered: record.delivered + MSS * packets,
        cwnd_limited: false,
        inflight: MSS * 150,
        ..acked(record.now + rtt, sent, MSS, ms(30))
    };
    illinois.on_ack(&ack(record.now - ms(1), 1));
    assert_eq!(illinois.factors, RENO, "it was sent by another");
    illinois.on_ack(&ack(record.now + ms(1), 151));
    close(illinois.factors.beta, 0.125 + 0.375 * 40.0 / 70.0); // 10 of 20 ms
    let point = illinois.operating_point(&PathView::new());
    assert!(point.cut_by_losses && point.window == MSS * 150);
    let mut part = Illinois::new(&Config::with_mss(MSS, 0));
    part.inherit(MSS * 150, rtt);
    assert_eq!((part.window(), part.phase()), (MSS * 150, Phase::SlowStart));
}

/// Mean window of a flow without a queue that loses one packet in `every`.
fn mean_window(mut cca: impl CongestionControl, every: u64) -> f64 {
    let (mut now, mut sent, mut sum, mut looks) = (at(1000), 0, 0.0, 0);
    for round in 0..6000 {
        let flight = cca.window().get() / MSS.get();
        if round >= 1000 {
            sum += cca.window().ratio(MSS);
            looks += 1;
        }
        now += BASE;
        for _ in 0..flight {
            sent += 1;
            if sent % every == 0 {
                cca.on_loss(&lost(now, now));
            }
            cca.on_ack(&acked(now, now + Duration::from_nanos(1), MSS, BASE));
        }
    }
    sum / f64::from(looks)
}

/// No queue: α = 10 and β = 1/8. Losses every 1/p packets let the window swing between 7/8 and the
/// whole of W with W (15/16) (W/80) = 1/p, so its mean is sqrt(75 / p): 7 times Reno's
/// sqrt(1.5 / p).
#[test]
fn random_loss_costs_a_seventh_of_what_it_costs_reno() {
    for every in [1000, 10_000] {
        let want = libm::sqrt(75.0 * every as f64);
        let config = Config::with_mss(MSS, 0);
        let got = mean_window(Illinois::new(&config), every);
        assert!((got / want - 1.0).abs() < 0.1, "1/{every}: {got}, not {want}");
        let times = got / mean_window(NewReno::new(&config), every);
        assert!((times - 7.07).abs() < 0.8, "1/{every}: {times} times");
    }
}

/// Whatever happens, window and factors stay in their bounds.
#[test]
fn window_and_factors_stay_in_bounds() {
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) % below
    };
    for life in 0..50 {
        let mut illinois = steady(10 + life);
        for (index, knob) in Illinois::KNOBS.iter().enumerate() {
            let place = draw(101) as f64 / 100.0;
            illinois.apply_knob(index, knob.min + (knob.max - knob.min) * place);
        }
        let knobs = illinois.values;
        illinois.forget(); // factors of the knobs of before are none of these
        let mut now = at(1000);
        for _ in 0..2000 {
            now += ms(draw(200));
            let before = illinois.window();
            match draw(200) {
                0 => illinois.on_timeout(&timed_out(now)),
                1..4 => {
                    illinois.on_loss(&lost(now, now - ms(draw(300))));
                    let least = before.mul_f64(1.0 - knobs.beta_max);
                    assert!(illinois.window() + Bytes::new(1) >= least);
                }
                _ => {
                    let rtt = BASE + ms(draw(200));
                    illinois.on_ack(&acked(now, now - ms(draw(200)), MSS * (1 + draw(4)), rtt));
                }
            }
            let Factors { alpha, beta } = illinois.factors;
            assert!(
                alpha >= knobs.alpha_min - 1e-9 && alpha <= knobs.alpha_max + 1e-9,
                "{alpha}: {knobs:?}"
            );
            assert!(beta >= knobs.beta_min && beta <= knobs.beta_max, "{beta}: {knobs:?}");
            assert!(illinois.window() >= MSS * 2);
        }
    }
}

fn play(link: Link, flows: &[(&str, u64)]) -> Outcome {
    let flows: std::vec::Vec<(&str, Time)> =
        flows.iter().map(|&(spec, start)| (spec, Time::from_secs(start))).collect();
    run(link, &flows, |_, _, _| {})
}

/// 48 Mbit/s with a buffer of so many packets, 10 to 130 s.
fn buffered(buffer: u64, rtt: u64) -> Link {
    Link { buffer, rtt: ms(rtt), until: at(130_000), ..Link::fast() }
}

/// Where the buffer is less than the path it keeps more of the link busy than NewReno.
#[test]
fn alone_it_fills_the_link() {
    for (buffer, rtt, least, more) in
        [(80, 20, 0.999, 0.0), (20, 20, 0.90, 0.02), (100, 100, 0.95, 0.02)]
    {
        let illinois = play(buffered(buffer, rtt), &[("illinois", 0)]);
        let reno = play(buffered(buffer, rtt), &[("newreno", 0)]);
        let what = std::format!("{buffer} packets, {rtt} ms: {illinois:?}, {reno:?}");
        assert!(illinois.shares[0] > least, "{what}");
        assert!(illinois.shares[0] >= reno.shares[0] + more - 0.001, "{what}");
        assert!(illinois.queue_mean > reno.queue_mean && illinois.loss < 0.002, "{what}");
    }
    // Nearly no buffer: no delay warns it, so it loses more for no more of the link.
    let seen = play(buffered(5, 20), &[("illinois", 0)]);
    assert!(seen.shares[0] > 0.75 && seen.loss < 0.005, "{seen:?}");
}

/// The paper's compatibility: it takes more than NewReno, which keeps its part.
#[test]
fn it_shares_with_newreno_and_with_itself() {
    for flows in [[("illinois", 0), ("newreno", 3)], [("illinois", 3), ("newreno", 0)]] {
        let seen = play(buffered(80, 20), &flows);
        assert!(seen.shares[0] > 0.55 && seen.shares[1] > 0.3, "{seen:?}");
    }
    let seen = play(buffered(80, 20), &[("illinois", 0), ("illinois", 3)]);
    assert!(seen.shares.iter().all(|share| *share > 0.42), "{seen:?}");
}

/// Outages of half a second, every 20 s: all but their own 2.5% is used.
#[test]
fn it_is_back_after_an_outage() {
    let seen = play(Link { outage: ms(500), ..buffered(80, 20) }, &[("illinois", 0)]);
    assert!(seen.shares[0] > 0.96, "{seen:?}");
}
