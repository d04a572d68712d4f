//! What we depend on, held against `deny.toml`.
//!
//! That file is in cargo-deny's format, so `cargo deny check` reads the same rules and adds the advisories. This
//! module checks licences, bans and sources from `cargo metadata` alone: it costs milliseconds where building
//! cargo-deny costs minutes, and needs no database from the network.

use std::collections::{BTreeMap, VecDeque};

use crate::Finding;
use serde::Deserialize;

/// The part of `deny.toml` that is read here.
#[derive(Debug, Deserialize)]
pub struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

impl Rules {
    /// Reads `deny.toml`; the error is the parser's, with its position.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The target triples that we build for.
    pub fn targets(&self) -> &[String] {
        &self.graph.targets
    }
}

/// What each room must not depend on: `tools/tidy/rooms.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rooms {
    rooms: BTreeMap<String, Room>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Room {
    without: Vec<String>,
    reason: String,
}

impl Rooms {
    /// Reads `rooms.toml`; the error is the parser's, with its position.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

/// The part of `cargo metadata --format-version 1` that is read here.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    resolve: Option<Resolve>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// `None` for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Package {
    #[serde(default)]
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for a path of this repository.
    source: Option<String>,
}

impl Metadata {
    /// Reads what `cargo metadata` printed.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// A chain of dependencies from a package to each one that it needs to build or run, by name.
    /// Dependencies of tests alone are left out.
    fn chains(&self, room: &str) -> Option<BTreeMap<&str, Vec<&str>>> {
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.iter().flat_map(|all| &all.nodes).map(|n| (n.id.as_str(), n)).collect();
        let start = self.packages.iter().find(|package| package.name == room)?;
        let mut chains = BTreeMap::from([(start.name.as_str(), vec![start.name.as_str()])]);
        let mut waiting = VecDeque::from([start]);
        while let Some(package) = waiting.pop_front() {
            let Some(node) = nodes.get(package.id.as_str()) else { continue };
            let used = |to: &&Dependency| {
                to.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
            };
            for dependency in node.deps.iter().filter(used) {
                let Some(next) = self.package(&dependency.pkg) else { continue };
                if !chains.contains_key(next.name.as_str()) {
                    let mut chain = chains[package.name.as_str()].clone();
                    chain.push(&next.name);
                    chains.insert(&next.name, chain);
                    waiting.push_back(next);
                }
            }
        }
        Some(chains)
    }

    /// How many packages there are, ours included.
    pub fn package_count(&self) -> usize {
        self.packages.len()
    }
}

/// Whether a licence expression can be met with the allowed licences alone. Crates of an older day write `A/B` for
/// `A OR B`.
fn is_allowed(expression: &str, allow: &[String]) -> Result<bool, spdx::ParseError> {
    let expression = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX)?;
    // A requirement with an exception, such as `Apache-2.0 WITH LLVM-exception`, is listed as such.
    Ok(expression.evaluate(|requirement| allow.contains(&requirement.to_string())))
}

/// Holds every package against the rules.
pub fn check(rules: &Rules, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let place = format!("{} {}", package.name, package.version);
        let mut complain = |what: String| findings.push(Finding::at(&place, what));
        match package.license.as_deref().map(|license| is_allowed(license, &rules.licenses.allow)) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => complain(format!(
                "its licence `{}` is not among [licenses] allow of deny.toml",
                package.license.as_deref().unwrap_or_default()
            )),
            Some(Err(error)) => complain(format!("its licence cannot be read: {error}")),
            None => complain("names no licence".to_owned()),
        }
        if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
            complain(format!("is banned by deny.toml: {}", ban.reason));
        }
        if let Some(source) = &package.source
            && !source.starts_with("registry+")
        {
            complain(format!("comes from {source}; we take dependencies from the registry only"));
        }
    }
    findings
}

/// Holds the dependencies of our rooms against `rooms.toml`.
pub fn check_rooms(rooms: &Rooms, metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, room) in &rooms.rooms {
        let Some(chains) = metadata.chains(name) else {
            findings.push(Finding::at(name, "rooms.toml names it, but there is no such package"));
            continue;
        };
        for banned in &room.without {
            if let Some(chain) = chains.get(banned.as_str()) {
                let chain = chain.join(" -> ");
                let what = format!("must not depend on {banned} ({}): {chain}", room.reason);
                findings.push(Finding::at(name, what));
            }
        }
    }
    findings
}
