//! The catalogue as a list and as a page of the documentation.

use std::fmt::Write;

use super::{Entry, FleetRecipe, Recipe, Record, SampleRecipe};

/// One line per entry, for a terminal, and how many there are of each kind.
pub fn list(entries: &[Entry], record: &Record) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        format!("{:width$}  {:14}  {}\n", entry.name, record.status(entry).name(), entry.shows)
    };
    entries.iter().map(line).collect::<String>() + &record.counts(entries) + "\n"
}

/// `docs/reference/papers.md`.
pub fn page(entries: &[Entry], record: &Record) -> String {
    let mut text = format!(
        "# Figures of the papers by name\n\n\
         `trimtab reproduce --page` makes this page from `scenarios/papers/*.toml`. `trimtab reproduce\n\
         NAME` runs a figure, draws it, and prints the paper's number, ours and a verdict. Without a\n\
         name it runs all. Results lie in the folder `--out`; a figure that has its result there is not\n\
         run again. `--quick` keeps one seed, six points and half a minute: it shows that a figure\n\
         runs, and says little of the paper.\n\n\
         Ours *agrees* from the band's lower end on. It is *smaller* below that, in the paper's\n\
         direction. It *contradicts* beyond, or where the interval holds no change and rules out\n\
         the band. Where the interval holds both, it is *not told apart*. Percentages are changes\n\
         of means, better being positive, with 95% intervals.\n\n\
         {}.\n\n\
         Of an entry with several claims the worst verdict counts. `trimtab reproduce --record\n\
         scenarios/papers/verdicts.toml` takes verdicts over from the results of whole runs: *not\n\
         recorded* is what has none yet. *By command* is what another command shows. *Reason* is\n\
         what has none, with why, and what stands in for it.\n",
        record.counts(entries),
    );
    let mut paper = "";
    for entry in entries {
        let own = entry.name.split('/').next().unwrap_or_default();
        let has_number = !entry.paper.is_empty();
        if own != paper {
            let (head, rule) =
                if has_number { (" the paper |", "---|") } else { Default::default() };
            let _ = write!(
                text,
                "\n## {own}\n\n| name | shows |{head} verdict | ours |\n|---|---|{rule}---|---|\n"
            );
            paper = own;
        }
        let number = if has_number { format!(" {} |", entry.paper) } else { String::new() };
        let _ = writeln!(
            text,
            "| `{}` ({}) | {} |{number} {} | {} |",
            entry.name,
            entry.section,
            entry.shows,
            record.status(entry).name(),
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
