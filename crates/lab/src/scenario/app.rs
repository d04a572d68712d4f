//! What the users of a scenario do.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ScenarioError;

/// A kind of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppKind {
    /// Requests of files, one after the other.
    Download,
    /// Video on demand: chunks, a playback buffer, adaptive bitrate.
    Vod,
    /// Web pages: requests with several responses at once.
    Web,
    /// One endless transfer.
    Bulk,
}

impl AppKind {
    /// All kinds, as on the command line.
    pub const ALL: [Self; 4] = [Self::Download, Self::Vod, Self::Web, Self::Bulk];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Vod => "vod",
            Self::Web => "web",
            Self::Bulk => "bulk",
        }
    }
}

impl fmt::Display for AppKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a video player chooses bitrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Abr {
    /// By measured throughput and buffer, like VLC (the rule that the Mortise paper names).
    Vlc,
    /// By buffer only (BOLA, INFOCOM 2016).
    Bola,
}

/// The bitrates that a video comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ladder {
    /// 0.4 to 6 Mbit/s in five steps.
    Standard,
    /// The same, and three more up to 48 Mbit/s, for links that carry 6 Mbit/s easily.
    Fast,
}

/// An application with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppSettings {
    /// What kind.
    pub kind: AppKind,
    /// Its name in the results; its kind when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A workload file to replay, lines of `interval_ms size_bytes`; download only. Without one,
    /// requests are drawn from the published distribution of Mortise's appendix B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<PathBuf>,
    /// How bitrates are chosen; vod only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abr: Option<Abr>,
    /// The bitrates that there are, standard unless told; vod only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
    /// Whether the user pauses between clicks, up to 20 s, as people do; true unless told, false for one long burst, as in
    /// the emulations of Floo and Mortise; web only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<bool>,
    /// The QoE model: `download`, `vod`, `web`, or a formula in T, D, L and named factors. Without
    /// one, the model of the application's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qoe: Option<String>,
    /// Values of the formula's named factors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, f64>,
}

impl AppSettings {
    /// An application of this kind without any setting.
    pub const fn new(kind: AppKind) -> Self {
        Self {
            kind,
            name: None,
            workload: None,
            abr: None,
            ladder: None,
            pauses: None,
            qoe: None,
            factors: BTreeMap::new(),
        }
    }

    /// Its name in the results.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }

    pub(super) fn rebase(&mut self, base: &Path) {
        if let Some(file) = &mut self.workload {
            *file = super::source::rebased(base, file);
        }
    }

    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        let fail = |key: &str, of: AppKind| {
            let kind = self.kind;
            Err(ScenarioError::Invalid(format!("`{key}` is a setting of {of}, not of {kind}")))
        };
        if self.workload.is_some() && self.kind != AppKind::Download {
            return fail("workload", AppKind::Download);
        }
        if self.abr.is_some() && self.kind != AppKind::Vod {
            return fail("abr", AppKind::Vod);
        }
        if self.ladder.is_some() && self.kind != AppKind::Vod {
            return fail("ladder", AppKind::Vod);
        }
        if self.pauses.is_some() && self.kind != AppKind::Web {
            return fail("pauses", AppKind::Web);
        }
        if let Some((name, _)) = self.factors.iter().find(|(_, v)| !v.is_finite()) {
            return Err(ScenarioError::Invalid(format!("factor {name} is not a finite number")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_belong_to_their_kind() {
        let mut app = AppSettings::new(AppKind::Vod);
        assert_eq!(app.label(), "vod");
        app.abr = Some(Abr::Bola);
        assert!(app.validate().is_ok());
        app.pauses = Some(false);
        assert!(app.validate().unwrap_err().to_string().contains("a setting of web, not of vod"));
        app.pauses = None;
        app.workload = Some("x.wk".into());
        assert!(
            app.validate().unwrap_err().to_string().contains("a setting of download, not of vod")
        );
    }
}
