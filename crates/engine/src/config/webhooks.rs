//! `[[webhook]]`: who is sent events, and which.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::keep::Place;
use crate::webhooks::is_type;

/// The longest name, in bytes.
const NAME_MAX: usize = 32;

/// Who is sent events.
#[derive(Clone)]
pub(crate) struct Webhook {
    /// Its name in the store, the log and the metrics.
    pub(crate) name: String,
    /// Where to; it may be a secret.
    pub(crate) url: String,
    /// The file with the secrets that events are signed with.
    pub(crate) secret_file: PathBuf,
    /// Types of events, or the parts before their dots; none: all.
    pub(crate) events: Vec<String>,
    /// The authorities that vouch for the receiver; none: those of the web.
    pub(crate) authority: Option<PathBuf>,
}

impl std::fmt::Debug for Webhook {
    /// Without its URL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("name", &self.name).finish_non_exhaustive()
    }
}

/// As the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWebhook {
    name: Spanned<String>,
    url: Spanned<String>,
    secret_file: PathBuf,
    #[serde(default)]
    events: Vec<Spanned<String>>,
    authority: Option<PathBuf>,
}

impl std::fmt::Debug for RawWebhook {
    /// Without its URL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawWebhook").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Place<'_> {
    pub(super) fn webhooks(&self, all: Vec<RawWebhook>) -> Result<Vec<Webhook>, ConfigError> {
        let mut read: Vec<Webhook> = Vec::new();
        for raw in all {
            let name = raw.name.get_ref();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fits) {
                let message = "name is 1 to 32 letters, digits, - and _";
                return Err(self.wrong(&raw.name.span(), message));
            }
            if read.iter().any(|other| other.name == *name) {
                let message = format!("another [[webhook]] is named {name:?}: take another name");
                return Err(self.wrong(&raw.name.span(), &message));
            }
            self.check_url(&raw.url, "events", "https://hooks.example/trimtab")?;
            if let Some(stray) = raw.events.iter().find(|event| !is_type(event.get_ref())) {
                let message = format!(
                    "{:?} is no type of event: docs/reference/engine.md lists them, e.g. \
                     \"fallback\", \"rollout\" or \"rollout.rolled_back\"",
                    stray.get_ref()
                );
                return Err(self.wrong(&stray.span(), &message));
            }
            read.push(Webhook {
                name: raw.name.into_inner(),
                url: raw.url.into_inner(),
                secret_file: self.resolve(raw.secret_file),
                events: raw.events.into_iter().map(Spanned::into_inner).collect(),
                authority: raw.authority.map(|file| self.resolve(file)),
            });
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;

    fn parse(lines: &str) -> Result<Config, String> {
        let text = format!("services = \"s\"\n[store]\nfile = \"e\"\n{lines}");
        Config::parse(Path::new("/etc/trimtab/engine.toml"), &text).map_err(|e| e.to_string())
    }

    fn hook(name: &str, url: &str, rest: &str) -> String {
        format!("[[webhook]]\nname = \"{name}\"\nurl = \"{url}\"\nsecret_file = \"w\"\n{rest}\n")
    }

    #[test]
    fn a_webhook_has_a_name_a_receiver_and_a_secret() {
        let events = "events = [\"fallback\", \"rollout.rolled_back\"]";
        let two = hook("chat", "https://hooks.example/a?b=c", "")
            + &hook("pager", "http://127.0.0.1:9000/", events);
        let config = parse(&two).expect("a configuration");
        let [chat, pager] = &config.webhooks[..] else { panic!("two") };
        assert_eq!((chat.name.as_str(), chat.events.len()), ("chat", 0));
        assert_eq!(chat.secret_file, Path::new("/etc/trimtab/w"));
        assert_eq!(pager.events, ["fallback", "rollout.rolled_back"]);
        assert!(!format!("{config:?}").contains("hooks.example"), "a URL may be a secret");
    }

    #[test]
    fn a_webhook_that_cannot_work_is_refused_with_its_line() {
        let good = "https://hooks.example/a";
        for (lines, line, said) in [
            (hook("", good, ""), 5, "1 to 32 letters"),
            (hook("a b", good, ""), 5, "1 to 32 letters"),
            (hook("a", "http://hooks.example/xyzzy", ""), 6, "in the clear"),
            (hook("a", "https://kim:xyzzy@hooks.example/", ""), 6, "a password"),
            (hook("a", "xyzzy", ""), 6, "url is as"),
            (hook("a", "ftp://hooks.example/xyzzy", ""), 6, "url is as"),
            (hook("a", good, "events = [\"fall\"]"), 8, "no type of event"),
            (hook("a", good, "") + &hook("a", good, ""), 10, "take another name"),
        ] {
            let refused = parse(&lines).unwrap_err();
            let place = format!("/etc/trimtab/engine.toml:{line}: ");
            assert!(refused.starts_with(&place) && refused.contains(said), "{lines}: {refused}");
            assert!(!refused.contains("xyzzy"), "{refused}");
        }
    }
}
