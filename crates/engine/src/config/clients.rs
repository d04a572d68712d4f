//! `[[client]]`: what a client may do by the name in its certificate.

use serde::Deserialize;
use toml::Spanned;
use trimtab_fleet_client::Role;

use super::ConfigError;
use super::keep::Place;

/// The rights of clients whose certificate has a certain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientRule {
    name: Pattern,
    pub(crate) role: Role,
    pub(crate) services: Vec<String>,
    pub(crate) prefixes: Vec<String>,
}

impl ClientRule {
    /// The first of these names that fits.
    pub(crate) fn of<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        names.iter().map(String::as_str).find(|name| self.name.is(name))
    }
}

/// A name, or one with `*` in the place of letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    begin: String,
    /// None where it has no `*`.
    end: Option<String>,
}

impl Pattern {
    fn read(text: &str) -> Result<Self, String> {
        let (begin, end) = match text.split_once('*') {
            Some((begin, end)) => (begin, Some(end.to_owned())),
            None => (text, None),
        };
        if text.is_empty() || end.as_ref().is_some_and(|end| end.contains('*')) {
            return Err(format!(
                "name = {text:?}: give a name of a certificate, with at most one *"
            ));
        }
        Ok(Self { begin: begin.to_owned(), end })
    }

    fn is(&self, name: &str) -> bool {
        let Some(end) = &self.end else { return name == self.begin };
        let middle = name.strip_prefix(&self.begin).and_then(|rest| rest.strip_suffix(&**end));
        let letters = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        middle.is_some_and(|middle| !middle.is_empty() && middle.chars().all(letters))
    }
}

/// As the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClient {
    name: String,
    role: Role,
    #[serde(default)]
    services: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
}

impl RawClient {
    fn read(self) -> Result<ClientRule, String> {
        let Self { name, role, services, prefixes } = self;
        crate::api::check_scope(role, &services, &prefixes)?;
        Ok(ClientRule { name: Pattern::read(&name)?, role, services, prefixes })
    }
}

impl Place<'_> {
    /// The rules, which go together with an authority.
    pub(super) fn clients(
        &self,
        all: Vec<Spanned<RawClient>>,
        has_authority: bool,
    ) -> Result<Vec<ClientRule>, ConfigError> {
        if has_authority && all.is_empty() {
            let at = self.text.find("[tls]").unwrap_or(0);
            let why = "clients: no name may do anything yet. Add a [[client]] with name and role";
            return Err(self.wrong(&(at..at), why));
        }
        let one = |raw: Spanned<RawClient>| {
            let at = raw.span();
            if !has_authority {
                let why = "no authority signs certificates of clients: give [tls] clients a file \
                           in PEM with one";
                return Err(self.wrong(&at, why));
            }
            raw.into_inner().read().map_err(|why| self.wrong(&at, &why))
        };
        all.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_part_of_a_name() {
        let is = |pattern: &str, name: &str| Pattern::read(pattern).unwrap().is(name);
        assert!(is("edge-17.example", "edge-17.example"));
        assert!(is("*.edges.example", "edge-17.edges.example"));
        assert!(is("spiffe://example/edge/*", "spiffe://example/edge/17"));
        for (pattern, name) in [
            ("edge-17.example", "edge-18.example"),
            ("*.edges.example", ".edges.example"),
            ("*.edges.example", "a.b.edges.example"),
            ("*.edges.example", "edges.example"),
            ("edge-*-1", "edge-1"),
            ("spiffe://example/edge/*", "spiffe://example/edge/17/18"),
            ("*", "a b"),
        ] {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
        assert!(Pattern::read("").is_err() && Pattern::read("*.*.example").is_err());
    }
}
