//! What the users of a scenario do.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
pub use trimtab_apps::AppKind;
use trimtab_apps::{Settings, Value};

use super::ScenarioError;

/// An application with its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppSettings {
    /// What kind.
    pub kind: AppKind,
    /// Its name in the results; its kind when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The settings of its kind.
    #[serde(flatten)]
    pub settings: Settings,
    /// The QoE model: one of the built-in models that suit its kind, or a formula in T, D, L and named
    /// factors. Default: the first model of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qoe: Option<String>,
    /// Values of the formula's named factors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, f64>,
}

impl AppSettings {
    /// An application of this kind without any setting.
    pub fn new(kind: AppKind) -> Self {
        Self {
            kind,
            name: None,
            settings: Settings::default(),
            qoe: None,
            factors: BTreeMap::new(),
        }
    }

    /// An application of this kind with settings as a scenario has them, e.g. `pauses=false`.
    ///
    /// # Errors
    /// A setting does not read, or the application does not take it.
    pub fn with(kind: AppKind, settings: &[String]) -> Result<Self, ScenarioError> {
        let invalid = |e: &str| ScenarioError::Invalid(format!("of --set: {}", e.trim_end()));
        let text = format!("kind = \"{kind}\"\n{}\n", settings.join("\n"));
        let app: Self = toml::from_str(&text).map_err(|e| invalid(e.message()))?;
        app.validate()?;
        Ok(app)
    }

    /// Its name in the results.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }

    /// Replays the requests of a workload file. False where the application draws its own.
    pub fn replay(&mut self, workload: &Path) -> bool {
        let takes = self.kind.takes("workload");
        if takes {
            self.settings.set("workload", Value::Text(workload.to_string_lossy().into_owned()));
        }
        takes
    }

    pub(super) fn rebase(&mut self, base: &Path) {
        for file in self.settings.files_mut(self.kind.info()) {
            *file = super::source::rebased(base, Path::new(file)).to_string_lossy().into_owned();
        }
    }

    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        let invalid = |e: String| Err(ScenarioError::Invalid(e));
        if let Err(e) = self.settings.check(self.kind.info()) {
            return invalid(e.to_string());
        }
        if let Some((name, _)) = self.factors.iter().find(|(_, v)| !v.is_finite()) {
            return invalid(format!("factor {name} is not a finite number"));
        }
        Ok(())
    }
}

/// By hand, so that every error has its place in the file: what is no key of every application is a
/// setting of its kind, which may come before the kind.
impl<'de> Deserialize<'de> for AppSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AppVisitor)
    }
}

struct AppVisitor;

impl<'de> Visitor<'de> for AppVisitor {
    type Value = AppSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an application: its `kind` and its settings")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<AppSettings, M::Error> {
        let (mut kind, mut name, mut qoe) = (None, None, None);
        let mut factors = BTreeMap::new();
        let mut settings = Settings::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => kind = Some(map.next_value::<AppKind>()?),
                "name" => name = Some(map.next_value()?),
                "qoe" => qoe = Some(map.next_value()?),
                "factors" => factors = map.next_value()?,
                setting => settings.set(setting, map.next_value::<Value>()?),
            }
        }
        let kind = kind.ok_or_else(|| de::Error::missing_field("kind"))?;
        settings.check(kind.info()).map_err(de::Error::custom)?;
        Ok(AppSettings { kind, name, settings, qoe, factors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AppSettings, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn settings_belong_to_their_kind() {
        let app = read("abr = \"bola\"\nkind = \"vod\"\n").unwrap();
        assert_eq!(app.label(), "vod");
        assert!(app.validate().is_ok());
        let e = read("kind = \"vod\"\npauses = false\n").unwrap_err();
        assert!(e.contains("`pauses` is a setting of web, not of vod"), "{e}");
        let e = read("kind = \"vod\"\nworkload = \"x.wk\"\n").unwrap_err();
        assert!(e.contains("a setting of download, not of vod"), "{e}");
        let e = read("kind = \"vod\"\nchunck = \"4s\"\n").unwrap_err();
        assert!(e.contains("`chunck` is no setting of vod: use abr, ladder"), "{e}");
        assert!(read("abr = \"bola\"\n").unwrap_err().contains("missing field `kind`"));
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let text = "kind = \"vod\"\nname = \"tv\"\nabr = \"bola\"\nladder = \"fast\"\n\
                    qoe = \"vod\"\n";
        let app = read(text).unwrap();
        assert_eq!(toml::to_string(&app).unwrap(), text);
        let json = serde_json::to_string(&app).unwrap();
        assert_eq!(serde_json::from_str::<AppSettings>(&json).unwrap(), app);
    }
}
