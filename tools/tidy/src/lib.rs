//! The house style as tests, after TigerBeetle's `tidy.zig`: what a reviewer would otherwise have to remember.
//!
//! Five checks, one module each: [`files`] reads every tracked file, [`includes`] keeps what a crate
//! compiles in its folder, [`links`] follows every link of the documentation, [`dependencies`] holds
//! what we depend on against `deny.toml`, and [`words`] counts the words that are out. Each is a pure
//! function from text to [`Finding`]s, so that `tests/` can show that it finds something, and then run
//! it on the repository.

pub mod dependencies;
pub mod files;
pub mod includes;
pub mod links;
pub mod words;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: a path from the repository's root, with a line number when there is one.
    pub place: String,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl Finding {
    /// A finding in a whole file, or in a dependency.
    pub fn at(place: &str, what: impl Into<String>) -> Self {
        Self { place: place.to_owned(), what: what.into() }
    }

    /// A finding in one line of a file; `index` counts from 0.
    pub fn at_line(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self { place: format!("{path}:{}", index + 1), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The repository's root, from where this crate was built.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
        .to_owned()
}

/// The paths of all files that git tracks or would track, from the root; `None` outside a git
/// checkout. A symbolic link is not one of them: the file that it leads to is.
pub fn tracked_files() -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    // A file deleted but not yet committed is still listed.
    Some(
        names
            .split_terminator('\0')
            .filter(|name| root().join(name).symlink_metadata().is_ok_and(|about| about.is_file()))
            .map(str::to_owned)
            .collect(),
    )
}
