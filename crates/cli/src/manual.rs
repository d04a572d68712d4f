//! Manual pages: of every verb from its arguments, and of the agent's configuration from the page of the book on it.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory;

use crate::Failure;
use crate::args::Cli;

/// The page that describes the configuration, and the sections of it that the manual page has.
const AGENT: &str = include_str!("agent.md");
const SECTIONS: [&str; 3] =
    ["The configuration", "Giving sockets an algorithm", "The engine of a fleet"];

/// Writes the manual pages into a folder.
pub(crate) fn write(folder: &Path) -> Result<(), Failure> {
    let fail = |e: std::io::Error| {
        Failure::input(format!("cannot write manual pages to {}: {e}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(fail)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(fail)?;
    std::fs::write(folder.join("trimtab-agent.toml.5"), of_the_configuration()).map_err(fail)
}

fn of_the_configuration() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH trimtab\\-agent.toml 5 \"\" \"trimtab {version}\"\n.SH NAME\n\
         trimtab\\-agent.toml \\- configuration of the agent of Trimtab\n.SH SYNOPSIS\n/etc/trimtab/agent.toml\n"
    );
    for section in SECTIONS {
        let _ = writeln!(page, ".SH {}", section.to_uppercase());
        page += &roff(text_of(section));
    }
    page + ".SH SEE ALSO\n.BR trimtab\\-agent (1)\n"
}

/// What stands between a heading of the page and the next one.
fn text_of(section: &str) -> &'static str {
    let heading = format!("# {section}\n");
    let text = AGENT.split_once(&heading).map_or("", |(_, text)| text);
    text.find("\n#").map_or(text, |end| &text[..end])
}

/// Markdown as the page uses it, in the language of manual pages: paragraphs, lists, tables and blocks of code.
fn roff(markdown: &str) -> String {
    let mut page = String::new();
    let (mut is_code, mut begins) = (false, true);
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            is_code = !is_code;
            page += if is_code { ".PP\n.EX\n" } else { ".EE\n" };
        } else if is_code {
            let _ = writeln!(page, "{}", escaped(line));
        } else if line.is_empty() {
            begins = true;
        } else if lines.peek().is_some_and(|next| next.starts_with("|---")) {
            lines.next(); // the head of a table, and the line below it
        } else if let Some(row) = line.strip_prefix('|') {
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            let [key, more @ ..] = &cells[..] else { continue };
            let _ = writeln!(page, ".TP\n{}\n{}", inline(key), inline(&more.join(": ")));
        } else if let Some(item) = line.strip_prefix("* ") {
            begins = false; // of a paragraph: what follows is of the item
            let _ = writeln!(page, ".IP \\(bu 2\n{}", inline(item));
        } else {
            if begins {
                page += ".PP\n";
            }
            begins = false;
            let _ = writeln!(page, "{}", inline(line.trim_start()));
        }
    }
    page
}

/// A line of text: code in bold, links by their words.
fn inline(text: &str) -> String {
    let mut line = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            let _ = write!(line, "\\fB{}\\fR", escaped(part));
            continue;
        }
        let mut rest = part;
        while let Some((before, after)) = rest.split_once("](") {
            line += &escaped(&before.replace('[', ""));
            rest = after.split_once(')').map_or("", |(_, after)| after);
        }
        line += &escaped(rest);
    }
    // What begins with one of these would be a request.
    if line.is_empty() || line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_the_configuration_has_every_key_that_the_book_has() {
        let page = of_the_configuration();
        let keys = text_of("The configuration").lines().filter_map(|line| {
            line.strip_prefix("| `")?.split_once('`').map(|(key, _)| key.to_owned())
        });
        let keys: Vec<String> = keys.collect();
        assert!(keys.len() > 30, "{keys:?}");
        for key in keys {
            assert!(page.contains(&format!(".TP\n\\fB{key}\\fR\n")), "{key}: {page}");
        }
        assert!(page.contains("\n.EX\n[fleet]\n") && !page.contains("]("), "{page}");
    }

    #[test]
    fn markdown_becomes_what_man_reads() {
        let text = "A [link](a.md#b) to `x-y`.\n\n* one\n  and more\n\n| key | value |\n|---|---|\n| `a` | b |\n";
        let page = ".PP\nA link to \\fBx\\-y\\fR.\n.IP \\(bu 2\none\nand more\n.TP\n\\fBa\\fR\nb\n";
        assert_eq!(roff(text), page);
    }
}
