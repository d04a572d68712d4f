//! What we depend on, held against `deny.toml`.
//!
//! That file is in cargo-deny's format, so `cargo deny check` reads the same rules and adds the advisories. This
//! module checks licences, bans and sources from `cargo metadata` alone: it costs milliseconds where building
//! cargo-deny costs minutes, and needs no database from the network.

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

/// The part of `cargo metadata --format-version 1` that is read here.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
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
