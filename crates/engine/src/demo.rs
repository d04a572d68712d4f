//! An engine to look at: a real one, in a folder that goes with it, with traffic that is made up.
//!
//! A thread plays one edge. What its connections see is a formula of the configuration that the
//! engine gave it, with an optimum of its own for each aggregate, and some noise. It says nothing
//! about networks: `trimtab fleet simulate` does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use trimtab_fleet::{Interval, Report, Sketch, Summary};
use trimtab_fleet_client::{Client, ConfigurationQuery, Held, NewToken, ReportBatch, Role};

use crate::clock::now_ms;
use crate::error::Error;
use crate::tokens::add_token;

/// A decision for each aggregate comes this often.
const INTERVAL_MS: i64 = 2000;
/// How much what an aggregate sees differs from one interval to the next.
const NOISE: f64 = 0.02;
/// Connections of an aggregate in an interval.
const CONNECTIONS: u64 = 20;
const AGGREGATES: usize = 12;

const SERVICE: &str = r#"
name = "demo"
interval = "2s"
algorithm = "vivace"
incumbent = "cubic"
others = ["bbr"]
reward = "mean(throughput)"

[knobs]
gamma = { min = 1, max = 5000, scale = "log" }
"#;

/// Runs such an engine until SIGTERM or SIGINT; `began` gets its URL and an operator's token before.
///
/// # Errors
/// The address is taken, has no port or is of another machine, or the system makes no folder.
pub fn demo(listen: SocketAddr, began: impl FnOnce(&str, &str)) -> Result<(), Error> {
    if listen.port() == 0 {
        return Err(Error::Refused("name a port, so that the demo's edge finds it".to_owned()));
    }
    let folder = tempfile::tempdir().map_err(|e| Error::system("make a folder", e))?;
    let config = write_files(folder.path(), listen)
        .map_err(|e| Error::system("write the demo's configuration", e))?;
    let edge = add_token(&config, &NewToken::new("demo-edge", Role::Edge, &["demo"]))?;
    let operator = add_token(&config, &NewToken::new("you", Role::Operator, &[]))?;
    let url = format!("http://{listen}");
    let client = Client::new(&url, edge.as_str(), None)
        .map_err(|e| Error::system("make the demo's edge", e))?;
    std::thread::Builder::new()
        .name("demo edge".to_owned())
        .spawn(move || play(&client))
        .map_err(|e| Error::system("start the demo's edge", e))?;
    began(&url, &operator);
    crate::run(&config)
}

fn write_files(folder: &Path, listen: SocketAddr) -> std::io::Result<std::path::PathBuf> {
    std::fs::create_dir(folder.join("services"))?;
    std::fs::write(folder.join("services/demo.toml"), SERVICE)?;
    let config = folder.join("engine.toml");
    let text = format!(
        "listen = \"{listen}\"\nservices = \"services\"\ngrace = \"200ms\"\n\
         [store]\nfile = \"engine.db\"\n"
    );
    std::fs::write(&config, text)?;
    Ok(config)
}

/// Reports each interval when it is over, for as long as the process lives.
fn play(client: &Client) {
    let mut sequence = 0;
    loop {
        let interval = now_ms().div_euclid(INTERVAL_MS);
        let ran = in_force(client);
        let left_ms = (interval + 1) * INTERVAL_MS - now_ms();
        std::thread::sleep(Duration::from_millis(left_ms.max(0) as u64));
        let reports = ran.iter().map(|(&aggregate, (version, configuration))| {
            report(aggregate, interval as u64, *version, configuration)
        });
        sequence += 1;
        let reports = reports.collect();
        let batch = ReportBatch { sequence, sent_ms: now_ms(), interval_ms: None, reports };
        // An engine that does not answer yet, or any more, is for a person to see.
        let _ = client.report(&batch);
    }
}

/// The version and the configuration of each aggregate.
fn in_force(client: &Client) -> BTreeMap<usize, (u64, Value)> {
    let have = (0..AGGREGATES).map(|aggregate| Held {
        service: "demo".to_owned(),
        prefix: prefix(aggregate),
        version: None,
    });
    let query = ConfigurationQuery { have: have.collect(), wait_s: 0 };
    let Ok(answer) = client.configurations(&query) else { return BTreeMap::new() };
    let of = |name: &str| (0..AGGREGATES).find(|aggregate| prefix(*aggregate) == name);
    let known = answer.configurations.into_iter();
    known.filter_map(|one| Some((of(&one.prefix)?, (one.version, one.configuration)))).collect()
}

fn prefix(aggregate: usize) -> String {
    format!("198.51.{aggregate}.0/24")
}

/// Mbit/s under a configuration, without noise: CUBIC brings 20, BBR between 14 and 25, and Vivace up
/// to 24 where its `gamma` is right for the aggregate.
fn throughput_mbps(aggregate: usize, configuration: &Value) -> f64 {
    let place = aggregate as f64 / (AGGREGATES - 1) as f64;
    match configuration["algorithm"].as_str() {
        Some("vivace") => {
            let gamma = configuration["knobs"]["gamma"].as_f64().unwrap_or(1.0);
            24.0 - 3.0 * (libm::log10(gamma) - (1.0 + 2.0 * place)).abs()
        }
        Some("bbr") => 14.0 + 11.0 * place,
        _ => 20.0,
    }
}

fn report(aggregate: usize, interval: u64, version: u64, configuration: &Value) -> String {
    let mean = throughput_mbps(aggregate, configuration);
    let values = (0..CONNECTIONS).map(|connection| {
        mean * (1.0 + NOISE * noise(interval, aggregate as u64 * CONNECTIONS + connection))
    });
    let mut summary = Summary::new(CONNECTIONS);
    summary.set("throughput", Sketch::of(values)).expect("a statistic");
    let key = format!("demo/{}", prefix(aggregate)).parse().expect("a key");
    let report = Report { key, interval: Interval(interval), version, summary, next: None };
    STANDARD.encode(report.encode().expect("it is small"))
}

/// Numbers between -1 and 1 that look like chance: the finaliser of `SplitMix64` (Steele et al. 2014).
fn noise(interval: u64, connection: u64) -> f64 {
    let mut x = interval.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(connection);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_aggregate_has_something_that_beats_the_incumbent() {
        let brings = |aggregate, algorithm: &str, gamma: f64| {
            let configuration = json!({ "algorithm": algorithm, "knobs": { "gamma": gamma } });
            throughput_mbps(aggregate, &configuration)
        };
        for aggregate in 0..AGGREGATES {
            let best = 10_f64.powf(1.0 + 2.0 * aggregate as f64 / 11.0);
            assert!((brings(aggregate, "vivace", best) - 24.0).abs() < 1e-9);
            assert_eq!(brings(aggregate, "cubic", 1.0), 20.0);
        }
        assert!(brings(0, "bbr", 1.0) < 20.0 && brings(11, "bbr", 1.0) > 24.0);
    }

    #[test]
    fn noise_has_no_mean_and_stays_within_its_bounds() {
        let all: Vec<f64> = (0..10_000).map(|i| noise(i / 100, i % 100)).collect();
        assert!(all.iter().all(|value| (-1.0..1.0).contains(value)));
        // Uniform: the standard error of the mean is 1/√(3·10,000).
        assert!((all.iter().sum::<f64>() / 10_000.0).abs() < 4.0 / (30_000_f64).sqrt());
    }
}
