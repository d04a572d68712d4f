//! The recordings: tables of what the kernel's TCP did over Mahimahi.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::BenchError;

/// One row of a table, by column.
pub(crate) struct Row(BTreeMap<String, String>);

impl Row {
    pub(crate) fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// Not a number when it is none: the table then shows that.
    pub(crate) fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }
}

/// Reads a table. None of ours has quotes.
pub(crate) fn rows(path: &Path) -> Result<Vec<Row>, BenchError> {
    let text = fs::read_to_string(path).map_err(|e| BenchError::Recording {
        path: path.display().to_string(),
        problem: e.to_string(),
    })?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        names.iter().zip(line.split(',')).map(|(n, v)| ((*n).to_owned(), v.to_owned())).collect()
    };
    Ok(lines.map(|line| Row(row(line))).collect())
}

/// The mean of a column over the repeats of a cell.
pub(crate) fn mean(rows: &[Row], column: &str) -> f64 {
    rows.iter().map(|row| row.number(column)).sum::<f64>() / rows.len() as f64
}

/// Rows that belong together, by a name.
pub(crate) fn groups(rows: Vec<Row>, name: impl Fn(&Row) -> String) -> BTreeMap<String, Vec<Row>> {
    let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(name(&row)).or_default().push(row);
    }
    groups
}

/// The file `NAME.trace.gz` below a folder.
pub(crate) fn find_trace(folder: &Path, name: &str) -> Result<PathBuf, BenchError> {
    let wanted = format!("{name}.trace.gz");
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| BenchError::Recording {
            path: folder.display().to_string(),
            problem: e.to_string(),
        })?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|file| file == wanted.as_str()) {
                return Ok(path);
            }
        }
    }
    Err(BenchError::NoTrace(name.to_owned()))
}

/// The middle of some values; not a number when there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
