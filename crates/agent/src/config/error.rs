//! What is wrong with a configuration, and where.

use std::path::{Path, PathBuf};

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said, and what to do.
        reason: String,
    },
    /// There is none.
    #[error(
        "there is no configuration {}: name one with --config, or begin with packaging/agent.toml \
         of the project, which the Debian package installs as /etc/trimtab/agent.toml",
        .path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It says something wrong.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
}

/// Why a file that a configuration is, or names, cannot be read, and what to do.
pub(super) fn why_unread(error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::PermissionDenied {
        return error.to_string();
    }
    "permission denied. The agent reads it as its user (default: trimtab): let that user's group \
     read it (chgrp trimtab FILE && chmod g+r FILE) and pass its folders"
        .to_owned()
}

/// The text of a file.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// The folder that files of the configuration stand in, unless they say otherwise.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// An error at a byte of the text.
    pub(super) fn error(&self, at: usize, message: &str) -> ConfigError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        ConfigError::Wrong {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: in_words(message.trim_end()).replace('\n', "; "),
        }
    }

    /// Bytes from the start of a string of one line to the `column`th character in it.
    pub(super) fn within_string(&self, start: usize, column: usize) -> usize {
        let rest = &self.text[start..];
        if rest.starts_with("\"\"\"") || rest.starts_with("'''") {
            return 0;
        }
        rest.char_indices().nth(column).map_or(0, |(offset, _)| offset)
    }
}

/// What the reader of the format says of a wrong type, in words of the file.
fn in_words(message: &str) -> String {
    let parts =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "));
    let Some((given, wanted)) = parts else { return message.to_owned() };
    let (given, wanted) = match (given, wanted) {
        ("map", wanted) => ("a table", wanted),
        ("sequence", wanted) => ("a list", wanted),
        (given, "a boolean") => (given, "true or false"),
        (given, "a sequence") => (given, "a list"),
        (given, "a string") => (given, "a text in quotes"),
        parts => parts,
    };
    format!("this is {given}, and {wanted} is wanted")
}
