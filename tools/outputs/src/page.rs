//! A page of the documentation and its marked blocks.
//!
//! A comment on a line of its own marks the fenced block that follows it:
//!
//! ````markdown
//! <!-- output: trimtab compare -->     the block is what this shell command prints
//! <!-- session -->                     each line `$ COMMAND` is followed by what it prints
//! <!-- file: log.csv -->               later commands of the page find this file
//! <!-- output, slow: … -->             takes minutes: left alone unless asked for
//! ````
//!
//! All commands of a page run in one folder, in the order of the page.

use std::ops::Range;

use thiserror::Error;

/// What a marked block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What a shell command prints.
    Output(String),
    /// Lines `$ COMMAND`, each with what it prints.
    Session,
    /// A file of this name.
    File(String),
}

/// A marked block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What it is.
    pub(crate) kind: Kind,
    /// Whether its commands take minutes.
    pub(crate) slow: bool,
    /// The lines between the fences, counted from 0.
    pub(crate) lines: Range<usize>,
}

/// A mark that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub(crate) struct PageError {
    /// The line of the mark, counted from 1.
    pub(crate) line: usize,
    /// What is wrong with it.
    pub(crate) what: &'static str,
}

/// The marked blocks of a page, from top to bottom.
///
/// # Errors
/// A mark is of no known kind, or no fenced block follows it.
pub(crate) fn blocks(page: &str) -> Result<Vec<Block>, PageError> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let comment = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
        let Some(mark) = comment else { continue };
        let fail = |what| PageError { line: at + 1, what };
        let (kind, slow) = parse(mark)
            .ok_or_else(|| fail("a mark is `output: COMMAND`, `session` or `file: NAME`"))?;
        let is_fence = |line: &str| line.starts_with("```");
        let open = (at + 1..lines.len()).find(|&i| !lines[i].trim().is_empty());
        let open = open
            .filter(|&i| is_fence(lines[i]))
            .ok_or_else(|| fail("no fenced block follows this mark"))?;
        let close = (open + 1..lines.len())
            .find(|&i| is_fence(lines[i]))
            .ok_or_else(|| fail("the fenced block after this mark has no end"))?;
        blocks.push(Block { kind, slow, lines: open + 1..close });
    }
    Ok(blocks)
}

fn parse(mark: &str) -> Option<(Kind, bool)> {
    let (head, rest) = mark.split_once(": ").unwrap_or((mark, ""));
    let (head, slow) = head.strip_suffix(", slow").map_or((head, false), |head| (head, true));
    let kind = match (head, rest) {
        ("output", command) if !command.is_empty() => Kind::Output(command.to_owned()),
        ("file", name) if !name.is_empty() && !name.contains('/') => Kind::File(name.to_owned()),
        ("session", "") => Kind::Session,
        _ => return None,
    };
    Some((kind, slow))
}

/// What a block should hold, given how its commands are run.
///
/// # Errors
/// Those of `run`.
pub(crate) fn contents<E>(
    block: &Block,
    page: &str,
    mut run: impl FnMut(&str) -> Result<String, E>,
) -> Result<Vec<String>, E> {
    let own = page.lines().skip(block.lines.start).take(block.lines.len());
    match &block.kind {
        Kind::File(_) => Ok(own.map(str::to_owned).collect()),
        Kind::Output(command) => Ok(printed(&run(command)?)),
        Kind::Session => {
            let mut lines = Vec::new();
            for prompt in own.filter(|line| line.starts_with("$ ")) {
                lines.push(prompt.to_owned());
                lines.extend(printed(&run(&prompt[2..])?));
            }
            Ok(lines)
        }
    }
}

/// Lines of an output, without empty ones at its end.
fn printed(output: &str) -> Vec<String> {
    output.trim_end().lines().map(str::to_owned).collect()
}

/// The page with other contents in some of its blocks.
pub(crate) fn replace(page: &str, contents: &[(Range<usize>, Vec<String>)]) -> String {
    let mut lines: Vec<&str> = page.lines().collect();
    for (range, new) in contents.iter().rev() {
        lines.splice(range.clone(), new.iter().map(String::as_str));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\n<!-- file: a.csv -->\n\n```text\n1,2\n```\n\nThen:\n\n\
                        <!-- session -->\n```console\n$ cat a.csv\nstale\n$ true\n```\n\n\
                        <!-- output, slow: sleep 60; date -->\n\n```text\n```\n";

    #[test]
    fn marks_are_found() {
        let found = blocks(PAGE).unwrap();
        let kinds: Vec<_> = found.iter().map(|b| (&b.kind, b.slow, b.lines.clone())).collect();
        assert_eq!(
            kinds,
            [
                (&Kind::File("a.csv".to_owned()), false, 5..6),
                (&Kind::Session, false, 12..15),
                (&Kind::Output("sleep 60; date".to_owned()), true, 20..20),
            ]
        );
    }

    #[test]
    fn what_is_stale_is_replaced_and_nothing_else() {
        let found = blocks(PAGE).unwrap();
        let run = |command: &str| Ok::<_, ()>(format!("[{command}]\n\n"));
        let new: Vec<_> =
            found.iter().map(|b| (b.lines.clone(), contents(b, PAGE, run).unwrap())).collect();
        let page = replace(PAGE, &new);
        let expected = PAGE
            .replace("stale\n", "[cat a.csv]\n")
            .replace("$ true\n", "$ true\n[true]\n")
            .replace("```text\n```\n", "```text\n[sleep 60; date]\n```\n");
        assert_eq!(page, expected);
    }

    #[test]
    fn marks_that_lead_nowhere_are_refused() {
        for (page, line, part) in [
            ("\n<!-- output: date -->\n\ntext\n", 2, "no fenced block"),
            ("<!-- session -->\n```console\n$ date\n", 1, "has no end"),
            ("<!-- outputs: date -->\n```\n```\n", 1, "a mark is"),
            ("<!-- file: ../a -->\n```\n```\n", 1, "a mark is"),
        ] {
            let e = blocks(page).unwrap_err();
            assert!(e.line == line && e.what.contains(part), "{page:?}: {e}");
        }
    }
}
