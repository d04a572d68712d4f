//! What holds for every tracked file: short enough to hold in the head, nothing left open, nothing of the machine
//! that it was written on.

use crate::Finding;

/// Longest source file, in lines. Another file is hiding inside a longer one.
pub const LINES_MAX: usize = 800;

/// Largest file in the repository, in bytes. What is larger is generated or fetched.
pub const BYTES_MAX: u64 = 1 << 20;

/// A word or a piece of a line that no tracked file may hold.
struct Ban {
    piece: &'static str,
    /// Only where no letter, digit or underscore stands on either side.
    whole_word: bool,
    what: &'static str,
}

const OPEN: &str = "an open end: finish it, or file an issue";
const HOST: &str = "names a package registry's host: leave that to the package manager's settings";
const PATH: &str = "an absolute path of one machine: make it relative";

/// Spelled in two halves, or this file would find itself.
const BANS: &[Ban] = &[
    Ban { piece: concat!("TO", "DO"), whole_word: true, what: OPEN },
    Ban { piece: concat!("FIX", "ME"), whole_word: true, what: OPEN },
    Ban { piece: concat!("XX", "X"), whole_word: true, what: OPEN },
    Ban { piece: concat!("pypi", ".org"), whole_word: false, what: HOST },
    Ban { piece: concat!("python", "hosted.org"), whole_word: false, what: HOST },
    Ban { piece: concat!("registry.npm", "js.org"), whole_word: false, what: HOST },
    Ban { piece: concat!("proxy.", "golang.org"), whole_word: false, what: HOST },
    Ban { piece: concat!("repo", ".maven."), whole_word: false, what: HOST },
    Ban { piece: concat!("repo1", ".maven."), whole_word: false, what: HOST },
    Ban { piece: concat!("deb.", "debian.org"), whole_word: false, what: HOST },
    Ban { piece: concat!("static.", "crates.io"), whole_word: false, what: HOST },
    Ban { piece: concat!("index.", "crates.io"), whole_word: false, what: HOST },
    Ban { piece: concat!("//", "crates.io"), whole_word: false, what: HOST },
    Ban { piece: concat!("static.rust", "-lang.org"), whole_word: false, what: HOST },
    Ban { piece: concat!("/ho", "me/"), whole_word: false, what: PATH },
    Ban { piece: concat!("/ro", "ot/"), whole_word: false, what: PATH },
    Ban { piece: concat!("/Us", "ers/"), whole_word: false, what: PATH },
    Ban { piece: concat!("/wo", "rk/"), whole_word: false, what: PATH },
    Ban { piece: concat!("/fa", "rm/"), whole_word: false, what: PATH },
];

fn holds(line: &str, ban: &Ban) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(ban.piece).any(|(at, piece)| {
        !ban.whole_word
            || !(line[..at].ends_with(part_of_word)
                || line[at + piece.len()..].starts_with(part_of_word))
    })
}

/// Whether the line limit applies: code that people write.
fn is_source(path: &str) -> bool {
    path == "dev"
        || path.starts_with(".ci/")
        || [".rs", ".c", ".h", ".py", ".ts", ".js", ".sh"].iter().any(|end| path.ends_with(end))
}

/// Checks one text file; `path` is from the repository's root.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if is_source(path) && lines > LINES_MAX {
        findings.push(Finding::at(
            path,
            format!("{lines} lines, more than {LINES_MAX}: split it by idea"),
        ));
    }
    for (index, line) in text.lines().enumerate() {
        for ban in BANS.iter().filter(|ban| holds(line, ban)) {
            findings.push(Finding::at_line(path, index, format!("`{}`: {}", ban.piece, ban.what)));
        }
    }
    findings
}

/// Checks the manifest of a workspace crate: it must take part in the workspace's lints. One that
/// is a workspace of its own has none to take part in.
pub fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let manifest: toml::Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::at(path, error.to_string())],
    };
    let inherits = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool);
    if inherits == Some(true) || manifest.contains_key("workspace") {
        Vec::new()
    } else {
        vec![Finding::at(path, "lacks `[lints] workspace = true`")]
    }
}
