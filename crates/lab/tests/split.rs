//! The split of the shared recordings, dealt out again by the rule in the head of
//! `traces/split.toml`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use trimtab_lab::scenario::Part;

const SHARES: [f64; 3] = [0.5, 0.2, 0.3];

struct Recording {
    kind: String,
    name: String,
    source: String,
}

/// The recordings of the index. Without the collection the test skips; in CI it fails.
fn index() -> Option<Vec<Recording>> {
    let here = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("TRIMTAB_SHARED").map_or(here, PathBuf::from);
    let Ok(text) = std::fs::read_to_string(shared.join("traces/INDEX.csv")) else {
        assert!(std::env::var_os("CI").is_none(), "CI has the shared collection");
        eprintln!("skipped: no shared collection at {}", shared.display());
        return None;
    };
    let recording = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let (kind, file) = columns[0].split_once('/').unwrap();
        Recording {
            kind: kind.to_owned(),
            name: file.strip_suffix(".trace.gz").unwrap().to_owned(),
            source: columns[2].to_owned(),
        }
    };
    Some(text.lines().skip(1).map(recording).collect())
}

/// Rules 1 and 2.
fn session(r: &Recording) -> String {
    let one_car = r.source == "Starlink-Project/Satellite-vs-Cellular"
        && (r.name.starts_with("satcell-") || r.name.contains("-udp-"));
    if one_car {
        return format!("{} udp-down", r.source);
    }
    let name = r.name.strip_suffix("-down").or(r.name.strip_suffix("-up")).unwrap_or(&r.name);
    let is_digit = |c: char| c.is_ascii_digit();
    let prefix = match name.rfind(is_digit) {
        Some(last) => name[..=last].trim_end_matches(is_digit),
        None => name,
    };
    format!("{} {prefix}", r.source)
}

/// Rule 3: the part of each session.
fn dealt(recordings: &[Recording]) -> BTreeMap<String, usize> {
    let mut sessions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut size: BTreeMap<&str, f64> = BTreeMap::new();
    for r in recordings {
        sessions.entry(session(r)).or_default().push(&r.kind);
        *size.entry(&r.kind).or_default() += 1.0;
    }
    let hash = |name: &str| Sha256::digest(name.as_bytes()).to_vec();
    let mut order: Vec<(&String, &Vec<&str>)> = sessions.iter().collect();
    order.sort_by_key(|(name, kinds)| (Reverse(kinds.len()), hash(name)));
    let mut has: [BTreeMap<&str, f64>; 3] = Default::default();
    let mut part_of = BTreeMap::new();
    for (name, kinds) in order {
        let lack = |part: usize| -> f64 {
            let of_kind = |kind: &&str| has[part].get(kind).copied().unwrap_or(0.0) / size[kind];
            kinds.iter().map(|kind| SHARES[part] - of_kind(kind)).sum()
        };
        // The first of equals.
        let part = (1..3).fold(0, |best, p| if lack(p) > lack(best) + 1e-12 { p } else { best });
        for kind in kinds {
            *has[part].entry(kind).or_default() += 1.0;
        }
        part_of.insert(name.clone(), part);
    }
    part_of
}

#[test]
fn the_split_is_what_its_rule_gives() {
    let Some(recordings) = index() else { return };
    let part_of = dealt(&recordings);
    for (i, part) in Part::ALL.into_iter().enumerate() {
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for r in recordings.iter().filter(|r| part_of[&session(r)] == i) {
            expected.entry(r.kind.clone()).or_default().push(r.name.clone());
        }
        expected.values_mut().for_each(|names| names.sort());
        assert_eq!(part.recordings(), expected, "{part}");
    }
}

#[test]
fn every_recording_is_in_one_part_and_every_kind_in_all() {
    let Some(recordings) = index() else { return };
    let parts = Part::ALL.map(Part::recordings);
    let mut session_parts: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for r in &recordings {
        let holds =
            |part: &usize| parts[*part].get(&r.kind).is_some_and(|names| names.contains(&r.name));
        let held: Vec<usize> = (0..3).filter(holds).collect();
        assert_eq!(held.len(), 1, "{}/{} is in {held:?}", r.kind, r.name);
        session_parts.entry(session(r)).or_default().extend(held);
    }
    for (session, parts) in session_parts {
        assert_eq!(parts.len(), 1, "{session} is in several parts");
    }
    let listed: usize = parts.iter().flat_map(BTreeMap::values).map(Vec::len).sum();
    assert_eq!(listed, recordings.len(), "no other recording is listed");
    let kinds: BTreeSet<&str> = recordings.iter().map(|r| r.kind.as_str()).collect();
    for kind in kinds {
        let all = recordings.iter().filter(|r| r.kind == kind).count() as f64;
        for (part, share) in parts.iter().zip(SHARES) {
            let found = part[kind].len() as f64 / all;
            assert!((found - share).abs() < 0.1, "{kind}: {found:.2} instead of {share}");
        }
    }
}
