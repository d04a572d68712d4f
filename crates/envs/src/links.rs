//! Links to learn on and links to be judged on, which are never the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_net::generate::{Cellular, Wifi, steps};
use trimtab_net::{Capacity, Trace, TraceFileError};
use trimtab_units::{Duration, Rate};

/// Of the sessions of recordings, sorted by name, each fourth is for judging.
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

    /// Those of some names, sorted, that belong to it.
    fn of(self, sorted: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let is_mine = |i: usize| (i % HELD_OUT == HELD_OUT - 1) == (self == Self::Test);
        let mine = sorted.into_iter().enumerate().filter(|(i, _)| is_mine(*i));
        let of_split = mine.enumerate().filter(|(i, _)| self.takes(*i));
        of_split.map(|(_, (_, name))| name).collect()
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
    #[error("{}: {cause}; name a folder with one folder of Mahimahi traces per kind, as `trimtab \
             trace fetch` makes it", path.display())]
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
    // A seed tells cellular links apart, but not those that are made of their rate and lengths
    // alone: for judging, rates lie between those for learning, and steps last a second longer, an
    // even number of them instead of an odd one.
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

/// Enters a link anywhere: a trace from a time of it that is drawn, as likely one as another.
pub fn enter_anywhere(capacity: &mut Capacity, random: &mut Pcg64Mcg) {
    if let Capacity::Trace { trace, offset, .. } = capacity {
        *offset = trace.period().mul_f64(random.random());
    }
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

/// What a recording is of: the source and the session, the first two parts of its name (`norway-bus` of
/// `norway-bus-02.trace.gz`). Recordings of one session resemble each other, and are never in two splits.
pub fn session(name: &str) -> &str {
    let stem = name.split('.').next().unwrap_or(name);
    stem.match_indices('-').nth(1).map_or(stem, |(end, _)| &stem[..end])
}

/// The recordings in the folders `kinds` of `root`, of this split. It goes by the sessions of all
/// recordings in all folders of `root`, so it is the same whatever `kinds` are asked for.
///
/// # Errors
/// A folder is missing or has no trace, or a file is no trace.
pub fn recorded(root: &Path, kinds: &[String], split: Split) -> Result<Vec<NamedLink>, LinksError> {
    let listed = listed(root, kinds)?;
    let unreadable = |cause| LinksError::Folder { path: root.to_owned(), cause };
    let mut sessions = BTreeSet::new();
    for entry in std::fs::read_dir(root).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path();
        if folder.is_dir() {
            sessions.extend(names(&folder)?.iter().map(|name| session(name).to_owned()));
        }
    }
    let taken = split.of(sessions);
    load(root, listed.into_iter().filter(|(_, name)| taken.contains(session(name))))
}

/// The same by single files: of each kind, sorted by name, each fourth is for judging. Siblings of one
/// session may then be in two splits. The models of Muses that ship learnt so, and their tables are of
/// what they did not learn on, so this stays until they are trained anew by [`recorded`].
///
/// # Errors
/// As for [`recorded`].
pub fn recorded_by_file(
    root: &Path,
    kinds: &[String],
    split: Split,
) -> Result<Vec<NamedLink>, LinksError> {
    let mut taken = Vec::new();
    for kind in kinds {
        let of_kind = names(&root.join(kind))?;
        taken.extend(split.of(of_kind).into_iter().map(|name| (kind, name)));
    }
    listed(root, kinds)?;
    load(root, taken)
}

/// The kinds and names of all recordings in some folders.
fn listed<'a>(root: &Path, kinds: &'a [String]) -> Result<Vec<(&'a String, String)>, LinksError> {
    let mut listed = Vec::new();
    for kind in kinds {
        let names = names(&root.join(kind))?;
        if names.is_empty() {
            return Err(LinksError::Empty { path: root.join(kind) });
        }
        listed.extend(names.into_iter().map(|name| (kind, name)));
    }
    Ok(listed)
}

/// The names of the traces in a folder, sorted.
fn names(folder: &Path) -> Result<BTreeSet<String>, LinksError> {
    let unreadable = |cause| LinksError::Folder { path: folder.to_owned(), cause };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let is_trace = |n: &&str| n.ends_with(".trace") || n.ends_with(".trace.gz");
        names.extend(name.to_str().filter(is_trace).map(str::to_owned));
    }
    Ok(names)
}

fn load<'a>(
    root: &Path,
    of: impl IntoIterator<Item = (&'a String, String)>,
) -> Result<Vec<NamedLink>, LinksError> {
    let link = |(kind, name): (&String, String)| {
        let trace = Trace::load(&root.join(kind).join(&name))?;
        Ok(NamedLink { name: format!("{kind}/{name}"), capacity: Capacity::trace(trace) })
    };
    of.into_iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(links: &[NamedLink]) -> Vec<&str> {
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
        assert!(names_of(&train).iter().all(|name| !names_of(&test).contains(name)));
        for judged in &test {
            let same = train.iter().find(|learnt| is_same(&learnt.capacity, &judged.capacity));
            assert!(same.is_none(), "{} is {}", judged.name, same.unwrap().name);
        }
        let rates: Vec<f64> = train.iter().map(|link| link.capacity.mean_rate().mbps()).collect();
        let (slowest, fastest) =
            rates.iter().fold((f64::MAX, 0f64), |(a, b), &r| (a.min(r), b.max(r)));
        assert!(slowest < 3.0 && fastest > 30.0, "{slowest} to {fastest} Mbit/s");
        assert_eq!(names_of(&generated_wifi(3)).len(), 3);
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

    /// A folder of recordings: kinds with names.
    fn recordings(kinds: &[(&str, &[&str])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (kind, names) in kinds {
            let kind = folder.path().join(kind);
            std::fs::create_dir(&kind).unwrap();
            for name in *names {
                std::fs::write(kind.join(format!("{name}.trace")), "1\n2\n").unwrap();
            }
            std::fs::write(kind.join("README"), "no trace").unwrap();
        }
        folder
    }

    #[test]
    fn what_was_recorded_in_one_session_is_never_in_two_splits() {
        let walks = ["lumos-walking-1", "lumos-walking-2", "lumos-walking-3", "lumos-walking-4"];
        let lte = [&walks[..], &["norway-bus-1", "norway-bus-2", "nyc-home-7"]].concat();
        let rail = ["norway-train-1", "nyc-home-8", "pitree-hsr-1", "solis-cafe-1"];
        let folder = recordings(&[("lte", &lte), ("rail", &rail), ("wifi", &["zhuge-rest-01"])]);
        let of = |kinds: &[&str], split| {
            let kinds: Vec<String> = kinds.iter().map(|&kind| kind.to_owned()).collect();
            let links = recorded(folder.path(), &kinds, split).unwrap();
            links.into_iter().map(|link| link.name).collect::<Vec<_>>()
        };
        // Of lumos-walking, norway-bus, norway-train, nyc-home, pitree-hsr, solis-cafe, zhuge-rest the fourth.
        assert_eq!(
            of(&["lte", "rail"], Split::Test),
            ["lte/nyc-home-7.trace", "rail/nyc-home-8.trace"]
        );
        assert_eq!(of(&["rail"], Split::Test), ["rail/nyc-home-8.trace"], "whatever is asked for");
        assert_eq!(of(&["lte"], Split::Train).len(), 6);
        // Of the other six the fifth.
        assert_eq!(of(&["lte", "rail"], Split::Validate), ["rail/solis-cafe-1.trace"]);
        assert_eq!(of(&["lte", "rail", "wifi"], Split::Fit).len(), 9);
    }

    #[test]
    fn sessions_are_the_first_two_parts_of_a_name() {
        let names = ["norway-bus-02.trace.gz", "mpwl-path7-2-wifi.trace", "fcc.trace", "a-b.trace"];
        assert_eq!(names.map(session), ["norway-bus", "mpwl-path7", "fcc", "a-b"]);
    }

    #[test]
    fn a_link_is_entered_anywhere() {
        use rand::SeedableRng;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let trace = steps(&[(Duration::from_secs(10), Rate::from_mbps(1.0))]).unwrap();
        let mut offsets: Vec<f64> = (0..200)
            .map(|_| {
                let mut capacity = Capacity::trace(trace.clone());
                enter_anywhere(&mut capacity, &mut random);
                let Capacity::Trace { offset, .. } = capacity else { panic!("a trace") };
                offset.as_secs_f64()
            })
            .collect();
        offsets.sort_by(f64::total_cmp);
        assert!(offsets[0] < 0.5 && offsets[199] > 9.5 && offsets[199] <= 10.0, "{offsets:?}");
        assert!((4.0..6.0).contains(&offsets[100]), "{offsets:?}");
    }

    #[test]
    fn recordings_may_be_split_by_file() {
        let folder = recordings(&[("lte", &["a", "b", "c", "d", "e", "f", "g", "h"])]);
        let of = |split| recorded_by_file(folder.path(), &["lte".to_owned()], split).unwrap();
        assert_eq!(names_of(&of(Split::Test)), ["lte/d.trace", "lte/h.trace"]);
        assert_eq!(of(Split::Train).len(), 6);
        // Of a, b, c, e, f, g the fifth.
        assert_eq!(names_of(&of(Split::Validate)), ["lte/f.trace"]);
        assert_eq!(
            names_of(&of(Split::Fit)),
            ["lte/a.trace", "lte/b.trace", "lte/c.trace", "lte/e.trace", "lte/g.trace"]
        );
        for recorded in [recorded, recorded_by_file] {
            let missing = recorded(folder.path(), &["5g".to_owned()], Split::Train).unwrap_err();
            assert!(missing.to_string().contains("trimtab trace fetch"), "{missing}");
        }
    }
}
