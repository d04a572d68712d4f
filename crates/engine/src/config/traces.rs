//! `[traces]`: which collector takes the engine's traces, and how many.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::keep::Place;

/// Where traces go.
#[derive(Clone, Debug)]
pub(crate) struct TraceSettings {
    /// The collector's address for traces: OTLP by HTTP.
    pub(crate) url: String,
    /// The authorities that vouch for it; none: those of the web.
    pub(crate) authority: Option<PathBuf>,
    /// A file with the token that it wants.
    pub(crate) token_file: Option<PathBuf>,
    /// Of the traces that begin here, 0 to 1.
    pub(crate) share: f64,
}

/// As the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTraces {
    url: Spanned<String>,
    authority: Option<PathBuf>,
    token_file: Option<PathBuf>,
    #[serde(default = "all")]
    share: Spanned<f64>,
}

fn all() -> Spanned<f64> {
    Spanned::new(0..0, 1.0)
}

impl Place<'_> {
    pub(super) fn traces(&self, raw: RawTraces) -> Result<TraceSettings, ConfigError> {
        self.check_url(&raw.url, "traces", "https://otlp.example/v1/traces")?;
        if !(0.0..=1.0).contains(raw.share.get_ref()) {
            let message = "share is of all traces, from 0 to 1, e.g. 0.1";
            return Err(self.wrong(&raw.share.span(), message));
        }
        Ok(TraceSettings {
            url: raw.url.into_inner(),
            authority: raw.authority.map(|file| self.resolve(file)),
            token_file: raw.token_file.map(|file| self.resolve(file)),
            share: raw.share.into_inner(),
        })
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

    #[test]
    fn traces_are_off_unless_a_collector_is_named() {
        assert!(parse("").unwrap().traces.is_none());
        let config = parse("[traces]\nurl = \"http://127.0.0.1:4318/v1/traces\"\n").unwrap();
        assert_eq!(config.traces.expect("a collector").share, 1.0);
        let lines =
            "[traces]\nurl = \"https://o.example/v1/traces\"\ntoken_file = \"t\"\nshare = 0.5";
        let traces = parse(lines).unwrap().traces.expect("a collector");
        assert_eq!(traces.token_file.as_deref(), Some(Path::new("/etc/trimtab/t")));
        assert_eq!(traces.share, 0.5);
    }

    #[test]
    fn a_collector_that_cannot_work_is_refused_with_its_line() {
        for (lines, line, said) in [
            ("url = \"http://otlp.example/v1/traces\"", 5, "traces would travel in the clear"),
            ("url = \"https://kim:xyzzy@otlp.example/\"", 5, "a password"),
            ("url = \"otlp.example:4317\"", 5, "url is as"),
            ("url = \"https://o.example/\"\nshare = 1.5", 6, "from 0 to 1"),
            ("url = \"https://o.example/\"\nshare = nan", 6, "from 0 to 1"),
            ("url = \"https://o.example/\"\nheaders = \"a\"", 6, "headers"),
        ] {
            let refused = parse(&format!("[traces]\n{lines}")).unwrap_err();
            let place = format!("/etc/trimtab/engine.toml:{line}: ");
            assert!(refused.starts_with(&place) && refused.contains(said), "{lines}: {refused}");
            assert!(!refused.contains("xyzzy"), "{refused}");
        }
    }
}
