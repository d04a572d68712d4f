//! The catalogue as a list and as a page of the documentation.

use std::fmt::Write;

use super::{Entry, Recipe};

/// One line per entry, for a terminal.
pub fn list(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let runs = if entry.run.is_some() { "runs" } else { "-" };
        format!("{:width$}  {runs:4}  {}\n", entry.name, entry.shows)
    };
    entries.iter().map(line).collect()
}

/// `docs/reference/papers.md`.
pub fn page(entries: &[Entry]) -> String {
    let mut text = String::from(
        "# Figures of the papers by name\n\n\
         `trimtab reproduce --page` makes this page from `scenarios/papers/*.toml`. `trimtab reproduce\n\
         NAME` runs a figure, draws it, and prints the paper's number, ours and a verdict. Results lie\n\
         in the folder `--out`; a figure that has its result there is not run again. `--quick` keeps\n\
         one seed and six points: it shows that a figure runs, and says little of the paper.\n\n\
         Ours *agrees* from the band's lower end on. It is *smaller* below that, in the paper's\n\
         direction. It *contradicts* beyond, or where the interval holds no change and rules out\n\
         the band. Where the interval holds both, it is *not told apart*. Percentages are changes\n\
         of means, better being positive, with 95% intervals.\n",
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
        let ours = entry.run.as_ref().map(recipe);
        let ours: Vec<String> = ours
            .into_iter()
            .chain(Some(entry.note.clone()).filter(|note| !note.is_empty()))
            .collect();
        let _ = writeln!(
            text,
            "| `{}` ({}) | {} | {} | {} |",
            entry.name,
            entry.section,
            entry.shows,
            entry.paper,
            ours.join(" "),
        );
    }
    text
}

/// What is compared, in a sentence.
fn recipe(recipe: &Recipe) -> String {
    let rival = recipe.versus.as_ref().map_or(String::new(), |rival| format!(" vs. {rival}"));
    let unit = if recipe.versus.is_some() { "%" } else { "" };
    let from = if recipe.at_least > recipe.contradicts_below { "from" } else { "above" };
    let most = recipe.at_most.map_or(String::new(), |most| format!(" to {most}{unit}"));
    format!(
        "`{}`: {} of {}{rival}; agrees {from} {}{unit}{most}.",
        recipe.scenario,
        recipe.quantity.name(),
        recipe.scheme,
        recipe.at_least,
    )
}
