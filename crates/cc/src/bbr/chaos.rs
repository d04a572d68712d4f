//! Events in any order and of any size: neither version panics, takes an illegal edge of its state
//! machine (debug assertions are on), or leaves its window below the minimum or its pacing at zero.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use trimtab_units::{Bytes, Duration, Time};

use crate::{
    Ack, Config, CongestionControl, Idle, Loss, LostPacket, RateSample, Sent, Timeout, set_knob,
};
use crate::{Bbr, Bbr3};

const EVENTS: usize = 150_000;

/// Mostly of a network's size, sometimes tiny, sometimes absurd.
fn size(rng: &mut Pcg32) -> u64 {
    match rng.random_range(0..20) {
        0 => 0,
        1 => rng.random_range(0..3000),
        2 => u64::MAX - rng.random_range(0..10),
        3 => rng.random_range(0..1 << 50),
        _ => 1500 * rng.random_range(1..2000),
    }
}

fn bytes(rng: &mut Pcg32) -> Bytes {
    Bytes::new(size(rng))
}

fn duration(rng: &mut Pcg32) -> Duration {
    Duration::from_nanos(match rng.random_range(0..20) {
        0 => size(rng),
        1 => 0,
        _ => rng.random_range(1_000..500_000_000),
    })
}

/// Now and then an hour passes, or the clock runs back.
fn advance(now: Time, rng: &mut Pcg32) -> Time {
    match rng.random_range(0..1000) {
        0 => now + Duration::from_secs(3600),
        1 => now - Duration::from_millis(50),
        2..700 => now + Duration::from_micros(rng.random_range(0..20_000)),
        _ => now,
    }
}

fn ack(now: Time, delivered: Bytes, rng: &mut Pcg32) -> Ack {
    let rate = rng.random_bool(0.9).then(|| RateSample {
        delivered: bytes(rng),
        interval: duration(rng).max(Duration::from_nanos(1)),
        prior_delivered: delivered - bytes(rng).min(Bytes::new(3_000_000)),
        app_limited: rng.random_bool(0.2),
        tx_in_flight: bytes(rng),
        lost: bytes(rng),
    });
    Ack {
        now,
        acked: bytes(rng),
        rtt: rng.random_bool(0.9).then(|| duration(rng)),
        srtt: duration(rng),
        min_rtt: duration(rng),
        inflight: bytes(rng),
        prior_inflight: bytes(rng),
        delivered,
        newest_sent_at: now - duration(rng),
        rate,
        cwnd_limited: rng.random_bool(0.5),
        in_recovery: rng.random_bool(0.3),
    }
}

fn event(cca: &mut impl CongestionControl, now: Time, delivered: &mut Bytes, rng: &mut Pcg32) {
    match rng.random_range(0..100) {
        0..40 => cca.on_sent(&Sent {
            now,
            bytes: bytes(rng),
            inflight: bytes(rng),
            app_limited: rng.random_bool(0.3),
        }),
        40..85 => {
            *delivered += Bytes::new(rng.random_range(0..30_000));
            cca.on_ack(&ack(now, *delivered, rng));
        }
        85..93 => cca.on_packet_lost(&LostPacket {
            now,
            bytes: bytes(rng),
            sent_at: now - duration(rng),
            tx_in_flight: bytes(rng),
            lost_since_sent: bytes(rng),
            app_limited: rng.random_bool(0.2),
            delivered_at_send: *delivered - Bytes::new(rng.random_range(0..3_000_000)),
            new_range: rng.random_bool(0.5),
        }),
        93..96 => cca.on_loss(&Loss {
            now,
            lost: bytes(rng),
            newest_sent_at: now - duration(rng),
            inflight: bytes(rng),
            prior_inflight: bytes(rng),
        }),
        96 => {
            let (prior_inflight, inflight) = (bytes(rng), bytes(rng));
            cca.on_timeout(&Timeout { now, prior_inflight, inflight });
        }
        97 => cca.on_spurious_loss(now),
        98 => cca.on_idle(&Idle { now, idle: duration(rng), rto: duration(rng) }),
        _ => {
            let knobs = cca.knobs();
            let knob = &knobs[rng.random_range(0..knobs.len())];
            let value = knob.min + (knob.max - knob.min) * rng.random_range(0.0..=1.0);
            assert_eq!(set_knob(cca, knob.name, value), Ok(()));
            let index = knobs.iter().position(|k| k.name == knob.name).unwrap();
            assert_eq!(cca.knob(index), Some(value), "{}", knob.name);
        }
    }
}

fn survives(build: impl Fn(&Config) -> crate::Controller) {
    for seed in 0..4 {
        let mut rng = Pcg32::seed_from_u64(seed);
        let config = Config::with_mss(Bytes::new(1500), seed);
        let mut cca = build(&config);
        let (mut now, mut delivered) = (Time::from_millis(1), Bytes::ZERO);
        for i in 0..EVENTS {
            now = advance(now, &mut rng);
            event(&mut cca, now, &mut delivered, &mut rng);
            assert!(cca.window() >= config.min_window, "seed {seed}, event {i}");
            let rate = cca.pacing_rate().expect("BBR always paces");
            assert!(!rate.is_zero(), "seed {seed}, event {i}");
        }
    }
}

#[test]
fn version_1_survives_any_events() {
    survives(|config| Bbr::new(config).into());
}

#[test]
fn version_3_survives_any_events() {
    survives(|config| Bbr3::new(config).into());
}
