//! What a crate compiles lies in its folder, so that its published package compiles alone. What stands
//! elsewhere is reached by a symbolic link in the folder, which `cargo package` follows.

use crate::Finding;
use crate::links::resolve;

/// What makes the compiler read another file. `include!` alone ends none of the other names.
const MACROS: [&str; 3] = ["include!(", "include_str!(", "include_bytes!("];

/// The folder of the crate whose package compiles this source. It compiles no tests, examples or
/// benchmarks, so those may read the whole repository.
fn folder(path: &str) -> Option<&str> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    let compiled = inside.starts_with("src/") || inside.starts_with("build");
    (compiled && path.ends_with(".rs")).then(|| &path[.."crates/".len() + name.len()])
}

/// The path from the repository's root that a macro of the source `path` names, by its arguments
/// without white space. The outer `None` is a path that only the build knows, the inner one a path
/// outside the repository.
fn named(path: &str, folder: &str, arguments: &str) -> Option<Option<String>> {
    let manifest = "concat!(env!(\"CARGO_MANIFEST_DIR\"),\"";
    let (from, rest) = match arguments.strip_prefix(manifest) {
        Some(rest) => (format!("{folder}/Cargo.toml"), rest),
        None => (path.to_owned(), arguments.strip_prefix('"')?),
    };
    let (target, _) = rest.split_once('"')?;
    Some(resolve(&from, target))
}

/// Checks one source; `path` is from the repository's root.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some(folder) = folder(path) else { return Vec::new() };
    let mut findings = Vec::new();
    for (at, name) in MACROS.iter().flat_map(|name| text.match_indices(name)) {
        let rest = text[at + name.len()..].chars();
        let arguments: String = rest.filter(|c| !c.is_whitespace()).take(200).collect();
        let Some(target) = named(path, folder, &arguments) else { continue };
        let within = |target: &String| target.starts_with(&format!("{folder}/"));
        if !target.as_ref().is_some_and(within) {
            let line = text[..at].matches('\n').count();
            findings.push(Finding::at_line(
                path,
                line,
                format!(
                    "includes a file outside {folder}, so its package would not compile: \
                     move the file into the crate, or make a symbolic link to it there"
                ),
            ));
        }
    }
    findings
}
