//! `[store]` and `[broker]`: which of the two ways an engine keeps what it must not lose.

use std::ops::Range;
use std::path::{Path, PathBuf};

use postgres::config::Host;
use toml::Spanned;
use ureq::http::Uri;

use trimtab_units::Duration;

use super::{
    Addresses, BrokerSettings, ConfigError, Keep, PostgresSettings, RawBroker, RawStore, SKEW_LEAST,
};

/// The most copies that JetStream keeps.
const REPLICAS_MAX: usize = 5;

/// The file that is read.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) plaintext: bool,
}

impl Place<'_> {
    pub(super) fn wrong(&self, at: &Range<usize>, message: &str) -> ConfigError {
        ConfigError::at(self.path, self.text, at.start, message)
    }

    pub(super) fn resolve(&self, file: PathBuf) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(file)
    }

    /// How far an edge's clock may be off: by the grace, where nothing is said.
    pub(super) fn skew(
        &self,
        skew: Option<Spanned<String>>,
        grace: Duration,
    ) -> Result<Duration, ConfigError> {
        let most = grace.max(SKEW_LEAST);
        let Some(given) = skew else { return Ok(most) };
        let skew: Duration =
            given.get_ref().parse().map_err(|e: trimtab_units::ParseUnitError| {
                self.wrong(&given.span(), &format!("skew: {e}"))
            })?;
        if skew > most {
            let message = format!(
                "skew = {skew} is more than the grace, {grace}: an edge whose clock is so far \
                 behind would always be late. Make skew {most} or less, or grace longer"
            );
            return Err(self.wrong(&given.span(), &message));
        }
        Ok(skew)
    }

    pub(super) fn keep(
        &self,
        store: Spanned<RawStore>,
        broker: Option<Spanned<RawBroker>>,
    ) -> Result<Keep, ConfigError> {
        let at = store.span();
        let store = store.into_inner();
        match (store.file, store.postgres, broker) {
            (Some(file), None, None) => {
                let others = [
                    store.password_file.is_some(),
                    store.authority.is_some(),
                    store.listen.is_some(),
                ];
                if others.contains(&true) {
                    let message =
                        "password_file, authority and listen go with postgres, not with file";
                    return Err(self.wrong(&at, message));
                }
                Ok(Keep::File(self.resolve(file)))
            }
            (None, Some(url), broker) => Ok(Keep::Shared {
                postgres: Box::new(PostgresSettings {
                    config: self.postgres(&url, "postgres", store.authority.as_deref())?,
                    listen: store
                        .listen
                        .map(|url| self.postgres(&url, "listen", store.authority.as_deref()))
                        .transpose()?,
                    password_file: store.password_file.map(|file| self.resolve(file)),
                    authority: store.authority.map(|file| self.resolve(file)),
                }),
                broker: broker.map(|broker| self.broker(broker.into_inner())).transpose()?,
            }),
            (Some(_), Some(_), _) => {
                Err(self.wrong(&at, "file and postgres are two ways to keep the same: give one"))
            }
            (None, None, _) => Err(self.wrong(
                &at,
                "where to keep it? file = \"engine.db\" for one engine, or postgres = \"host=… \
                 dbname=…\" for several",
            )),
            (Some(_), None, Some(broker)) => Err(self.wrong(
                &broker.span(),
                "a [broker] goes with [store] postgres: an engine with a file needs none",
            )),
        }
    }

    /// A way to PostgreSQL, and the key that has it.
    fn postgres(
        &self,
        url: &Spanned<String>,
        key: &str,
        authority: Option<&Path>,
    ) -> Result<postgres::Config, ConfigError> {
        let config: postgres::Config = url.get_ref().parse().map_err(|e: postgres::Error| {
            let cause =
                std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
            let message = format!(
                "{cause}: {key} is as \"host=/run/postgresql user=trimtab dbname=trimtab\" or \
                 \"postgresql://trimtab@db.example/trimtab\""
            );
            self.wrong(&url.span(), &message)
        })?;
        if config.get_hosts().is_empty() {
            let message = format!("{key} names no host: a folder with its socket, or a machine");
            return Err(self.wrong(&url.span(), &message));
        }
        let local = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => is_local(name),
            Host::Unix(_) => true,
        });
        self.check_encrypted(&url.span(), "PostgreSQL", local, authority)?;
        Ok(config)
    }

    fn broker(&self, broker: RawBroker) -> Result<BrokerSettings, ConfigError> {
        let at = broker.nats.span();
        let nats = match broker.nats.into_inner() {
            Addresses::One(one) => vec![one],
            Addresses::Several(several) => several,
        };
        if nats.is_empty() {
            return Err(self.wrong(&at, "nats names no server, e.g. \"nats://127.0.0.1:4222\""));
        }
        let mut local = true;
        for url in &nats {
            let address: async_nats::ServerAddr = url.parse().map_err(|e| {
                let message = format!(
                    "{url:?} is no address of NATS ({e}): one is as \"nats://127.0.0.1:4222\""
                );
                self.wrong(&at, &message)
            })?;
            local &= is_local(address.host());
        }
        self.check_encrypted(&at, "the broker", local, broker.authority.as_deref())?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let stream = broker.stream.get_ref();
        if stream.is_empty() || stream.len() > 32 || !stream.chars().all(fits) {
            let message = "stream is a name of 1 to 32 letters, digits, - and _";
            return Err(self.wrong(&broker.stream.span(), message));
        }
        if !(1..=REPLICAS_MAX).contains(broker.replicas.get_ref()) {
            let message = format!(
                "the broker keeps 1 to {REPLICAS_MAX} copies: 3 survive the loss of a server"
            );
            return Err(self.wrong(&broker.replicas.span(), &message));
        }
        Ok(BrokerSettings {
            nats,
            stream: broker.stream.into_inner(),
            replicas: broker.replicas.into_inner(),
            token_file: broker.token_file.map(|file| self.resolve(file)),
            authority: broker.authority.map(|file| self.resolve(file)),
        })
    }

    /// Checks where something is sent by HTTP. Messages do not repeat the URL: who has it may be able
    /// to send to it.
    pub(super) fn check_url(
        &self,
        url: &Spanned<String>,
        what: &str,
        example: &str,
    ) -> Result<(), ConfigError> {
        let wrong = |message: &str| Err(self.wrong(&url.span(), message));
        let parsed = url.get_ref().parse::<Uri>().ok();
        let parts = parsed.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
        match parts {
            Some((_, authority)) if authority.as_str().contains('@') => {
                wrong("url has a password: leave it out, a file has what proves who sends")
            }
            Some(("https", _)) => Ok(()),
            Some(("http", authority)) if self.plaintext || is_local(authority.host()) => Ok(()),
            Some(("http", _)) => wrong(&format!(
                "{what} would travel in the clear: give an https URL, or say plaintext = true \
                 where the network is yours"
            )),
            _ => wrong(&format!("url is as {example:?}")),
        }
    }

    fn check_encrypted(
        &self,
        at: &Range<usize>,
        what: &str,
        local: bool,
        authority: Option<&Path>,
    ) -> Result<(), ConfigError> {
        if local || authority.is_some() || self.plaintext {
            return Ok(());
        }
        let message = format!(
            "{what} is on another machine, and all would travel in the clear: give authority = a \
             file with the certificate that vouches for it, or say plaintext = true where the \
             network is yours"
        );
        Err(self.wrong(at, &message))
    }
}

/// Whether a name is this machine's own.
fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
