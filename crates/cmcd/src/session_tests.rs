use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
/// How long each object plays, and the most that the player of the tests has in its buffer, in ms.
const SEGMENT_MS: u64 = 4000;
const BUFFER_MS: u64 = 20_000;

fn key() -> Key {
    "tv/203.0.113.0/24".parse().unwrap()
}

fn at_ms(ms: u64) -> Time {
    Time::from_secs(1_795_320_000) + Duration::from_millis(ms)
}

fn slot(version: u64) -> Slot {
    let interval = Interval::at(at_ms(0), MINUTE);
    Slot { interval, version, ends: interval.end(MINUTE) }
}

/// A request of video, from CMCD as a player writes it.
fn request(sessions: &mut Sessions, ms: u64, text: &str) {
    let data = Cmcd::parse([text]).unwrap();
    let (started, ended) = (at_ms(ms), at_ms(ms + 200));
    sessions.on_request(&key(), Request { started, ended, data: &data }, Some(slot(1)));
}

fn shown(sessions: &mut Sessions) -> Vec<Statistics> {
    let over = sessions.take_over(at_ms(120_000), MINUTE);
    over.into_iter().map(|(_, _, statistics)| statistics).collect()
}

/// What a player did: requests as (start, end, data), and the truth, in ms.
#[derive(Debug, Default)]
struct Watched {
    requests: Vec<(u64, u64, Cmcd)>,
    stalls: u64,
    stalled: u64,
    played: u64,
    startup: u64,
}

/// A player that loads one object after the other, each in so many ms.
fn watch(downloads_ms: &[u64]) -> Watched {
    let mut watched = Watched::default();
    let (mut now, mut buffer, mut is_starved) = (0, 0, false);
    for (number, &load) in downloads_ms.iter().enumerate() {
        let rounded = (buffer + 50) / 100 * 100;
        let bitrate = 1000 + 500 * (number as u64 % 4);
        let mut text = format!("bl={rounded},br={bitrate},d={SEGMENT_MS},ot=v,sid=\"a\"");
        text += if is_starved { ",bs" } else { "" };
        text += if number == 0 { ",su" } else { "" };
        watched.requests.push((now, now + load, Cmcd::parse([&*text]).unwrap()));
        let played = buffer.min(load);
        is_starved = number > 0 && played < load;
        // After the last object no request tells.
        if number + 1 < downloads_ms.len() {
            watched.played += played;
            if number == 0 {
                watched.startup = load;
            } else {
                watched.stalls += u64::from(is_starved);
                watched.stalled += load - played;
            }
        }
        buffer = buffer - played + SEGMENT_MS;
        now += load;
        let full = (buffer + SEGMENT_MS).saturating_sub(BUFFER_MS);
        if number + 1 < downloads_ms.len() {
            watched.played += full;
        }
        (buffer, now) = (buffer - full, now + full);
    }
    watched
}

proptest! {
    #[test]
    fn stalled_time_is_known_to_a_tenth_of_a_second_each(
        downloads in prop::collection::vec(100u64..9000, 3..40),
    ) {
        let watched = watch(&downloads);
        let mut sessions = Sessions::default();
        for (started, ended, data) in &watched.requests {
            let request = Request { started: at_ms(*started), ended: at_ms(*ended), data };
            sessions.on_request(&key(), request, Some(slot(1)));
        }
        let [(_, _, shown)] = sessions.take_over(at_ms(120_000), MINUTE)[..] else { panic!("one") };
        prop_assert_eq!(shown.stalls, watched.stalls);
        prop_assert_eq!(shown.startup, Some(Duration::from_millis(watched.startup)));
        let rates = watched.requests.iter().map(|(_, _, data)| data.bitrate.unwrap().mbps());
        let mean = rates.sum::<f64>() / watched.requests.len() as f64;
        prop_assert!((shown.bitrate.unwrap().mbps() - mean).abs() < 1e-5);
        let all = watched.stalled + watched.played;
        if let Some(share) = shown.rebuffering {
            let stalled = watched.stalled as f64 / all as f64;
            // Each end of a gap is rounded by 50 ms at most.
            let off = 100.0 * (watched.stalls + 1) as f64 / all as f64;
            prop_assert!((share - stalled).abs() <= off, "{} {} {}", share, stalled, off);
        } else {
            prop_assert!(all < 100 * watched.requests.len() as u64, "{:?}", watched);
        }
    }
}

#[test]
fn bitrates_count_by_how_long_they_play_and_video_goes_before_audio() {
    let mut sessions = Sessions::default();
    request(&mut sessions, 0, "br=128,d=2000,ot=a,sid=\"a\"");
    assert_eq!(shown(&mut sessions.clone())[0].bitrate, Some(Rate::from_mbps(0.128)));
    request(&mut sessions, 0, "br=1000,d=6000,ot=v,sid=\"a\"");
    request(&mut sessions, 2000, "br=5000,d=2000,ot=v,sid=\"a\"");
    // A manifest and an init segment have no bitrate that is shown; this one is not believed.
    request(&mut sessions, 2500, "br=9000,ot=i,sid=\"a\"");
    request(&mut sessions, 3000, "br=900000000,d=60000,ot=v,sid=\"a\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!(one.bitrate, Some(Rate::from_mbps(2.0)));
    assert_eq!((one.rebuffering, one.stalls, one.startup), (None, 0, None));
    // Without durations each counts the same.
    request(&mut sessions, 0, "br=1000,ot=av,sid=\"b\"");
    request(&mut sessions, 9, "br=2000,ot=av,sid=\"b\"");
    assert_eq!(shown(&mut sessions)[0].bitrate, Some(Rate::from_mbps(1.5)));
}

#[test]
fn a_player_that_sends_no_buffer_tells_that_it_stalled_and_not_how_long() {
    let mut sessions = Sessions::default();
    request(&mut sessions, 0, "br=1000,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 9000, "br=1000,bs,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 12_000, "br=1000,d=4000,ot=v,sid=\"a\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!((one.stalls, one.rebuffering), (1, None));
    // The deadline tells the same as the buffer.
    request(&mut sessions, 0, "d=4000,dl=2000,ot=v,sid=\"b\"");
    request(&mut sessions, 8000, "bs,d=4000,dl=0,ot=v,sid=\"b\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!((one.stalls, one.rebuffering), (1, Some(0.25)));
}

#[test]
fn a_stall_that_the_request_of_an_init_segment_tells_counts_once() {
    let mut sessions = Sessions::default();
    request(&mut sessions, 0, "bl=2000,br=3000,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 7990, "bl=0,bs,br=1000,ot=i,sid=\"a\"");
    request(&mut sessions, 8000, "bl=0,br=1000,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 8100, "bl=4000,br=1000,d=4000,ot=v,sid=\"a\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!((one.stalls, one.rebuffering), (1, Some(0.25)));
}

#[test]
fn seeks_and_pauses_are_no_stalls() {
    let mut sessions = Sessions::default();
    request(&mut sessions, 0, "bl=8000,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 2000, "bl=0,d=4000,ot=v,sid=\"a\",su"); // sought
    request(&mut sessions, 3000, "bl=4000,d=4000,ot=v,pr=0,sid=\"a\""); // paused now
    request(&mut sessions, 40_000, "bl=8000,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 44_000, "bl=8000,d=4000,ot=v,sid=\"a\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!((one.stalls, one.rebuffering), (0, Some(0.0)));
    // Of a gap that nobody can have watched a minute counts.
    request(&mut sessions, 0, "bl=4000,d=4000,ot=v,sid=\"b\"");
    request(&mut sessions, 3_600_000, "bl=0,bs,d=4000,ot=v,sid=\"b\"");
    let [one] = shown(&mut sessions)[..] else { panic!("one session") };
    assert_eq!(one.rebuffering, Some(60.0 / 68.0));
}

#[test]
fn startup_lasts_from_the_first_request_until_media_is_not_urgent() {
    let mut sessions = Sessions::default();
    request(&mut sessions, 0, "ot=m,sid=\"a\"");
    request(&mut sessions, 300, "bl=0,d=4000,ot=v,sid=\"a\",su");
    request(&mut sessions, 1300, "bl=4000,d=4000,ot=v,sid=\"a\",su");
    request(&mut sessions, 2100, "bl=7800,d=4000,ot=v,sid=\"a\"");
    request(&mut sessions, 5000, "bl=9000,d=4000,ot=v,sid=\"a\"");
    // It played already when it was first seen.
    request(&mut sessions, 0, "bl=9000,d=4000,ot=v,sid=\"b\"");
    request(&mut sessions, 900, "bl=9000,d=4000,ot=v,sid=\"b\"");
    let startups: Vec<_> = shown(&mut sessions).iter().map(|one| one.startup).collect();
    assert_eq!(startups, [Some(Duration::from_millis(2100)), None]);
}

#[test]
fn each_version_of_an_interval_has_its_own_and_the_unknown_is_left_out() {
    let mut sessions = Sessions::default();
    let data = |kbps: u64| Cmcd::parse([&*format!("br={kbps},d=2000,ot=v,sid=\"a\"")]).unwrap();
    for (ms, kbps, slot) in
        [(0, 1000, None), (1, 2000, Some(slot(1))), (2, 4000, Some(slot(2))), (3, 9000, None)]
    {
        let (started, ended, data) = (at_ms(ms), at_ms(ms), data(kbps));
        sessions.on_request(&key(), Request { started, ended, data: &data }, slot);
    }
    assert_eq!(sessions.take_over(slot(1).ends + MINUTE / 2, MINUTE), [], "they may still come");
    let over = sessions.take_over(slot(1).ends + MINUTE, MINUTE);
    let over: Vec<_> = over.iter().map(|(_, slot, of)| (slot.version, of.bitrate)).collect();
    assert_eq!(over, [(1, Some(Rate::from_mbps(2.0))), (2, Some(Rate::from_mbps(4.0)))]);
    assert_eq!(sessions.take_over(slot(1).ends + MINUTE, MINUTE), []);
}

#[test]
fn sessions_are_bounded_and_forgotten() {
    // With its identifier and the map's share, which is half as much again.
    let size = size_of::<(String, Session)>() + 36 + size_of::<(Slot, Part)>();
    assert!(size * 3 / 2 <= 620, "{size} bytes");
    let mut sessions = Sessions::default();
    for number in 0..=SESSIONS_MAX {
        let id = format!("{number}");
        let data = Cmcd { session: Some(id), is_urgent: true, ..Cmcd::default() };
        let (started, ended) = (at_ms(0), at_ms(0));
        sessions.on_request(&key(), Request { started, ended, data: &data }, None);
    }
    assert_eq!((sessions.len(), sessions.turned_away()), (SESSIONS_MAX, 1));
    // One of them goes on.
    request(&mut sessions, 540_000, "br=1000,ot=v,sid=\"7\"");
    assert_eq!(sessions.take_over(at_ms(0) + IDLE, MINUTE).len(), 1);
    assert_eq!(sessions.len(), 1);
    request(&mut sessions, 600_000, "br=1000,ot=v");
    assert_eq!(sessions.len(), 1, "without an identifier it is of no session");
    sessions.take_over(at_ms(0) + IDLE * 3, MINUTE);
    assert!(sessions.is_empty());
    // Of one session so many parts wait.
    for version in 0..20 {
        let data = Cmcd::parse(["br=1000,ot=v,sid=\"a\""]).unwrap();
        let (started, ended) = (at_ms(version), at_ms(version));
        sessions.on_request(&key(), Request { started, ended, data: &data }, Some(slot(version)));
    }
    assert_eq!(shown(&mut sessions).len(), SLOTS_MAX);
}
