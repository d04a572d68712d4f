//! The folder, and which file of it a path means.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use tokio::fs::{self, File};

use super::Failure;

/// A folder that is served.
pub(crate) struct Site {
    /// Without symbolic links.
    root: PathBuf,
}

/// A file that is served.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) length: u64,
}

impl Site {
    /// A folder that exists.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let root = folder
            .canonicalize()
            .map_err(|e| format!("cannot open the folder {}: {e}", folder.display()))?;
        if !root.is_dir() {
            return Err(format!("{} is no folder; give one with --dir", folder.display()).into());
        }
        Ok(Self { root })
    }

    /// The file that a URL's path means; that of a folder is its `index.html`. `None` where there
    /// is none, and for whatever lies outside, also by symbolic links.
    pub(crate) async fn find(&self, path: &str) -> Option<Found> {
        let path = fs::canonicalize(self.root.join(relative(path)?)).await.ok()?;
        // A pipe would keep its reader waiting.
        let metadata = fs::metadata(&path).await.ok()?;
        if !path.starts_with(&self.root) || !metadata.is_file() {
            return None;
        }
        let file = File::open(&path).await.ok()?;
        let length = file.metadata().await.ok()?.len();
        Some(Found { path, file, length })
    }
}

/// A URL's path (RFC 3986 §3.3) within a folder. It never leads upwards.
fn relative(path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    let mut file = PathBuf::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => return None,
            name if name.contains('\0') => return None,
            name => file.push(name),
        }
    }
    if decoded.ends_with('/') {
        file.push("index.html");
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_within_its_folder() {
        for (path, file) in [
            ("/", Some("index.html")),
            ("/a/", Some("a/index.html")),
            ("/a%20b.txt", Some("a b.txt")),
            ("//etc/passwd", Some("etc/passwd")),
            ("/%2fetc%2fpasswd", Some("etc/passwd")),
            ("/./a//b", Some("a/b")),
            ("/a/../b", None),
            ("/..", None),
            ("/%2e%2e/b", None),
            ("/a/..%2f..%2fb", None),
            ("/a%00b", None),
            ("/%ff", None),
        ] {
            assert_eq!(relative(path), file.map(PathBuf::from), "{path}");
        }
    }
}
