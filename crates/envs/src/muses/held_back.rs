//! The recordings that Muses learnt from, and those that were held back: not the parts of
//! `traces/split.toml`.
//!
//! The models that ship learnt so before there was that split, and their tables are of what they did
//! not learn on. Of its test part they know some. So this rule goes when they are trained anew.

use std::path::Path;

use crate::links::{self, LinksError, NamedLink};

/// Of each kind, sorted by name, each fourth is held back.
const HELD_BACK: usize = 4;

/// The recordings in the folders `kinds` of `root`: those that are held back, or the others.
///
/// # Errors
/// A folder is missing or has no trace, or a file is no trace.
pub(super) fn recorded(
    root: &Path,
    kinds: &[String],
    is_held_back: bool,
) -> Result<Vec<NamedLink>, LinksError> {
    let mut taken = Vec::new();
    for kind in kinds {
        let names = links::names(&root.join(kind))?;
        if names.is_empty() {
            return Err(LinksError::NoTrace(root.join(kind)));
        }
        let of_kind = names.into_iter().enumerate();
        let mine = of_kind.filter(|(i, _)| (i % HELD_BACK == HELD_BACK - 1) == is_held_back);
        taken.extend(mine.map(|(_, name)| (kind, name)));
    }
    links::load(root, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fourth_file_is_held_back() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lte")).unwrap();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let file = folder.path().join("lte").join(format!("{name}.trace"));
            std::fs::write(file, "1\n2\n").unwrap();
        }
        let of = |is_held_back| {
            let links = recorded(folder.path(), &["lte".to_owned()], is_held_back).unwrap();
            links.into_iter().map(|link| link.name).collect::<Vec<_>>()
        };
        assert_eq!(of(true), ["lte/d.trace", "lte/h.trace"]);
        assert_eq!(of(false).len(), 6);
        let missing = recorded(folder.path(), &["5g".to_owned()], false).unwrap_err();
        assert!(missing.to_string().contains("trimtab trace fetch"), "{missing}");
        std::fs::create_dir(folder.path().join("wifi")).unwrap();
        let empty = recorded(folder.path(), &["wifi".to_owned()], true).unwrap_err().to_string();
        assert!(empty.contains("wifi: there is no trace in it"), "{empty}");
    }
}
