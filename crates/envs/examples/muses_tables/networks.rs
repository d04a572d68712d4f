//! The networks of a table.

use std::path::PathBuf;

use trimtab_envs::muses::{Environment, Environments, EnvironmentsConfig, Oracle, Part, Setting};
use trimtab_units::{Bytes, Duration};

/// Networks of one kind, by their seeds.
pub(crate) type Networks = (String, Box<dyn Fn(u64) -> Environment + Sync>);

/// Kinds of recordings of which no policy has learnt.
const UNSEEN: [&str; 5] = ["broadband", "rail", "wired-step", "satellite", "cellular-5g"];
/// Their buffer, where a round trip's volume is not more.
const BUFFER_MIN: Bytes = Bytes::new(300_000);

fn environments(
    setting: Setting,
    part: Part,
    length: Duration,
    recorded: Option<(PathBuf, &str)>,
) -> Environments {
    Environments::new(&EnvironmentsConfig {
        setting,
        part,
        length: length + Duration::from_secs(2),
        recorded: recorded.map(|(root, kind)| (root, vec![kind.to_owned()])),
        generated: 32,
        delay_max: None,
        oracle: Oracle::PAPER,
    })
    .unwrap_or_else(|problem| panic!("{problem}"))
}

/// The columns of Table III, and Wi-Fi on a channel that others use too.
pub(crate) fn of_table_3(part: Part, length: Duration, traces: Option<&PathBuf>) -> Vec<Networks> {
    let settings =
        [Setting::SteadyWifi, Setting::FluctuatingWifi, Setting::Lte, Setting::SharedWifi];
    let networks = |setting: Setting| {
        let recorded = traces.map(|root| (root.clone(), "cellular-lte"));
        let all = environments(setting, part, length, recorded);
        let draw: Box<dyn Fn(u64) -> Environment + Sync> = Box::new(move |seed| all.draw(seed));
        (setting.name().to_owned(), draw)
    };
    settings.map(networks).into()
}

/// Those of Table III, and of Table II: what was learnt on, but for the links themselves.
pub(crate) fn of_tables_2_and_3(
    part: Part,
    length: Duration,
    traces: Option<&PathBuf>,
) -> Vec<Networks> {
    let mut all = of_table_3(part, length, traces);
    let recorded = traces.map(|root| (root.clone(), "cellular-lte"));
    let global = environments(Setting::Global, part, length, recorded);
    all.push(("Table II".to_owned(), Box::new(move |seed| global.draw(seed))));
    all
}

/// Networks that differ from all of Table II in one thing: the round-trip time (10 to 300 ms
/// there), the loss (up to 5%), or the kind of link. Their buffer is a round trip's volume, at
/// least 300 kB.
pub(crate) fn outside_of_table_2(
    part: Part,
    length: Duration,
    traces: Option<&PathBuf>,
) -> Vec<Networks> {
    let mut all = Vec::new();
    for (what, delay_factor, loss) in [
        // One-way delays are 20 to 50 ms.
        ("RTT 2 to 5 ms", 0.05, 0.0),
        ("RTT 400 to 1000 ms", 10.0, 0.0),
        ("10% loss", 1.0, 0.1),
        ("20% loss", 1.0, 0.2),
    ] {
        let wifi = environments(Setting::FluctuatingWifi, part, length, None);
        let cellular = environments(Setting::Lte, part, length, None);
        let draw: Box<dyn Fn(u64) -> Environment + Sync> = Box::new(move |seed| {
            let drawn = if seed % 2 == 0 { wifi.draw(seed) } else { cellular.draw(seed) };
            let delay = drawn.delay.mul_f64(delay_factor);
            buffered(Environment { delay, loss, ..drawn })
        });
        all.push((what.to_owned(), draw));
    }
    if let Some(root) = traces {
        for kind in UNSEEN {
            let links = environments(Setting::Lte, part, length, Some((root.clone(), kind)));
            let draw: Box<dyn Fn(u64) -> Environment + Sync> =
                Box::new(move |seed| buffered(links.draw(seed)));
            all.push((kind.to_owned(), draw));
        }
    }
    all
}

fn buffered(network: Environment) -> Environment {
    let volume = network.capacity.mean_rate() * (network.delay * 2);
    Environment { buffer: volume.max(BUFFER_MIN), ..network }
}
