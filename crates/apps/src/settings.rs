//! Settings of applications, as scenario files give them: a name and a value, checked against the
//! table of the application.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use trimtab_units::{Bytes, Duration};

use crate::{APPLICATIONS, AppInfo, VodConfigError, WorkloadError};

/// A setting that an application takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Its name in scenario files.
    pub name: &'static str,
    /// What a value looks like.
    pub form: Form,
    /// Its default, with the unit.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// What the value of a setting looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// The path of a file.
    File,
    /// A time in text, above zero, with its unit.
    Time,
    /// A number from the first to the second.
    Number(f64, f64),
    /// Two sizes in text with their units: the least, at least 1 B, and the most.
    Sizes,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

/// The settings that an application was given. Those that it was not given have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<String, Value>);

/// Why an application cannot be made.
#[derive(Debug, Error)]
pub enum AppError {
    /// No application has this setting.
    #[error("`{name}` is no setting of {app}: use {}", .known.join(", "))]
    Unknown {
        /// The setting.
        name: String,
        /// The application.
        app: &'static str,
        /// The settings that it takes, and those of every application.
        known: Vec<&'static str>,
    },
    /// Only other applications have this setting.
    #[error("`{name}` is a setting of {}, not of {app}", .others.join(" and "))]
    Foreign {
        /// The setting.
        name: String,
        /// The applications that take it.
        others: Vec<&'static str>,
        /// The application.
        app: &'static str,
    },
    /// The value does not fit the setting.
    #[error("`{name}` of {app} is {given}: it takes {wanted}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The application.
        app: &'static str,
        /// What was given.
        given: String,
        /// What it takes.
        wanted: String,
    },
    /// Two settings exclude each other.
    #[error("{app} takes `{first}` or `{second}`, not both")]
    Both {
        /// The application.
        app: &'static str,
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The workload file cannot be read.
    #[error("{}: the workload cannot be read: {cause}", path.display())]
    WorkloadFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The workload file is wrong.
    #[error("{}: {problem}", path.display())]
    Workload {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        problem: WorkloadError,
    },
    /// A setting of the video player is wrong.
    #[error("video: {0}")]
    Video(#[from] VodConfigError),
}

impl Form {
    /// Whether the value has this form.
    fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Choice(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Self::Flag, Value::Flag(_)) => true,
            (Self::File, Value::Text(path)) => !path.is_empty(),
            (Self::Time, Value::Text(text)) => {
                text.parse::<Duration>().is_ok_and(|time| !time.is_zero())
            }
            (Self::Number(least, most), Value::Number(value)) => (least..=most).contains(value),
            (Self::Sizes, Value::List(texts)) => {
                sizes(texts).is_some_and(|(least, most)| (Bytes::new(1)..=most).contains(&least))
            }
            _ => false,
        }
    }

    /// What a value looks like, for messages and help.
    pub fn wanted(self) -> String {
        match self {
            Self::Choice(words) => words.join(" or "),
            Self::Flag => "true or false".to_owned(),
            Self::File => "the path of a file".to_owned(),
            Self::Time => "a time above zero with its unit, e.g. \"4s\"".to_owned(),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Sizes => "[\"LEAST\", \"MOST\"], the least above nothing".to_owned(),
        }
    }
}

fn sizes(texts: &[String]) -> Option<(Bytes, Bytes)> {
    let [least, most] = texts else { return None };
    Some((least.parse().ok()?, most.parse().ok()?))
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(texts) => write!(f, "{texts:?}"),
        }
    }
}

impl Settings {
    /// Sets one, whether or not the application takes it: [`check`](Self::check) finds out.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths of files among them.
    pub fn files_mut(&mut self, app: &AppInfo) -> impl Iterator<Item = &mut String> {
        let is_file = |name: &str| {
            app.settings.iter().any(|setting| setting.name == name && setting.form == Form::File)
        };
        self.0.iter_mut().filter_map(move |(name, value)| match value {
            Value::Text(path) if is_file(name) => Some(path),
            _ => None,
        })
    }

    /// Whether the application takes them.
    ///
    /// # Errors
    /// The first that it does not take.
    pub fn check(&self, app: &'static AppInfo) -> Result<(), AppError> {
        for (name, value) in &self.0 {
            let Some(setting) = app.settings.iter().find(|s| s.name == name) else {
                return Err(unknown(name, app));
            };
            if !setting.form.takes(value) {
                return Err(AppError::Value {
                    name: setting.name,
                    app: app.name,
                    given: value.to_string(),
                    wanted: setting.form.wanted(),
                });
            }
        }
        Ok(())
    }

    /// The chosen word, where it was set.
    pub(crate) fn choice(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.0.get(name) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.choice(name).map(Path::new)
    }

    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        self.choice(name)?.parse().ok()
    }

    pub(crate) fn sizes(&self, name: &str) -> Option<(Bytes, Bytes)> {
        match self.0.get(name) {
            Some(Value::List(texts)) => sizes(texts),
            _ => None,
        }
    }
}

/// The settings of an application block that are not the application's own.
const COMMON: [&str; 4] = ["kind", "name", "qoe", "factors"];

fn unknown(name: &str, app: &'static AppInfo) -> AppError {
    let has = |other: &&AppInfo| other.settings.iter().any(|s| s.name == name);
    let others: Vec<_> = APPLICATIONS.iter().filter(has).map(|other| other.name).collect();
    if others.is_empty() {
        let known = app.settings.iter().map(|s| s.name).chain(COMMON).collect();
        AppError::Unknown { name: name.to_owned(), app: app.name, known }
    } else {
        AppError::Foreign { name: name.to_owned(), others, app: app.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppKind;

    fn check(app: &str, name: &str, value: Value) -> Result<(), String> {
        let mut settings = Settings::default();
        settings.set(name, value);
        settings.check(AppKind::named(app).unwrap().info()).map_err(|e| e.to_string())
    }
    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
    fn list(texts: &[&str]) -> Value {
        Value::List(texts.iter().map(|&t| t.to_owned()).collect())
    }

    #[test]
    fn values_have_the_form_of_their_setting() {
        assert_eq!(check("vod", "abr", text("bola")), Ok(()));
        assert_eq!(check("vod", "chunk", text("2s")), Ok(()));
        assert_eq!(check("web", "pauses", Value::Flag(false)), Ok(()));
        assert_eq!(check("download", "size", list(&["1kB", "2MB"])), Ok(()));
        for (app, name, value, wanted) in [
            ("vod", "abr", text("mpc"), "`abr` of vod is \"mpc\": it takes vlc or bola"),
            ("vod", "chunk", text("2"), "it takes a time above zero with its unit"),
            ("vod", "chunk", text("0s"), "it takes a time above zero with its unit"),
            ("vod", "chunk", Value::Number(2.0), "`chunk` of vod is 2: it takes a time"),
            ("web", "pauses", text("no"), "it takes true or false"),
            ("download", "workload", text(""), "it takes the path of a file"),
            ("download", "size", list(&["2MB", "1MB"]), "it takes [\"LEAST\", \"MOST\"]"),
            ("download", "size", list(&["0B", "1MB"]), "the least above nothing"),
            ("download", "size", list(&["1MB"]), "it takes [\"LEAST\", \"MOST\"]"),
        ] {
            let e = check(app, name, value).unwrap_err();
            assert!(e.contains(wanted), "{app} {name}: {e}");
        }
    }

    #[test]
    fn a_setting_of_another_application_names_it() {
        let e = check("vod", "pauses", Value::Flag(true)).unwrap_err();
        assert_eq!(e, "`pauses` is a setting of web, not of vod");
        let e = check("web", "paus", Value::Flag(true)).unwrap_err();
        assert_eq!(e, "`paus` is no setting of web: use pauses, kind, name, qoe, factors");
    }

    #[test]
    fn only_settings_of_files_are_paths() {
        let download = AppKind::named("download").unwrap().info();
        let mut settings = Settings::default();
        settings.set("workload", text("x.wk"));
        settings.set("size", list(&["1kB", "2MB"]));
        settings.files_mut(download).for_each(|path| path.insert_str(0, "/base/"));
        assert_eq!(settings.file("workload"), Some(Path::new("/base/x.wk")));
        assert_eq!(settings.files_mut(AppKind::named("vod").unwrap().info()).count(), 0);
    }
}
