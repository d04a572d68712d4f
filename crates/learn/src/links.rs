//! Links to learn on and links to be judged on, which are never the same.

use std::path::{Path, PathBuf};

use trimtab_net::generate::{Cellular, Wifi, steps};
use trimtab_net::{Capacity, Trace, TraceFileError};
use trimtab_units::{Duration, Rate};

/// Of the recordings of one kind, sorted by name, each fourth is for judging.
const HELD_OUT: usize = 4;
/// Of those to learn on, each fifth is for choosing between models where a training chooses.
const VALIDATED: usize = 5;
/// Generated links for judging have seeds from here on.
const TEST_SEEDS: u64 = 1 << 32;
/// Length of a generated link before it repeats.
const LENGTH: Duration = Duration::from_secs(180);

/// Which links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// To learn on.
    Train,
    /// Those of them that a training fits its models to, where it chooses between models itself.
    Fit,
    /// The others, by which it chooses.
    Validate,
    /// To be judged on.
    Test,
}

impl Split {
    /// Whether number `i` of the links to learn on belongs to it.
    fn takes(self, i: usize) -> bool {
        match self {
            Self::Fit => i % VALIDATED != VALIDATED - 1,
            Self::Validate => i % VALIDATED == VALIDATED - 1,
            Self::Train | Self::Test => true,
        }
    }
}

/// A link with its name.
#[derive(Clone, Debug)]
pub struct NamedLink {
    /// `cellular:5`, or the file's name with its folder.
    pub name: String,
    /// What it carries.
    pub capacity: Capacity,
}

/// Why there are no links.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The folder cannot be read.
    #[error("{}: {cause}; name a folder with one folder of Mahimahi traces per kind, as `trimtab trace fetch` makes it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason of the operating system.
        cause: std::io::Error,
    },
    /// There is no trace of this kind.
    #[error("{}: no file ends in .trace or .trace.gz there", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A file is no trace.
    #[error(transparent)]
    File(#[from] TraceFileError),
}

/// `count` generated links: cellular ones from slow to fast, with few outages and many, and, of every
/// eight, one that stays at its rate and one that steps.
pub fn generated(count: usize, split: Split) -> Vec<NamedLink> {
    let of_split = (0..count).filter(|i| split.takes(*i));
    of_split.map(|i| generated_link(i as u64, split)).collect()
}

fn generated_link(i: u64, split: Split) -> NamedLink {
    // A seed tells cellular links apart, but not those that are made of their rate and lengths alone: for judging, rates lie
    // between those for learning, and steps last a second longer, an even number of them instead of an odd one.
    let (seed, between, longer) = match split {
        Split::Train | Split::Fit | Split::Validate => (i, 0.0, 0),
        Split::Test => (TEST_SEEDS + i, 0.5, 1),
    };
    // Golden-section steps cover the range evenly however many links there are.
    let position = libm::fmod((i as f64 + between) * 0.618_033_988_749_895, 1.0);
    let mbps = libm::pow(10.0, 0.2 + 1.6 * position);
    let rate = Rate::from_mbps(mbps);
    let (kind, trace) = match i % 8 {
        3 => {
            return NamedLink {
                name: format!("constant:{seed}"),
                capacity: Capacity::Constant(rate),
            };
        }
        7 => {
            let each = Duration::from_secs(10 + longer + i % 30);
            let (high, low) = (rate.mul_f64(1.6), rate.mul_f64(0.4));
            let trace = steps(&[(each, rate), (each, high), (each, low)]);
            ("step", trace.expect("the steps last seconds"))
        }
        _ => {
            let cellular = Cellular {
                duration: LENGTH,
                rate_min: rate.mul_f64(0.15),
                rate_max: rate.mul_f64(3.0),
                outages_per_minute: [0.0, 0.5, 2.0, 6.0][(i / 2 % 4) as usize],
                ..Cellular::default()
            };
            ("cellular", cellular.generate(seed).trace)
        }
    };
    NamedLink { name: format!("{kind}:{seed}"), capacity: Capacity::trace(trace) }
}

/// `count` generated Wi-Fi links, for judging only: no policy learns on one.
pub fn generated_wifi(count: usize) -> Vec<NamedLink> {
    let link = |i: u64| {
        let wifi = Wifi {
            duration: LENGTH,
            radius_m: 5.0 + (i % 4) as f64 * 5.0,
            shadowing_db: [3.0, 6.0, 10.0][(i % 3) as usize],
            rivals: (i % 3) as f64,
            ..Wifi::default()
        };
        let seed = TEST_SEEDS + i;
        NamedLink {
            name: format!("wifi:{seed}"),
            capacity: Capacity::trace(wifi.generate(seed).trace),
        }
    };
    (0..count as u64).map(link).collect()
}

/// The recordings in the folders `kinds` of `root`, of this split.
///
/// # Errors
/// A folder is missing or has no trace, or a file is no trace.
pub fn recorded(root: &Path, kinds: &[String], split: Split) -> Result<Vec<NamedLink>, LinksError> {
    let mut links = Vec::new();
    for kind in kinds {
        let folder = root.join(kind);
        let unreadable = |cause| LinksError::Folder { path: folder.clone(), cause };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            if let Some(name) =
                name.to_str().filter(|n| n.ends_with(".trace") || n.ends_with(".trace.gz"))
            {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            return Err(LinksError::Empty { path: folder });
        }
        names.sort_unstable();
        let of_split = |i: usize| (i % HELD_OUT == HELD_OUT - 1) == (split == Split::Test);
        let names =
            names.into_iter().enumerate().filter(|(i, _)| of_split(*i)).map(|(_, name)| name);
        for (_, name) in names.enumerate().filter(|(i, _)| split.takes(*i)) {
            let trace = Trace::load(&folder.join(&name))?;
            links.push(NamedLink {
                name: format!("{kind}/{name}"),
                capacity: Capacity::trace(trace),
            });
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(links: &[NamedLink]) -> Vec<&str> {
        links.iter().map(|link| link.name.as_str()).collect()
    }

    /// Whether two links carry the same at all times.
    fn is_same(one: &Capacity, other: &Capacity) -> bool {
        match (one, other) {
            (Capacity::Constant(one), Capacity::Constant(other)) => one == other,
            (Capacity::Trace { trace: one, .. }, Capacity::Trace { trace: other, .. }) => {
                one == other
            }
            _ => false,
        }
    }

    /// The models of `models/` learnt on these: other rates for learning make their cards untrue.
    #[test]
    fn generated_links_to_learn_on_stay_as_they_are() {
        let train = generated(16, Split::Train);
        let rates = [3, 7, 11, 15].map(|i: usize| train[i].capacity.mean_rate().mbps());
        let named = [3, 7, 11, 15].map(|i: usize| train[i].name.as_str());
        assert_eq!(named, ["constant:3", "step:7", "constant:11", "step:15"]);
        for (rate, was) in rates.into_iter().zip([36.861, 5.272, 30.019, 4.294]) {
            assert!((rate - was).abs() < 0.001, "{rates:?}");
        }
    }

    #[test]
    fn generated_links_of_the_splits_differ() {
        let (train, test) = (generated(128, Split::Train), generated(128, Split::Test));
        assert!(names(&train).iter().all(|name| !names(&test).contains(name)));
        for judged in &test {
            let same = train.iter().find(|learnt| is_same(&learnt.capacity, &judged.capacity));
            assert!(same.is_none(), "{} is {}", judged.name, same.unwrap().name);
        }
        let rates: Vec<f64> = train.iter().map(|link| link.capacity.mean_rate().mbps()).collect();
        let (slowest, fastest) =
            rates.iter().fold((f64::MAX, 0f64), |(a, b), &r| (a.min(r), b.max(r)));
        assert!(slowest < 3.0 && fastest > 30.0, "{slowest} to {fastest} Mbit/s");
        assert_eq!(names(&generated_wifi(3)).len(), 3);
    }

    #[test]
    fn links_to_learn_on_are_to_fit_or_to_validate() {
        let (train, fit) = (generated(23, Split::Train), generated(23, Split::Fit));
        let validate = generated(23, Split::Validate);
        assert_eq!((fit.len(), validate.len()), (19, 4));
        for link in &train {
            let same = |other: &&NamedLink| {
                other.name == link.name && is_same(&other.capacity, &link.capacity)
            };
            assert_eq!(fit.iter().chain(&validate).filter(same).count(), 1, "{}", link.name);
        }
    }

    #[test]
    fn recordings_are_split_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let kind = folder.path().join("lte");
        std::fs::create_dir(&kind).unwrap();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            std::fs::write(kind.join(format!("{name}.trace")), "1\n2\n").unwrap();
        }
        std::fs::write(kind.join("README"), "no trace").unwrap();
        let of = |split| recorded(folder.path(), &["lte".to_owned()], split).unwrap();
        assert_eq!(names(&of(Split::Test)), ["lte/d.trace", "lte/h.trace"]);
        assert_eq!(of(Split::Train).len(), 6);
        // Of a, b, c, e, f, g the fifth.
        assert_eq!(names(&of(Split::Validate)), ["lte/f.trace"]);
        assert_eq!(
            names(&of(Split::Fit)),
            ["lte/a.trace", "lte/b.trace", "lte/c.trace", "lte/e.trace", "lte/g.trace"]
        );
        let missing = recorded(folder.path(), &["5g".to_owned()], Split::Train).unwrap_err();
        assert!(missing.to_string().contains("trimtab trace fetch"), "{missing}");
    }
}
