//! Sessions of a player over networks that are simple enough to calculate by hand.

use proptest::prelude::*;
use trimtab_units::Rate;

use super::*;
use crate::VideoRecord;
use crate::{Abr, Bola, Vlc};

const S: u64 = 1000;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn record(app: &Vod, now: Time) -> VideoRecord {
    match app.outcome(now) {
        Outcome::Video(record) => record,
        other => panic!("{other:?}"),
    }
}

/// Runs a session in which chunk n takes `time(n, size)` from request to last byte. Calls `look`
/// after every event. Gives the time of the end, or `until`.
fn run(
    app: &mut Vod,
    start: Time,
    until: Time,
    time: impl Fn(usize, Bytes) -> Duration,
    mut look: impl FnMut(&Vod, Time),
) -> Time {
    let mut now = start;
    let mut arrival: Option<(Time, RequestId)> = None;
    while now < until && !app.is_finished() {
        if let Some((at, id)) = arrival
            && at <= now
        {
            app.on_complete(now, id);
            arrival = None;
            look(app, now);
        }
        while let Some(Command::Request { id, size, .. }) = app.poll(now) {
            assert!(arrival.is_none(), "one chunk at a time");
            arrival = Some((now + time(id.0 as usize, size), id));
        }
        look(app, now);
        let Some(next) = arrival.map(|(at, _)| at).into_iter().chain(app.next_timer()).min() else {
            break;
        };
        assert!(next > now || arrival.is_some(), "a timer in the past would spin");
        now = next.max(now).min(until);
    }
    now
}

/// Chunks of 4 s at 1 Mbit/s over 2 Mbit/s: 2 s each. First frame at 2 s; the buffer gains 2 s per
/// chunk until it holds 8 s at 6 s, where 4 s more have no room. From then on a chunk is due whenever
/// the buffer has fallen to 6 s, which is every 4 s.
#[test]
fn a_session_without_stalls() {
    let mut app = Vod::new(VodConfig {
        ladder: vec![Rate::from_mbps(1.0)],
        length: secs(40),
        buffer_max: secs(10),
        ..VodConfig::default()
    })
    .unwrap();
    let end = run(
        &mut app,
        Time::ZERO,
        Time::from_secs(100),
        |_, size| size / Rate::from_mbps(2.0),
        |_, _| {},
    );
    assert_eq!(end, Time::from_secs(42), "startup and the video");
    let r = record(&app, end);
    assert_eq!((r.startup, r.played, r.stalls, r.stall_time), (secs(2), secs(40), 0, secs(0)));
    let requested: Vec<_> = r.chunks.iter().map(|c| c.requested_at.as_millis() / S).collect();
    assert_eq!(requested, [0, 2, 4, 8, 12, 16, 20, 24, 28, 32]);
    assert_eq!(app.factors(end).playback, Some(Playback::Ended));
}

/// Chunks of 4 s that take 5 s: after the first frame at 5 s every chunk is 1 s late.
#[test]
fn every_chunk_books_its_own_stall() {
    let config = VodConfig { length: secs(16), ..VodConfig::default() };
    let mut app = Vod::new(config).unwrap();
    let end = run(&mut app, Time::ZERO, Time::from_secs(99), |_, _| secs(5), |_, _| {});
    let r = record(&app, end);
    assert_eq!((r.startup, r.stalls, r.stall_time, r.played), (secs(5), 3, secs(3), secs(16)));
    let stalls: Vec<_> = r.chunks.iter().map(|c| c.stall).collect();
    assert_eq!(stalls, [secs(0), secs(1), secs(1), secs(1)]);
    assert_eq!(end, Time::from_secs(24));
}

#[test]
fn a_stall_that_goes_on_is_visible() {
    let mut app = Vod::new(VodConfig::default()).unwrap();
    let never = Duration::MAX;
    run(
        &mut app,
        Time::ZERO,
        Time::from_secs(5),
        |n, _| if n == 0 { secs(1) } else { never },
        |_, _| {},
    );
    let now = Time::from_secs(12);
    let r = record(&app, now);
    assert_eq!((r.stalls, r.stall_time, r.played), (1, secs(7), secs(4)));
    assert_eq!((r.chunks[1].completed_at, r.chunks[1].stall), (None, secs(7)));
    assert_eq!(app.factors(now).playback, Some(Playback::Stalled));
    assert_eq!(record(&app, Time::from_secs(5)).stall_time, Duration::ZERO);
}

#[test]
fn factors_describe_the_chunk_in_download_and_the_one_on_screen() {
    // Low buffer means nothing here, so the third chunk comes at the top rung.
    let abr = Abr::Vlc(Vlc { low_buffer: 0.0 });
    let mut app = Vod::new(VodConfig { abr, ..VodConfig::default() }).unwrap();
    assert_eq!(app.factors(Time::ZERO).chunk_size, None);
    let until = Time::from_secs(3);
    run(&mut app, Time::ZERO, until, |n, _| if n < 2 { secs(1) / 8 } else { secs(9) }, |_, _| {});
    let size = Rate::from_mbps(1.5) * secs(4);
    // Two chunks of 200 KB in 125 ms each: 12.8 Mbit/s.
    let top = Rate::from_mbps(6.0);
    let f = app.factors(until);
    assert_eq!((f.chunk_bitrate, f.chunk_size), (Some(top), Some(top * secs(4))));
    assert_eq!(f.bitrate, Some(Rate::from_mbps(0.4)));
    assert_eq!(f.buffer, Some(Duration::from_millis(8000 - 2875)));
    assert_eq!((f.playback, f.outstanding_requests), (Some(Playback::Playing), 1));
    app.on_bytes(until, RequestId(2), size);
    assert_eq!(app.factors(until).outstanding, top * secs(4) - size);
}

#[test]
fn a_buffer_without_room_starts_playback_whatever_the_threshold() {
    let mut app = Vod::new(VodConfig {
        buffer_max: secs(10),
        startup_buffer: secs(10),
        ..VodConfig::default()
    })
    .unwrap();
    let end = run(&mut app, Time::ZERO, Time::from_secs(200), |_, _| secs(1), |_, _| {});
    let r = record(&app, end);
    assert_eq!(r.startup, secs(2), "two chunks: a third has no room");
    assert_eq!(r.played, secs(120));
}

#[test]
fn a_resumed_session_waits_for_its_threshold() {
    let mut app = Vod::new(VodConfig { resume_buffer: secs(8), ..VodConfig::default() }).unwrap();
    let now = Time::from_secs(40);
    run(&mut app, Time::ZERO, now, |n, _| if n == 1 { secs(10) } else { secs(1) }, |_, _| {});
    let r = record(&app, now);
    // Shown 1 to 5 s, then standing until chunk 1 (at 11 s) and chunk 2 (at 12 s) are both there.
    assert_eq!((r.stalls, r.stall_time), (1, secs(7)));
    assert_eq!((r.chunks[1].stall, r.chunks[2].stall), (secs(6), secs(1)));
}

/// On a constant 2 Mbit/s both rules settle where they can stay: VLC at 1.5 Mbit/s; BOLA, which
/// looks at the buffer, between 1.5 and 3 Mbit/s with a mean close to the link's.
#[test]
fn rules_settle_on_a_constant_link() {
    let link = Rate::from_mbps(2.0);
    let session = |abr| {
        let config = VodConfig { abr, repeats: true, ..VodConfig::default() };
        let mut app = Vod::new(config).unwrap();
        let end = Time::from_secs(600);
        run(&mut app, Time::ZERO, end, |_, size| size / link + secs(1) / 20, |_, _| {});
        record(&app, end)
    };
    let vlc = session(Abr::default());
    assert_eq!(vlc.stalls, 0);
    assert!(vlc.chunks[3..].iter().all(|c| c.bitrate == Rate::from_mbps(1.5)));
    let bola = session(Abr::Bola(Bola { cap_steps_up: false, ..Bola::default() }));
    assert_eq!(bola.stalls, 0);
    let settled = &bola.chunks[20..];
    let mean = settled.iter().map(|c| c.bitrate.mbps()).sum::<f64>() / settled.len() as f64;
    assert!((1.8..2.0).contains(&mean), "BOLA's mean bitrate {mean} Mbit/s");
    let capped = session(Abr::Bola(Bola::default()));
    assert!(capped.chunks[20..].iter().all(|c| c.bitrate == Rate::from_mbps(1.5)));
}

fn rules() -> impl Strategy<Value = Abr> {
    prop_oneof![
        Just(Abr::default()),
        Just(Abr::Bola(Bola::default())),
        Just(Abr::Bola(Bola { cap_steps_up: false, ..Bola::default() })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Every moment is startup, playing or stall, and the buffer stays within its size.
    #[test]
    fn time_and_buffer_add_up(
        abr in rules(),
        start_ms in 0u64..5000,
        times_ms in prop::collection::vec(1u64..12_000, 40),
        buffer_max_s in 4u64..40,
        startup_s in 0u64..20,
        resume_s in 0u64..20,
        length_ms in 1u64..150_000,
        size_variation in 0.0..0.5f64,
    ) {
        let mut app = Vod::new(VodConfig {
            abr,
            buffer_max: secs(buffer_max_s),
            startup_buffer: secs(startup_s),
            resume_buffer: secs(resume_s),
            length: Duration::from_millis(length_ms),
            size_variation,
            ..VodConfig::default()
        })
        .unwrap();
        let start = Time::from_millis(start_ms);
        let time = |n: usize, _| Duration::from_millis(times_ms[n % times_ms.len()]);
        let mut cap_held = true;
        let mut wrong = None;
        let end = run(&mut app, start, Time::from_secs(10_000), time, |app, now| {
            let r = record(app, now);
            let booked: Duration = r.chunks.iter().map(|c| c.stall).sum();
            let adds_up = r.startup + r.played + r.stall_time == now.since(start);
            if !(app.is_finished() || adds_up) || booked != r.stall_time {
                wrong = wrong.or(Some(now));
            }
            cap_held &= app.factors(now).buffer.unwrap() <= secs(buffer_max_s);
            let arrived: Duration =
                r.chunks.iter().filter(|c| c.completed_at.is_some()).map(|c| c.duration).sum();
            cap_held &= arrived == r.played + app.factors(now).buffer.unwrap();
        });
        prop_assert_eq!(wrong, None);
        prop_assert!(cap_held);
        prop_assert!(app.is_finished());
        let r = record(&app, end);
        prop_assert_eq!(r.played, Duration::from_millis(length_ms));
        prop_assert_eq!(r.startup + r.played + r.stall_time, end.since(start));
        prop_assert!((r.stalls == 0) == r.stall_time.is_zero());
    }

    /// A faster network never shows more stall.
    #[test]
    fn faster_downloads_do_not_stall_more(
        times_ms in prop::collection::vec(1u64..12_000, 30), percent in 0u64..100,
    ) {
        let session = |percent: u64| {
            let mut app = Vod::new(VodConfig::default()).unwrap();
            let time = |n: usize, _| Duration::from_millis(times_ms[n] * percent / 100);
            let end = run(&mut app, Time::ZERO, Time::from_secs(10_000), time, |_, _| {});
            record(&app, end)
        };
        let (slow, fast) = (session(100), session(percent));
        prop_assert!(fast.startup + fast.stall_time <= slow.startup + slow.stall_time);
    }
}
