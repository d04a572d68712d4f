//! From samples to figures: medians over the rounds, and ratios within each round.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::cases::{Case, FLOWS};
use crate::memory::Footprint;

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// The median over the rounds.
    pub(crate) median: f64,
    /// The extremes over the rounds.
    pub(crate) range: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    /// Whether the median meets the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
}

impl Figure {
    fn new(name: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        let range = [values[0], values[n - 1]];
        Self { name: name.into(), unit, median, range, target: None, met: None }
    }

    fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self.met = Some(target.is_met(self.median));
        self
    }
}

/// What was measured in the rounds, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<Case, Vec<f64>>);

impl Samples {
    pub(crate) fn push(&mut self, case: Case, value: f64) {
        self.0.entry(case).or_default().push(value);
    }

    fn of(&self, case: Case) -> &[f64] {
        self.0.get(&case).map_or(&[], Vec::as_slice)
    }

    fn each(&self, case: Case, of: impl Fn(f64) -> f64) -> Vec<f64> {
        self.of(case).iter().map(|&value| of(value)).collect()
    }

    /// Cost of one case in units of another's in the same round.
    fn ratio(&self, case: Case, base: Case) -> Vec<f64> {
        self.of(case).iter().zip(self.of(base)).map(|(a, b)| a / b).collect()
    }

    fn has(&self, case: Case) -> bool {
        !self.of(case).is_empty()
    }
}

/// All figures.
pub(crate) fn figures(samples: &Samples, world: Footprint) -> Vec<Figure> {
    let millions_per_s = |ns: f64| 1e3 / ns;
    let speed = |name: &str, case| {
        Figure::new(name, "M packets/s", samples.each(case, millions_per_s))
            .target(Target::AtLeast(12.0))
    };
    let mut figures = vec![
        speed("bulk CUBIC flow, 12 Mbit/s", Case::Bulk12),
        speed("bulk CUBIC flow, 48 Mbit/s", Case::Bulk48),
        speed("bulk CUBIC flow, 1 Gbit/s", Case::Bulk1000),
    ];
    let relative = |name: String, case, of| Figure::new(name, "x", samples.ratio(case, of));
    figures.push(relative("cost vs. the bare link".into(), Case::Bulk12, Case::BareLink));
    for flows in FLOWS {
        let case = Case::Flows(flows);
        figures.push(Figure::new(
            format!("cost with {flows} flow{}", if flows == 1 { "" } else { "s" }),
            "ns/packet",
            samples.of(case).to_vec(),
        ));
    }
    for flows in &FLOWS[1..] {
        let name = format!("cost with {flows} flows vs. 1");
        figures
            .push(relative(name, Case::Flows(*flows), Case::Flows(1)).target(Target::AtMost(1.4)));
    }
    figures.extend([
        Figure::new("memory of a world of 64 flows", "MB", vec![world.held.as_f64() * 1e-6])
            .target(Target::AtMost(20.0)),
        Figure::new("allocations as it runs", "per packet", vec![world.allocations_per_packet]),
        Figure::new("copying that world", "us", samples.of(Case::Clone).to_vec()),
        relative("… vs. copying a block of its size".into(), Case::Clone, Case::CopyBlock)
            .target(Target::AtMost(2.0)),
        Figure::new(
            "download sessions of 75 s",
            "1/s",
            samples.each(Case::Download, |ms| 1e3 / ms),
        ),
        Figure::new("video sessions of 150 s", "1/s", samples.each(Case::Vod, |ms| 1e3 / ms)),
    ]);
    let at_most = |name: &str, unit, case, most| {
        Figure::new(name, unit, samples.of(case).to_vec()).target(Target::AtMost(most))
    };
    figures.extend([
        at_most("Floo's monitor", "ns/ack", Case::Collect, 100.0),
        at_most("a decision of a learnt policy", "us", Case::Decide, 5.0),
        at_most("a decision of an ensemble of 5", "us", Case::DecideEnsemble, 5.0),
        at_most("a full switch", "us", Case::Switch, 2.0),
        at_most("a decision of Muses' trees", "ns", Case::Muses, 100.0),
    ]);
    if samples.has(Case::Ns3) {
        figures.extend([
            Figure::new(
                "TCP flow as in ns-3, here",
                "ns/packet",
                samples.of(Case::LikeNs3).to_vec(),
            ),
            Figure::new("TCP flow in ns-3", "ns/packet", samples.of(Case::Ns3).to_vec()),
            relative("cost of ns-3 vs. ours".into(), Case::Ns3, Case::LikeNs3),
        ]);
    }
    figures
}

/// Three significant digits.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-3).log10().floor() as i32;
    format!("{value:.*}", digits.max(0) as usize)
}

/// The figures for people.
pub(crate) fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["", "median", "lowest", "highest", "unit", "target", ""]);
    for figure in figures {
        let target = figure.target.map_or_else(String::new, |target| match target {
            Target::AtLeast(least) => format!("≥ {least}"),
            Target::AtMost(most) => format!("≤ {most}"),
        });
        let met = figure.met.map_or("", |met| if met { "met" } else { "MISSED" });
        let [low, high] = figure.range.map(short);
        table.add_row([
            &figure.name,
            &short(figure.median),
            &low,
            &high,
            figure.unit,
            &target,
            met,
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_and_a_ratio_is_taken_within_a_round() {
        let mut samples = Samples::default();
        // The second round met a busy machine: both cases cost three times as much.
        for (ours, theirs) in [(10.0, 100.0), (30.0, 300.0), (11.0, 121.0), (9.0, 99.0)] {
            samples.push(Case::LikeNs3, ours);
            samples.push(Case::Ns3, theirs);
        }
        let ratio = Figure::new("r", "x", samples.ratio(Case::Ns3, Case::LikeNs3));
        assert_eq!((ratio.median, ratio.range), (10.5, [10.0, 11.0]));
        let cost = Figure::new("c", "ns", samples.of(Case::LikeNs3).to_vec());
        assert_eq!(cost.median, 10.5);
        assert_eq!(cost.clone().target(Target::AtMost(10.5)).met, Some(true));
        assert_eq!(cost.target(Target::AtLeast(10.6)).met, Some(false));
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.0, 0.0123, 1.0, 12.34, 144.4, 14_321.0].map(short),
            ["0.00000", "0.0123", "1.00", "12.3", "144", "14321"]
        );
    }
}
