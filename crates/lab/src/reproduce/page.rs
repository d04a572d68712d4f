//! The catalogue as a list and as a page of the documentation.

use std::fmt::Write;

use super::{Entry, FleetRecipe, Recipe, SampleRecipe};

/// One line per entry, for a terminal.
pub fn list(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let runs = if entry.runs() { "runs" } else { "-" };
        format!("{:width$}  {runs:4}  {}\n", entry.name, entry.shows)
    };
    entries.iter().map(line).collect()
}

/// `docs/reference/papers.md`.
pub fn page(entries: &[Entry]) -> String {
    let count = |has: fn(&Entry) -> bool| entries.iter().filter(|entry| has(entry)).count();
    let mut text = format!(
        "# Figures of the papers by name\n\n\
         `trimtab reproduce --page` makes this page from `scenarios/papers/*.toml`. `trimtab reproduce\n\
         NAME` runs a figure, draws it, and prints the paper's number, ours and a verdict. Without a\n\
         name it runs all. Results lie in the folder `--out`; a figure that has its result there is not\n\
         run again. `--quick` keeps one seed, six points and a minute: it shows that a figure runs, and\n\
         says little of the paper.\n\n\
         Ours *agrees* from the band's lower end on. It is *smaller* below that, in the paper's\n\
         direction. It *contradicts* beyond, or where the interval holds no change and rules out\n\
         the band. Where the interval holds both, it is *not told apart*. Percentages are changes\n\
         of means, better being positive, with 95% intervals.\n\n\
         Of {} entries {} run so. {} are made by another command. Of the other {} a note says why\n\
         they have none, and what stands in for them.\n",
        entries.len(),
        count(Entry::runs),
        count(|entry| !entry.command.is_empty()),
        count(|entry| !entry.runs() && entry.command.is_empty()),
    );
    let mut paper = "";
    for entry in entries {
        let own = entry.name.split('/').next().unwrap_or_default();
        if own != paper {
            let _ = write!(
                text,
                "\n## {own}\n\n| name | shows | the paper | ours |\n|---|---|---|---|\n"
            );
            paper = own;
        }
        let _ = writeln!(
            text,
            "| `{}` ({}) | {} | {} | {} |",
            entry.name,
            entry.section,
            entry.shows,
            entry.paper,
            ours(entry),
        );
    }
    text
}

/// How ours is made, and what is known of it.
fn ours(entry: &Entry) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(entry.compare.as_ref().map(compared));
    parts.extend(entry.fleet.as_ref().map(simulated));
    parts.extend(entry.samples.as_ref().map(sampled));
    if !entry.command.is_empty() {
        parts.push(format!("`{}`.", entry.command));
    }
    parts.extend(Some(entry.note.clone()).filter(|note| !note.is_empty()));
    parts.join(" ")
}

/// What is compared, in a sentence.
fn compared(recipe: &Recipe) -> String {
    let claims = recipe.claims.iter();
    let claims =
        claims.map(|claim| format!("{} {}", claim.subject(), claim.band.words(claim.is_change())));
    let areas = recipe.areas.iter();
    let areas = areas.map(|claim| format!("{} {}", claim.subject(), claim.band.words(true)));
    format!("`{}`: {}.", recipe.scenario, claims.chain(areas).collect::<Vec<_>>().join("; "))
}

fn simulated(recipe: &FleetRecipe) -> String {
    let claims = recipe.claims.iter();
    let claims = claims.map(|claim| format!("{} {}", claim.subject(), claim.band.words(true)));
    format!("`{}`: {}.", recipe.scenario, claims.collect::<Vec<_>>().join("; "))
}

fn sampled(recipe: &SampleRecipe) -> String {
    let what = match &recipe.app {
        Some(app) => format!("Requests of `{}`", app.label()),
        None => {
            let sets: Vec<&str> = recipe.traces.keys().map(String::as_str).collect();
            format!("Segments of recordings ({})", sets.join(", "))
        }
    };
    let claims = recipe.claims.iter();
    let claims = claims.map(|claim| format!("{} {}", claim.subject(), claim.band.words(true)));
    format!("{what}: {}.", claims.collect::<Vec<_>>().join("; "))
}
