//! Rules whose connections are configured by the engine of a fleet, and where that engine is.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use trimtab_fleet_client::Secret;
use trimtab_fleet_client::edge::{self, Key, Options, ServiceName, Together};

use super::error::{ConfigError, Source, why_unread};
use super::raw::{Raw, RawRule};
use super::value::Prefix;

/// What `steer` says where the engine chooses the knobs.
pub(super) const FLEET: &str = "fleet";
/// The algorithm of such a rule, unless it names another (paper 002 §2.1).
pub(super) const ALGORITHM: &str = "vivace";

/// The engine of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Its URL.
    pub engine: String,
    /// The file with this edge's token, or those with its certificate and key.
    pub secret: Secret,
    /// A file with the certificates that it is trusted by, where those of the web are not.
    pub authority: Option<PathBuf>,
    /// Where the last configurations are kept.
    pub folder: PathBuf,
}

impl Fleet {
    pub(super) fn read(source: &Source<'_>, raw: &Raw) -> Result<Option<Self>, ConfigError> {
        let rule = raw
            .rule
            .iter()
            .filter_map(|rule| rule.steer.as_ref())
            .find(|name| name.get_ref() == FLEET);
        let Some(fleet) = &raw.fleet else {
            return rule.map_or(Ok(None), |name| {
                let what = "the engine of the fleet is not known: add [fleet] with engine = \
                            \"https://…\" and token_file = \"…\"";
                Err(source.error(name.span().start, what))
            });
        };
        let in_folder = |path: &PathBuf| source.folder().join(path);
        let secret = match (&fleet.token_file, &fleet.certificate, &fleet.key) {
            (Some(token), None, None) => Secret::File(in_folder(token)),
            (None, Some(certificate), Some(key)) => {
                Secret::Certificate { certificate: in_folder(certificate), key: in_folder(key) }
            }
            _ => {
                let what = "[fleet] needs either token_file, or certificate and key";
                return Err(source.error(source.text.find("[fleet]").unwrap_or(0), what));
            }
        };
        Ok(Some(Self {
            engine: fleet.engine.clone(),
            secret,
            authority: fleet.authority.as_ref().map(in_folder),
            folder: in_folder(&fleet.folder),
        }))
    }

    /// The same for an edge, which reads the files again when they change; they have to be there.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let wrong = |path: &Path, why: String| {
            format!(
                "cannot read the secret of this edge, {}: {why}; `trimtab engine \
                 token add NAME --role edge --service SERVICE` on the engine's machine makes a \
                 token",
                path.display()
            )
        };
        let files = match &self.secret {
            Secret::Certificate { certificate, key } => vec![certificate, key],
            Secret::File(token) => vec![token],
            Secret::Text(_) => Vec::new(),
        };
        for path in files {
            let text = std::fs::read_to_string(path).map_err(|e| wrong(path, why_unread(&e)))?;
            if text.trim().is_empty() {
                return Err(wrong(path, "it is empty".to_owned()));
            }
        }
        Ok(Options {
            engine: self.engine.clone(),
            token: self.secret.clone(),
            authority: self.authority.clone(),
            folder: self.folder.clone(),
        })
    }
}

/// The groups of a file, which stands in the folder of the configuration unless it says otherwise.
fn together(
    source: &Source<'_>,
    file: Option<&Spanned<PathBuf>>,
    bits: [u8; 2],
) -> Result<Together, ConfigError> {
    let Some(given) = file else { return Ok(Together::default()) };
    let file = source.folder().join(given.get_ref());
    let wrong = |why: String| {
        let what = format!("the groups of prefixes, {}: {why}", file.display());
        source.error(given.span().start, &what)
    };
    let text = std::fs::read_to_string(&file).map_err(|e| wrong(why_unread(&e)))?;
    let together = Together::parse(&text).map_err(|e| wrong(e.to_string()))?;
    together.of_bits(bits).map_err(|e| wrong(e.to_string()))
}

/// Which aggregates the connections of a rule belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customized {
    /// The service.
    pub service: ServiceName,
    /// Bits of the destination that aggregates are distinguished by: of IPv4, and of IPv6.
    pub prefix: [u8; 2],
    /// Prefixes of so many bits that are one aggregate.
    pub together: Arc<Together>,
}

impl Customized {
    /// What a rule says of its service, if anything.
    pub(super) fn read(source: &Source<'_>, raw: &RawRule) -> Result<Option<Self>, ConfigError> {
        let steer = raw.steer.as_ref().filter(|name| name.get_ref() == FLEET);
        let Some(steer) = steer else {
            let service = raw.service.as_ref().map(|given| {
                (
                    given.span(),
                    "a service is configured by the engine of a fleet: add steer = \"fleet\"",
                )
            });
            let prefix = raw.prefix.as_ref().map(|given| {
                let what = "prefix divides a fleet's connections into aggregates: add steer = \"fleet\", or use to";
                (given.span(), what)
            });
            let together = raw.together.as_ref().map(|given| {
                let what = "together has prefixes that are one aggregate of a fleet: add steer = \"fleet\"";
                (given.span(), what)
            });
            let first = service.or(prefix).or(together);
            return first.map_or(Ok(None), |(span, what)| Err(source.error(span.start, what)));
        };
        let Some(service) = &raw.service else {
            let what =
                "the engine needs the service: give service = \"NAME\", by its name in the engine";
            return Err(source.error(steer.span().start, what));
        };
        let name = service.get_ref().parse::<ServiceName>();
        let name = name.map_err(|e| source.error(service.span().start, &e.to_string()))?;
        let prefix = raw.prefix.as_ref().map_or(edge::Prefix::BITS, |given| *given.get_ref());
        if let Some(given) = raw.prefix.as_ref().filter(|_| prefix[0] > 32 || prefix[1] > 128) {
            let what = "prefix = [bits of IPv4, bits of IPv6], at most [32, 128]";
            return Err(source.error(given.span().start, what));
        }
        let together = Arc::new(together(source, raw.together.as_ref(), prefix)?);
        Ok(Some(Self { service: name, prefix, together }))
    }

    /// The aggregate of a destination.
    pub fn key(&self, destination: IpAddr) -> Key {
        let prefix = self.together.of(edge::Prefix::of(destination, self.prefix));
        Key { service: self.service.clone(), prefix }
    }

    /// The destinations that are in an aggregate with this one, as far as one prefix has them.
    pub fn of(&self, destination: IpAddr) -> Prefix {
        let [v4, v6] = self.prefix;
        Prefix::of(destination, if destination.to_canonical().is_ipv4() { v4 } else { v6 })
    }
}
