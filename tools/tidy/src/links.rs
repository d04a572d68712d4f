//! Every link of the documentation leads somewhere. Links to the web are left alone: a check that needs the network
//! fails for reasons that are not ours.

use crate::Finding;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// The folder of the book, and its table of contents, from the repository's root.
pub const BOOK: &str = "docs/";
/// See [`BOOK`].
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// What one Markdown page offers and asks for.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    /// Target and the index of its line.
    links: Vec<(String, usize)>,
}

/// The anchor of a heading, by the rule that mdBook and GitHub share: lower case, spaces to hyphens, other
/// punctuation dropped.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.anchors.extend(heading.take().map(|heading| anchor(&heading)));
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = text[..range.start].matches('\n').count();
                page.links.push((dest_url.into_string(), line));
            }
            _ => {}
        }
    }
    page
}

/// The path that `target` names when it stands in the file `from`; `None` when it leaves the repository.
pub(crate) fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_elsewhere(target: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

/// Checks all Markdown pages together. `pages` maps a page's path to its text; `files` holds every path that a link
/// may name, pages included.
pub fn check(pages: &BTreeMap<String, String>, files: &BTreeSet<String>) -> Vec<Finding> {
    let parsed: BTreeMap<&str, Page> =
        pages.iter().map(|(path, text)| (path.as_str(), read(text))).collect();
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|file| file.rsplit_once('/')).map(|(folder, _)| folder).collect();
    let mut findings = Vec::new();
    let mut listed = BTreeSet::from([SUMMARY.to_owned()]);

    for (&path, page) in &parsed {
        for (link, line) in page.links.iter().filter(|(link, _)| !is_elsewhere(link)) {
            let mut complain = |what: String| findings.push(Finding::at_line(path, *line, what));
            let (target, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if target.is_empty() { Some(path.to_owned()) } else { resolve(path, target) };
            let Some(target) = target else {
                complain(format!("the link `{link}` leaves the repository"));
                continue;
            };
            if path.starts_with(BOOK) && !target.starts_with(BOOK) {
                // mdBook publishes this folder alone.
                complain(format!("the link `{link}` leaves the book; name the file in code style"));
            } else if !files.contains(&target) && !folders.contains(target.as_str()) {
                complain(format!("the link `{link}` leads nowhere: there is no {target}"));
            } else if let Some(there) = parsed.get(target.as_str())
                && !fragment.is_empty()
                && !there.anchors.contains(fragment)
            {
                complain(format!("{target} has no heading `#{fragment}`"));
            }
            if path == SUMMARY {
                listed.insert(target);
            }
        }
    }
    for path in parsed.keys().filter(|path| path.starts_with(BOOK) && !listed.contains(**path)) {
        findings.push(Finding::at(path, format!("not in {SUMMARY}, so not in the book")));
    }
    findings
}
