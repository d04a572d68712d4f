//! What the back-off of probes costs: the same flows over transports that let it grow more or less.

use std::path::Path;

use rayon::prelude::*;
use trimtab_envs::muses::{Environment, Part, Rollout};
use trimtab_sim::{Control, Transport};
use trimtab_units::Duration;

use crate::{networks, unseen};

/// The most by which the wait grows with each probe: without end as in RFC 9002, noq's, and less.
const GROWTHS: [(&str, Option<Duration>); 3] = [
    ("doubles", None),
    ("2 s", Transport::noq().probe_growth),
    ("0.25 s", Some(Duration::from_millis(250))),
];

/// Prints the utilisation of each scheme on fluctuating Wi-Fi (`count` networks) and on recordings of
/// Wi-Fi and LTE, with each of [`GROWTHS`].
pub(crate) fn print(
    root: &Path,
    part: Part,
    schemes: &[(String, Control)],
    count: u64,
    length: Duration,
) {
    let mut kinds: Vec<(String, Vec<Environment>)> =
        networks::of_table_3(part, length, Some(&root.to_owned()))
            .into_iter()
            .filter(|(kind, _)| kind == "fluctuating-wifi")
            .map(|(kind, draw)| (kind, (0..count).map(draw).collect()))
            .collect();
    for kind in ["wifi", "cellular-lte"] {
        kinds.push((kind.to_owned(), unseen::networks(root, kind, part)));
    }
    let heads = GROWTHS.map(|(name, _)| name).join(" | ");
    println!("| networks | | {heads} |\n|---|---|---:|---:|---:|");
    for (kind, networks) in &kinds {
        for (name, control) in schemes {
            let used = |(_, probe_growth)| {
                let transport = Transport { probe_growth, ..Transport::quic() };
                let run = |(seed, network): (usize, &Environment)| {
                    Rollout::run_over(network, control, transport, length, seed as u64).utilisation
                };
                let sum: f64 = networks.par_iter().enumerate().map(run).sum();
                format!("{:.2}%", 100.0 * sum / networks.len() as f64)
            };
            println!(
                "| {kind} ({}) | {name} | {} |",
                networks.len(),
                GROWTHS.map(used).join(" | ")
            );
        }
    }
}
