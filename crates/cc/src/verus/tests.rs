use super::*;
use crate::testing::link::{self, Link, MSS};
use crate::testing::{acked, hand_over, timed_out};

const BASE: Duration = Duration::from_millis(20);

/// On a link of 48 Mbit/s and 20 ms, 80 packets in flight, no queue.
fn settled() -> Verus {
    let mut cca = Verus::new(&Config::with_mss(MSS, 0));
    cca.take_over(&hand_over(MSS * 80, BASE));
    cca
}

fn ms(ms: u64) -> Time {
    Time::from_secs(30) + Duration::from_millis(ms)
}

/// A packet that left with 80 in flight is acknowledged after so many ms; 80 stay in flight.
fn ack(cca: &mut Verus, now: u64, rtt: u64) {
    let rtt = Duration::from_millis(rtt);
    let all = MSS * 80;
    cca.on_ack(&Ack {
        inflight: all,
        prior_inflight: all,
        ..acked(ms(now), ms(now) - rtt, MSS, rtt)
    });
}

/// eq. 4: 2 ms up in an epoch whose greatest delay did not grow, 1 ms down where it did, and 2 ms down
/// above R times the least.
#[test]
fn the_aim_follows_the_change_of_the_greatest_delay() {
    let mut cca = settled();
    cca.aim = 40.0;
    cca.aim_for(30.0, 0.0);
    assert_eq!(cca.aim, 42.0);
    cca.aim_for(30.0, -1.0);
    assert_eq!(cca.aim, 44.0);
    cca.aim_for(30.0, 0.5);
    assert_eq!(cca.aim, 43.0);
    cca.aim_for(121.0, -5.0);
    assert_eq!(cca.aim, 41.0, "above 6 · 20 ms");
    cca.aim = 119.0;
    cca.aim_for(30.0, 0.0);
    assert_eq!(cca.aim, 120.0, "no further than R times the least");
    cca.aim = 20.5;
    cca.aim_for(30.0, 0.5);
    assert_eq!((cca.aim, cca.stopped), (20.0, false), "never below the least");
}

/// `dMinStop` and the escape from it: above R at the least aim nothing leaves; with hardly anything in
/// flight the least delay is taken to have grown.
#[test]
fn an_aim_that_cannot_fall_stops_the_sender_until_nothing_is_in_flight() {
    let mut cca = settled();
    cca.aim = 20.0;
    cca.aim_for(200.0, 0.0);
    assert_eq!((cca.stopped, cca.window()), (true, MSS * 2));
    cca.inflight = MSS;
    cca.aim_for(200.0, 0.0);
    assert_eq!((cca.stopped, cca.least), (false, 30.0));
}

/// eq. 5: W = 80 in flight of a round trip of 20 ms, four epochs: 80 + 80 (2 - 4) / 3 packets.
#[test]
fn an_epoch_sends_what_is_missing_over_a_round_trip() {
    let mut cca = settled();
    let packets = |cca: &Verus| (cca.quota() * EPOCH).ratio(MSS);
    assert!((packets(&cca) - 80.0 / 3.0).abs() < 1e-3, "{}", packets(&cca));
    cca.inflight = MSS * 60;
    assert!((packets(&cca) - 40.0).abs() < 1e-3);
    cca.inflight = MSS * 300;
    assert!((packets(&cca) - 1.0).abs() < 1e-3, "a packet at least; the window holds it back");
}

/// The window is what the profile has for the aim: 0.25 ms for each packet beyond 80.
#[test]
fn the_window_follows_the_aim_by_the_profile() {
    let mut cca = settled();
    (0..20).for_each(|now| ack(&mut cca, now, 20));
    // Three or four epochs without a greater delay: 6 to 8 ms, 24 to 32 packets.
    let grown = cca.window().ratio(MSS);
    assert!((96.0..125.0).contains(&grown), "{grown}");
    (20..60).for_each(|now| ack(&mut cca, now, 20 + now - 19));
    assert!(cca.window().ratio(MSS) < grown, "delays that grow lower the aim");
}

/// eq. 6: 0.7 of the window with which the lost packet left; another loss of the same phase is none.
#[test]
fn a_loss_leaves_seven_tenths_of_the_window_of_the_lost_packet() {
    let mut cca = settled();
    let lose = |cca: &mut Verus, now: u64| {
        cca.on_packet_lost(&LostPacket {
            now: ms(now),
            bytes: MSS,
            sent_at: ms(0),
            tx_in_flight: MSS * 80,
            lost_since_sent: MSS,
            app_limited: false,
            delivered_at_send: Bytes::ZERO,
            new_range: true,
        });
        cca.on_loss(&crate::testing::lost(ms(now), ms(0)));
    };
    lose(&mut cca, 1);
    assert_eq!((cca.window(), cca.phase()), (MSS * 56, Phase::Recovery));
    lose(&mut cca, 2);
    assert_eq!(cca.window(), MSS * 56);
    // Packets of the greater window: Reno's growth. One of a smaller: the phase is over.
    ack(&mut cca, 3, 20);
    assert_eq!(cca.phase(), Phase::Recovery);
    let small = MSS * 40;
    let rtt = BASE;
    cca.on_ack(&Ack {
        inflight: small,
        prior_inflight: small,
        ..acked(ms(4), ms(4) - rtt, MSS, rtt)
    });
    assert_eq!(cca.phase(), Phase::Steady);
}

/// Slow start: a packet for each acknowledged, until the round-trip time is above half a second.
#[test]
fn slow_start_ends_at_half_a_second() {
    let mut cca = Verus::new(&Config::with_mss(MSS, 0));
    let mut now = Time::ZERO;
    for rtt in [100, 300, 499] {
        now += Duration::from_millis(rtt);
        let window = cca.window();
        for _ in 0..window.get() / MSS.get() {
            let rtt = Duration::from_millis(rtt);
            cca.on_ack(&Ack { prior_inflight: window, ..acked(now, now - rtt, MSS, rtt) });
        }
        assert_eq!((cca.window(), cca.phase()), (window * 2, Phase::SlowStart));
    }
    let rtt = Duration::from_millis(501);
    let all = cca.window();
    cca.on_ack(&Ack { prior_inflight: all, ..acked(now + rtt, now, MSS, rtt) });
    assert_eq!((cca.window(), cca.phase()), (all.mul_f64(0.7), Phase::Recovery));
}

#[test]
fn timeouts_leave_the_least_aim() {
    let mut cca = settled();
    cca.on_timeout(&timed_out(ms(1)));
    assert_eq!((cca.window(), cca.aim, cca.phase()), (MSS * 2, 20.0, Phase::Recovery));
}

/// §6: alone it uses the link, and its queue stays below R times the least delay.
#[test]
fn it_uses_a_link_within_its_bound_of_delay() {
    let link = Link { buffer: 2000, ..Link::fast() };
    let seen = link::run(link, &[("verus", Time::ZERO)], |_, _, _| {});
    assert!(seen.shares[0] > 0.9, "{seen:?}");
    // Five times 20 ms on top of the path's 20: 400 packets.
    assert!(seen.queue_mean < 400.0, "{seen:?}");
}
