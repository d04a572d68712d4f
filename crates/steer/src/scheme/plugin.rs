//! Algorithms from outside: `plugin:./mine.so`, `python:mine.py:Class`, `onnx:mine.onnx`, each with
//! knobs at its end, as in `plugin:./mine.so:gain=2`. The host loads the file.

use std::path::{Path, PathBuf};

/// What kind of file an algorithm from outside is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKind {
    /// A shared library behind the interface of `trimtab_plugin.h`.
    Library,
    /// A Python class.
    Python,
    /// An ONNX model, with a file that says what it sees and what its output means.
    Onnx,
}

/// An algorithm from outside, as the user named it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSettings {
    /// What kind of file it is.
    pub kind: PluginKind,
    /// The file.
    pub path: PathBuf,
    /// The class to take of the file, where it is named.
    pub class: Option<String>,
    /// Its knobs that are set, checked once the file is loaded.
    pub knobs: Vec<(String, f64)>,
}

/// Why a text names no algorithm from outside.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PluginNameError {
    /// There is no file.
    #[error("it takes a file, e.g. {0}")]
    NoFile(&'static str),
    /// A knob has no number.
    #[error("{0:?} sets no knob: give NAME=VALUE with a number for VALUE")]
    NotANumber(String),
    /// There is a name behind the file that only a Python file can have.
    #[error(
        "{0:?} follows the file: only python:FILE:CLASS takes a name; a knob is set by NAME=VALUE"
    )]
    Name(String),
}

impl PluginKind {
    /// How a scheme of it is written.
    fn example(self) -> &'static str {
        match self {
            Self::Library => "plugin:./mine.so",
            Self::Python => "python:mine.py",
            Self::Onnx => "onnx:mine.onnx",
        }
    }
}

impl PluginSettings {
    /// Reads `FILE[:CLASS][:KNOB=VALUE,…]`.
    pub(super) fn parse(kind: PluginKind, text: &str) -> Result<Self, PluginNameError> {
        let mut parts = text.split(':');
        let path = parts.next().map(str::trim).filter(|path| !path.is_empty());
        let path = path.ok_or(PluginNameError::NoFile(kind.example()))?;
        let mut settings = Self { kind, path: path.into(), class: None, knobs: Vec::new() };
        for part in parts.flat_map(|part| part.split(',')).map(str::trim) {
            match part.split_once('=') {
                Some((knob, value)) => {
                    let number = value.trim().parse();
                    let number =
                        number.map_err(|_| PluginNameError::NotANumber(part.to_owned()))?;
                    settings.knobs.push((knob.trim().to_owned(), number));
                }
                None if kind == PluginKind::Python && settings.class.is_none() => {
                    settings.class = Some(part.to_owned());
                }
                None => return Err(PluginNameError::Name(part.to_owned())),
            }
        }
        Ok(settings)
    }

    /// The file next to it with another ending, e.g. `mine.toml` of `mine.onnx`.
    pub fn sibling(&self, ending: &str) -> PathBuf {
        Path::new(&self.path).with_extension(ending)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, Scheme, SchemeKind};
    use super::*;

    #[test]
    fn files_classes_and_knobs_are_read() {
        for (text, kind, path, class, knobs) in [
            ("plugin:./mine.so", PluginKind::Library, "./mine.so", None, vec![]),
            ("plugin:/a/b.so:gain=2", PluginKind::Library, "/a/b.so", None, vec![("gain", 2.0)]),
            ("python:mine.py", PluginKind::Python, "mine.py", None, vec![]),
            (
                "python:mine.py:Mine:a=1,b=-2.5",
                PluginKind::Python,
                "mine.py",
                Some("Mine"),
                vec![("a", 1.0), ("b", -2.5)],
            ),
            ("onnx:mine.onnx", PluginKind::Onnx, "mine.onnx", None, vec![]),
        ] {
            let scheme: Scheme = text.parse().unwrap();
            let SchemeKind::Plugin(settings) = scheme.kind() else { panic!("{text} is a plug-in") };
            assert_eq!((settings.kind, settings.path.as_path()), (kind, Path::new(path)), "{text}");
            let knobs = knobs.into_iter().map(|(name, value)| (name.to_owned(), value));
            assert_eq!(settings.knobs, knobs.collect::<Vec<_>>(), "{text}");
            assert_eq!(settings.class.as_deref(), class, "{text}");
            assert!(matches!(scheme.kind().demand(), Demand::Plugin));
            assert!(!scheme.is_bound() && !scheme.is_steered() && scheme.label() == text);
        }
    }

    #[test]
    fn mistakes_in_the_name_show_how_to_write_it() {
        for (text, part) in [
            ("plugin", "it takes a file, e.g. plugin:./mine.so"),
            ("onnx: ", "it takes a file, e.g. onnx:mine.onnx"),
            ("plugin:./mine.so:gain=much", "\"gain=much\" sets no knob: give NAME=VALUE"),
            ("plugin:./mine.so:fast", "\"fast\" follows the file"),
            ("python:mine.py:A:B", "\"B\" follows the file"),
            ("resume:plugin:./mine.so", "plugin:./mine.so cannot resume"),
        ] {
            let e = text.parse::<Scheme>().unwrap_err().to_string();
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
