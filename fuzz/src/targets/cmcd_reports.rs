//! Reports that players post, as one session after the other: any text has statistics within their
//! ranges, or an error of one short line.

use trimtab_cmcd::{Event, Sessions, Slot};
use trimtab_fleet_client::edge::Interval;
use trimtab_units::{Duration, Time};

pub(crate) fn target(text: &str) {
    let events = match Event::parse_all(text) {
        Ok(events) => events,
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n') && error.len() < 1000, "{error}");
            return;
        }
    };
    let key = "tv/203.0.113.0/24".parse().expect("a key");
    let start = Time::from_secs(1_795_973_783);
    let slot = Slot { interval: Interval(0), version: 1, ends: start };
    let mut sessions = Sessions::default();
    for (number, event) in events.iter().enumerate() {
        let arrived = start + Duration::from_secs(number as u64);
        sessions.on_event(&key, event, arrived, |at| {
            assert!(at <= arrived, "{at} is not over");
            Some(slot)
        });
    }
    for (_, _, shown) in sessions.take_over(start, Duration::ZERO) {
        assert!(shown.rebuffering.is_none_or(|share| (0.0..=1.0).contains(&share)), "{shown:?}");
        assert!(shown.bitrate.is_none_or(|rate| rate.mbps() <= 1000.0), "{shown:?}");
    }
}
