//! The comparison of two datapaths as a table for the terminal.

use crate::report::cells::place_of;
use crate::report::table::{Column, Style, short, table, wrapped};
use crate::stats::summary::in_order;

use super::quantity::Bar;
use super::{CellDifference, Difference, Parity, ParityRow};

impl Parity {
    /// The table: the reference's value, the model's, and how far that is off, marked with `!`
    /// where that is out of its band.
    pub fn render(&self, style: Style) -> String {
        let mut text = String::new();
        for app in in_order(self.rows.iter().map(|r| r.app.as_str())) {
            let rows: Vec<&ParityRow> = self.rows.iter().filter(|r| r.app == app).collect();
            let (reference, model) = (self.reference.name(), self.model.name());
            text += &format!("{app}: {reference}, {model}, and how far it is off\n");
            text += &format!("{}\n", table(columns(&rows), style));
            text += &worst(&rows).iter().map(|line| wrapped(line, style.width)).collect::<String>();
            text += "\n";
        }
        text += &wrapped(&self.legend(), style.width);
        text += &format!("{}\n", self.verdict());
        text
    }

    /// What the figures are, and the bands.
    fn legend(&self) -> String {
        let mut bands: Vec<String> = Vec::new();
        for d in self.differences() {
            let band = format!("{} {}", d.quantity.label, d.band.text(d.quantity.unit));
            if !bands.contains(&band) {
                bands.push(band);
            }
        }
        let is_share = self.differences().any(|d| d.bar == Bar::NineInTen);
        let share =
            if is_share { " The last figure is the share of cells within the band." } else { "" };
        format!(
            "Medians over cells, of absolute differences; the QoE is the mean of all runs.{share} ! \
             is out of its band: {}.",
            bands.join(", ")
        )
    }

    /// How many quantities are within their bands.
    fn verdict(&self) -> String {
        let within = self.differences().filter(|d| d.holds()).count();
        let what = match self.differences().next().map(|d| d.bar) {
            Some(Bar::NineInTen) => "quantities are within their bands in nine cells of ten",
            _ => "medians are within their bands",
        };
        format!("{within} of {} {what}.", self.differences().count())
    }
}

/// For each quantity the cell that is furthest off, where that is out of its band.
fn worst(rows: &[&ParityRow]) -> Vec<String> {
    let all = || rows.iter().flat_map(|row| row.differences.iter().map(|d| (&row.cc, d)));
    let of = |label: &str| {
        let own = all().filter(|(_, d)| d.quantity.label == label && d.worst.bands > 1.0);
        let (cc, d) = own.max_by(|a, b| a.1.worst.bands.total_cmp(&b.1.worst.bands))?;
        let CellDifference { trace, cell, reference, model, bands } = &d.worst;
        let (reference, model, place) = (short(*reference), short(*model), place_of(trace, cell));
        Some(format!(
            "furthest off: {label} of {cc} in {place}: {reference}, {model}, {bands:.1} bands."
        ))
    };
    in_order(all().map(|(_, d)| d.quantity.label)).into_iter().filter_map(of).collect()
}

/// The columns of the schemes with one application.
fn columns(rows: &[&ParityRow]) -> Vec<Column> {
    let column = |head: &str, of: &dyn Fn(&ParityRow) -> String| Column {
        head: head.to_owned(),
        cells: rows.iter().map(|r| of(r)).collect(),
    };
    let mut columns = vec![
        column("congestion control", &|r| r.cc.clone()),
        column("cells", &|r| r.cells.to_string()),
        column("mean QoE", &|r| {
            format!("{} {}", short(r.qoe_mean.reference), short(r.qoe_mean.model))
        }),
    ];
    let all = rows.iter().flat_map(|r| &r.differences).map(|d| d.quantity.head);
    for head in in_order(all) {
        columns.push(column(head, &|r| {
            r.differences.iter().find(|d| d.quantity.head == head).map_or(String::new(), show)
        }));
    }
    columns
}

fn show(d: &Difference) -> String {
    let unit = if d.band.is_share() { "%" } else { "" };
    let mark = if d.holds() { "" } else { " !" };
    let within = match d.bar {
        Bar::Median => String::new(),
        Bar::NineInTen => format!(" {:.0}%", 100.0 * d.within),
    };
    format!("{} {} {:.2}{unit}{within}{mark}", short(d.reference), short(d.model), d.off)
}
