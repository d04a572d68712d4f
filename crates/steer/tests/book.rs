//! The book's table of the state is the list that the code has.

use trimtab_steer::select::{FEATURES, Feature, antelope};

const PAGE: &str = include_str!("../../../docs/reference/selection.md");

#[test]
fn the_book_lists_every_feature() {
    lists(&FEATURES);
    lists(&antelope::FEATURES);
}

fn lists(features: &[Feature]) {
    let rows: String = features
        .iter()
        .map(|f| format!("| `{}` | {} | {} | {} |\n", f.name, f.unit, f.scale, f.about))
        .collect();
    assert!(PAGE.contains(&rows), "the table should be:\n{rows}");
}
