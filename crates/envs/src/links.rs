//! Links to learn on and links to be judged on, which are never the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_net::generate::{Cellular, Wifi, steps};
use trimtab_net::{Capacity, Part, Trace, TraceFileError, recording_name};
use trimtab_units::{Duration, Rate};

/// Of the generated links that are not for the test, each fifth is for choosing between models.
const VALIDATED: usize = 5;
/// Generated links for the test have seeds from here on.
const TEST_SEEDS: u64 = 1 << 32;
/// Length of a generated link before it repeats.
const LENGTH: Duration = Duration::from_secs(180);

/// Whether generated link number `i` of this part's series is its own. Train and validate share one.
fn takes(part: Part, i: usize) -> bool {
    match part {
        Part::Train => i % VALIDATED != VALIDATED - 1,
        Part::Validate => i % VALIDATED == VALIDATED - 1,
        Part::Test => true,
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
    /// There is no trace in the folder.
    #[error("{}: there is no trace in it; name a folder of the shared collection", .0.display())]
    NoTrace(PathBuf),
    /// There is no trace of this kind and part.
    #[error(
        "{}: none of its files is a trace of the part {part} of traces/split.toml; name a folder of \
         the shared collection", path.display()
    )]
    Empty {
        /// The folder.
        path: PathBuf,
        /// The part.
        part: Part,
    },
    /// A file is no trace.
    #[error(transparent)]
    File(#[from] TraceFileError),
}

/// The generated links of this part: of `count` for train and validate together, or `count` for the
/// test. Cellular ones from slow to fast, with few outages and many, and, of every eight, one that
/// stays at its rate and one that steps.
pub fn generated(count: usize, part: Part) -> Vec<NamedLink> {
    let of_part = (0..count).filter(|i| takes(part, *i));
    of_part.map(|i| generated_link(i as u64, part == Part::Test)).collect()
}

/// Number `i` of the generated links that are learnt on and chosen by, or of those of the test.
pub(crate) fn generated_link(i: u64, is_test: bool) -> NamedLink {
    // A seed tells cellular links apart, but not those that are made of their rate and lengths
    // alone: for judging, rates lie between those for learning, and steps last a second longer, an
    // even number of them instead of an odd one.
    let (seed, between, longer) = if is_test { (TEST_SEEDS + i, 0.5, 1) } else { (i, 0.0, 0) };
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

/// The recordings in the folders `kinds` of `root` that are of this part of `traces/split.toml`. What
/// is in no part, e.g. a recording of one's own, is not taken.
///
/// # Errors
/// A folder is missing or has no trace of this part, or a file is no trace.
pub fn recorded(root: &Path, kinds: &[String], part: Part) -> Result<Vec<NamedLink>, LinksError> {
    let of_part = part.recordings();
    let mut taken = Vec::new();
    for kind in kinds {
        let folder = root.join(kind);
        let known = of_part.get(kind).map_or(&[][..], Vec::as_slice);
        let names = names(&folder)?;
        let of_kind = names.into_iter().filter(|n| known.contains(&recording_name(n.as_ref())));
        let before = taken.len();
        taken.extend(of_kind.map(|name| (kind, name)));
        if taken.len() == before {
            return Err(LinksError::Empty { path: folder, part });
        }
    }
    load(root, taken)
}

/// The names of the traces in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Result<BTreeSet<String>, LinksError> {
    let unreadable = |cause| LinksError::Folder { path: folder.to_owned(), cause };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let is_trace = |n: &&str| n.ends_with(".trace") || n.ends_with(".trace.gz");
        names.extend(name.to_str().filter(is_trace).map(str::to_owned));
    }
    Ok(names)
}

/// Reads the recordings of these kinds and names.
pub(crate) fn load<'a>(
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
        let links = [3, 7, 11, 15].map(|i| generated_link(i, false));
        let named = links.each_ref().map(|link| link.name.as_str());
        assert_eq!(named, ["constant:3", "step:7", "constant:11", "step:15"]);
        let rates = links.each_ref().map(|link| link.capacity.mean_rate().mbps());
        for (rate, was) in rates.into_iter().zip([36.861, 5.272, 30.019, 4.294]) {
            assert!((rate - was).abs() < 0.001, "{rates:?}");
        }
    }

    #[test]
    fn generated_links_of_the_parts_differ() {
        let (train, test) = (generated(128, Part::Train), generated(128, Part::Test));
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
    fn generated_links_are_to_learn_on_or_to_validate() {
        let (train, validate) = (generated(23, Part::Train), generated(23, Part::Validate));
        assert_eq!((train.len(), validate.len()), (19, 4));
        let (train, validate) = (names_of(&train), names_of(&validate));
        assert!(validate.iter().all(|name| !train.contains(name)));
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
    fn recordings_are_of_the_parts_of_the_projects_split() {
        let first = |part: Part, kind: &str| part.recordings()[kind][0].clone();
        let [train, validate, test] = Part::ALL.map(|part| first(part, "rail"));
        let rail = [train.as_str(), &validate, &test, "my-own-train"];
        let folder = recordings(&[("rail", &rail), ("wifi", &["my-own-cafe"])]);
        let of = |kind: &str, part| recorded(folder.path(), &[kind.to_owned()], part);
        for (part, name) in Part::ALL.into_iter().zip(&rail) {
            assert_eq!(names_of(&of("rail", part).unwrap()), [format!("rail/{name}.trace")]);
        }
        let none = of("wifi", Part::Test).unwrap_err();
        assert!(none.to_string().contains("the part test"), "{none}");
        let missing = of("5g", Part::Train).unwrap_err();
        assert!(missing.to_string().contains("trimtab trace fetch"), "{missing}");
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
}
