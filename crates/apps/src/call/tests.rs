//! Calls over paths that lose, reorder and repeat.

use proptest::prelude::*;

use super::*;

fn config(length: Duration) -> CallConfig {
    CallConfig { length, seed: 1, ..CallConfig::conference() }
}

/// Runs a call of 10 s at 1 Mbit/s over a path that delivers packet `n` so many times, each so long
/// after it was sent.
fn run(deliveries: impl Fn(u64) -> Vec<Duration>) -> (Call, Vec<Time>) {
    run_with(config(Duration::from_secs(10)), deliveries)
}

fn run_with(config: CallConfig, deliveries: impl Fn(u64) -> Vec<Duration>) -> (Call, Vec<Time>) {
    let mut call = Call::new(config);
    call.begin(Time::ZERO);
    call.ask(Rate::from_mbps(1.0));
    let (mut events, mut n) = (Vec::new(), 0u64);
    loop {
        let now = call.next_capture();
        if now == Time::MAX {
            break;
        }
        while let Some(captured) = call.capture(now, false) {
            match captured {
                Captured::Audio { number, .. } => {
                    events.push((now + Duration::from_millis(30), n, Err(number)));
                    n += 1;
                }
                Captured::Video { frame, bytes, key, media_time } => {
                    let count = bytes.get().div_ceil(1200) as u16;
                    for index in 0..count {
                        let bytes = Bytes::new(1200);
                        let packet = VideoPacket { frame, index, count, key, media_time, bytes };
                        for after in deliveries(n) {
                            events.push((now + after, n, Ok(packet)));
                        }
                        n += 1;
                    }
                }
            }
        }
        if n > 100_000 {
            panic!("captures do not end");
        }
    }
    events.sort_by_key(|&(at, n, _)| (at, n));
    let mut asked = Vec::new();
    for (at, _, event) in events {
        if call.key_due() <= at {
            call.on_key_asked(at);
            asked.push(at);
        }
        match event {
            Ok(packet) => call.on_video(at, &packet, false, Duration::from_millis(60)),
            Err(number) => call.on_audio(at, number),
        }
    }
    (call, asked)
}

#[test]
fn on_a_clean_path_every_frame_is_seen_and_every_sound_heard() {
    let (call, asked) = run(|_| vec![Duration::from_millis(30)]);
    let record = call.record(Time::from_secs(11));
    assert_eq!((record.frames.len(), record.audio.len()), (300, 500));
    assert_eq!((record.drop_ratio(), record.audio_heard()), (0.0, 1.0));
    assert_eq!(record.freezes(), Freezes::default());
    assert!((record.bitrate().mbps() - 1.0).abs() < 0.05, "{}", record.bitrate());
    let delay = record.mean_delay().unwrap().as_millis_f64();
    assert!((55.0..80.0).contains(&delay), "{delay}");
    assert_eq!(asked, []);
}

#[test]
fn a_packet_that_never_comes_freezes_the_picture_until_a_key_frame_is_asked_for() {
    let (call, asked) = run(|n| if n == 500 { vec![] } else { vec![Duration::from_millis(30)] });
    let record = call.record(Time::from_secs(11));
    assert_eq!(record.freezes().count, 1, "nobody answers the request");
    assert!(!asked.is_empty());
    let last = record.frames.iter().filter_map(|f| f.presented_at).max().unwrap();
    let waited = asked[0].since(last);
    assert!((2.8..3.1).contains(&waited.as_secs_f64()), "{waited}");
}

#[test]
fn skipped_frames_are_captured_and_never_seen() {
    let mut call = Call::new(config(Duration::from_secs(1)));
    call.begin(Time::ZERO);
    while call.next_capture() != Time::MAX {
        call.capture(call.next_capture(), true);
    }
    let record = call.record(Time::from_secs(2));
    assert_eq!((record.frames.len(), record.drop_ratio()), (30, 1.0));
    assert_eq!(record.qoe(), 0.0);
}

#[test]
fn of_games_the_delay_counts_from_the_input() {
    let interactive = CallConfig { interactive: true, ..config(Duration::from_secs(1)) };
    let mut call = Call::new(interactive);
    call.begin(Time::ZERO);
    call.on_input(Time::from_millis(480));
    call.on_input(Time::from_millis(470));
    let captured = std::iter::from_fn(|| call.capture(Time::from_millis(6), false));
    assert_eq!(captured.count(), 2);
    assert_eq!(call.record(Time::from_secs(1)).frames[0].captured_at, Time::from_millis(480));
}

/// Of each packet: whether it is lost, how late it is, and whether it comes twice.
fn path() -> impl Strategy<Value = Vec<(bool, u64, bool)>> {
    prop::collection::vec((prop::bool::weighted(0.05), 0u64..400, any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    })]

    #[test]
    fn whatever_the_path_does_frames_are_seen_in_order_and_once(path in path()) {
        let (call, _) = run(|n| {
            let (lost, late, twice) = path[n as usize % path.len()];
            let at = Duration::from_millis(20 + late);
            match (lost, twice) {
                (true, _) => vec![],
                (false, true) => vec![at, at + Duration::from_millis(3 * late)],
                (false, false) => vec![at],
            }
        });
        let record = call.record(Time::from_secs(20));
        let seen: Vec<_> = record.frames.iter().filter_map(|f| f.presented_at).collect();
        // A time of presentation is one refresh of the display, which shows one frame.
        prop_assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", seen);
        prop_assert!(record.frames.iter().all(|f| f.delay().is_none_or(|d| !d.is_zero())));
    }

    #[test]
    fn packets_that_make_no_sense_do_no_harm(
        packets in prop::collection::vec(any::<(u32, u16, u16, bool)>(), 0..300),
    ) {
        let mut call = Call::new(config(Duration::from_secs(1)));
        call.begin(Time::ZERO);
        while call.next_capture() != Time::MAX {
            call.capture(call.next_capture(), false);
        }
        for (i, (frame, index, count, key)) in packets.into_iter().enumerate() {
            // Half of them near what is expected.
            let (frame, count) = if i % 2 == 0 { (frame % 40, count % 4) } else { (frame, count) };
            let index = index % 5;
            let now = Time::from_millis(i as u64);
            let bytes = Bytes::new(1200);
            let packet = VideoPacket { frame, index, count, key, media_time: now, bytes };
            call.on_video(now, &packet, i % 3 == 0, Duration::ZERO);
            call.on_audio(now, frame);
        }
        let record = call.record(Time::from_secs(9));
        let seen: Vec<_> = record.frames.iter().filter_map(|f| f.presented_at).collect();
        prop_assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

/// RFC 8867 §5.8: from 4 s to 6 s nothing is captured, and nothing that was not freezes.
#[test]
fn a_paused_call_captures_nothing_and_is_no_freeze() {
    let [from, to] = [4, 6].map(Duration::from_secs);
    let paused = CallConfig { pause: Some((from, to)), ..config(Duration::from_secs(10)) };
    let (call, asked) = run_with(paused, |_| vec![Duration::from_millis(30)]);
    let record = call.record(Time::from_secs(11));
    let pause = Time::ZERO + from..Time::ZERO + to;
    assert!(record.frames.iter().all(|frame| !pause.contains(&frame.captured_at)));
    assert!(record.audio.iter().all(|audio| !pause.contains(&audio.captured_at)));
    assert_eq!(record.audio.len(), 400, "8 s of 20 ms");
    assert!((238..=242).contains(&record.frames.len()), "{}", record.frames.len());
    assert_eq!((record.freezes(), asked.len()), (Freezes::default(), 0));
}
