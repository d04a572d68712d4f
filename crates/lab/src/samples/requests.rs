//! The requests that applications make by a schedule, taken without a network.

use std::collections::BTreeMap;

use trimtab_apps::{AppError, Application, Command, RequestRecord, Session};
use trimtab_units::{Bytes, Duration, Time};

use super::{Sampled, Unit};
use crate::scenario::AppSettings;

/// Why an application has no requests to sample.
#[derive(Debug, thiserror::Error)]
pub enum RequestsError {
    /// Its settings are wrong.
    #[error(transparent)]
    App(#[from] AppError),
    /// It asks for what a network lets it have.
    #[error("{app} makes no requests by a schedule of its own: use download or web")]
    NoSchedule {
        /// Its name.
        app: &'static str,
    },
}

/// Gaps between requests and sizes of messages, of sessions with the seeds 0 to `sessions` - 1. Every
/// response is there at once, which plays no part for an application that keeps to a schedule.
///
/// # Errors
/// The application's settings are wrong, or it has no schedule.
pub fn requests(
    app: &AppSettings,
    length: Duration,
    sessions: u64,
) -> Result<Vec<Unit>, RequestsError> {
    let recipe = app.kind.recipe(&app.settings)?;
    (0..sessions)
        .map(|seed| {
            let mut client = recipe.client(&Session { length, seed, quantile: None });
            let no_schedule = RequestsError::NoSchedule { app: app.kind.name() };
            let uploads = run(&mut client, length).ok_or(no_schedule)?;
            let records = client.requests();
            let gap = |pair: &[RequestRecord]| {
                (pair[1].scheduled_at - pair[0].scheduled_at).as_millis_f64()
            };
            let gaps: Vec<f64> = records.windows(2).map(gap).collect();
            let responses = records.iter().map(|record| kilobytes(record.size)).collect();
            let uploads = uploads.into_iter().map(kilobytes).collect();
            let values = BTreeMap::from([
                (Sampled::Gap, gaps),
                (Sampled::Response, responses),
                (Sampled::Request, uploads),
            ]);
            Ok(Unit { name: format!("seed {seed}"), values })
        })
        .collect()
}

fn kilobytes(size: Bytes) -> f64 {
    size.as_f64() / 1e3
}

/// Plays a session over a network that needs no time. Gives the sizes of the requests; nothing of an
/// application that keeps no book of requests, which has no schedule.
fn run(client: &mut impl Application, length: Duration) -> Option<Vec<Bytes>> {
    let (mut now, end) = (Time::ZERO, Time::ZERO + length);
    let mut uploads = Vec::new();
    loop {
        while let Some(Command::Request { id, upload, .. }) = client.poll(now) {
            if client.requests().is_empty() {
                return None;
            }
            uploads.push(upload);
            client.on_complete(now, id);
        }
        match client.next_timer().filter(|&at| at > now && at <= end) {
            Some(at) => now = at,
            None => return (!uploads.is_empty()).then_some(uploads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Part, share};
    use crate::scenario::AppKind;

    const MINUTE: Duration = Duration::from_secs(60);

    fn app(name: &str) -> AppSettings {
        AppSettings::new(AppKind::named(name).unwrap())
    }

    #[test]
    fn gaps_and_sizes_are_those_of_the_schedule() {
        let units = requests(&app("download"), MINUTE, 3).unwrap();
        assert_eq!(units.len(), 3);
        for unit in &units {
            assert_eq!(unit.of(Sampled::Gap).len() + 1, unit.of(Sampled::Response).len());
            assert!(unit.of(Sampled::Gap).iter().sum::<f64>() < 60_000.0);
            assert!(unit.of(Sampled::Request).iter().all(|&kb| kb == 0.2), "200 B each");
        }
        assert_ne!(units[0].values, units[1].values);
        let clicks =
            share(&requests(&app("web"), MINUTE, 9).unwrap(), Sampled::Gap, Part::Above(1e3));
        // One request in 20 begins a pause of a second or more.
        assert!((2.0..9.0).contains(&clicks.unwrap().value), "{clicks:?}");
    }

    #[test]
    fn without_a_schedule_there_is_nothing_to_sample() {
        for name in ["vod", "bulk", "live", "conference", "cloud-game"] {
            let e = requests(&app(name), MINUTE, 1).unwrap_err().to_string();
            assert_eq!(
                e,
                format!("{name} makes no requests by a schedule of its own: use download or web")
            );
        }
    }
}
