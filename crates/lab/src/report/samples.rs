//! Distributions of samples as a figure: a panel for each quantity, a line for each set.

use std::collections::{BTreeMap, BTreeSet};

use super::figure::{Line, cumulative, panel};
use super::look::{Look, looks};
use super::sheet::{Arrangement, compose};
use crate::samples::{Sampled, Unit, pooled};

/// What the line of the paper's points is called.
const PAPER: &str = "points that the paper states";

/// Draws the distributions of sets of samples, by their names. `stated` are points that a paper states
/// of a quantity: the value, and how many percent are at or below it.
pub fn figure(sets: &[(String, Vec<Unit>)], stated: &BTreeMap<Sampled, Vec<(f64, f64)>>) -> String {
    let mut names: Vec<&str> = sets.iter().map(|(name, _)| name.as_str()).collect();
    if !stated.is_empty() {
        names.push(PAPER);
    }
    let looks = looks(&names);
    let units = sets.iter().flat_map(|(_, units)| units);
    let quantities: BTreeSet<Sampled> =
        units.flat_map(|unit| unit.values.keys().copied()).collect();
    let draw = |&quantity: &Sampled| {
        let points = sets.iter().map(|(_, units)| cumulative(&pooled(units, quantity)));
        let points = points.chain(stated.get(&quantity).cloned());
        let line = |(points, &look): (_, &Look)| Line { look, points };
        let lines: Vec<Line> = points.zip(&looks).map(line).collect();
        panel(quantity.name(), true, "% at or below", &lines)
    };
    let panels: Vec<String> = quantities.iter().map(draw).collect();
    let legend: Vec<(String, Look)> =
        names.iter().map(|&name| name.to_owned()).zip(looks.iter().copied()).collect();
    compose(&legend, &panels, Arrangement::Row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_for_each_quantity_and_a_line_for_each_set() {
        let unit = |lengths: &[f64]| Unit {
            name: "x".to_owned(),
            values: [
                (Sampled::SegmentLength, lengths.to_vec()),
                (Sampled::SegmentChange, vec![50.0, 80.0]),
            ]
            .into(),
        };
        let sets =
            [("a".to_owned(), vec![unit(&[1.0, 9.0])]), ("b".to_owned(), vec![unit(&[4.0])])];
        let lines = |svg: &str| svg.matches("stroke-linejoin=\"round\"").count();
        let svg = figure(&sets, &BTreeMap::new());
        assert_eq!(lines(&svg), 2 * 2 + 2, "two panels and the key: {svg}");
        let stated = [(Sampled::SegmentLength, vec![(3.0, 10.0), (17.0, 95.0)])].into();
        let svg = figure(&sets, &stated);
        assert_eq!(lines(&svg), 3 + 2 + 3, "one quantity has stated points: {svg}");
        assert!(svg.contains(">points that the paper states</text>"));
        assert!(svg.contains("length of segments, s") && svg.contains("neighbours, %"));
    }
}
