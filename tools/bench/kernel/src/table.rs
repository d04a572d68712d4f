//! The figures, and how they are printed.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, target: None, met: None }
    }

    pub(crate) fn target(mut self, target: Target) -> Self {
        self.met = Some(match target {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
        });
        self.target = Some(target);
        self
    }
}

/// The middle of some values, at least one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// Three digits that say something.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

pub(crate) fn render(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["", "value", "unit", "target", ""]);
    for figure in figures {
        let target = match figure.target {
            None => String::new(),
            Some(Target::AtLeast(least)) => format!("≥ {least}"),
            Some(Target::AtMost(most)) => format!("≤ {most}"),
        };
        let met = match figure.met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        let value = digits(figure.value);
        table.add_row([figure.name.as_str(), &value, figure.unit, &target, met]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
