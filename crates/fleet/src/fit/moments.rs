//! Products of what is left of columns after the mean of each aggregate and context is removed. They
//! add up over aggregates, so that each part of the log, and each resample, is a sum.

use nalgebra::DMatrix;

use super::table::Row;

/// What varies by less than this share of its size is constant, but for rounding.
const CONSTANT: f64 = 1e-9;

/// Sums over intervals.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Products {
    /// Intervals, less one for each mean that was removed.
    pub(super) freedom: f64,
    /// Of each two columns: the sum of the products of what is left of them.
    pub(super) of: DMatrix<f64>,
    /// Of each column: the sum of its squares as it was.
    pub(super) size: Vec<f64>,
}

/// Rows of each aggregate, where they are in this order.
pub(super) fn by_aggregate<'s, 'a>(
    rows: &'s [&'s Row<'a>],
) -> impl Iterator<Item = &'s [&'s Row<'a>]> {
    rows.chunk_by(|a, b| a.key == b.key)
}

/// Rows of each aggregate and context, where they are in this order, without their mean.
pub(super) fn centred<'s>(rows: &'s [&Row<'_>]) -> impl Iterator<Item = Vec<Vec<f64>>> + 's {
    let groups = rows.chunk_by(|a, b| a.key == b.key && a.context == b.context);
    groups.map(|group| {
        let mut mean = vec![0.0; group[0].values.len()];
        for row in group {
            mean.iter_mut().zip(&row.values).for_each(|(m, value)| *m += value);
        }
        mean.iter_mut().for_each(|m| *m /= group.len() as f64);
        let less = |row: &&Row<'_>| row.values.iter().zip(&mean).map(|(v, m)| v - m).collect();
        group.iter().map(less).collect()
    })
}

impl Products {
    fn zero(width: usize) -> Self {
        Self { freedom: 0.0, of: DMatrix::zeros(width, width), size: vec![0.0; width] }
    }

    /// Of some rows, at least one.
    pub(super) fn of(rows: &[&Row<'_>]) -> Self {
        let mut products = Self::zero(rows[0].values.len());
        for row in rows {
            products.size.iter_mut().zip(&row.values).for_each(|(s, value)| *s += value * value);
        }
        for group in centred(rows) {
            products.freedom += group.len() as f64 - 1.0;
            for row in group {
                for (i, a) in row.iter().enumerate() {
                    row.iter().enumerate().for_each(|(j, b)| products.of[(i, j)] += a * b);
                }
            }
        }
        products
    }

    /// The sum of some.
    pub(super) fn sum<'s>(all: impl IntoIterator<Item = &'s Self>, width: usize) -> Self {
        let mut sum = Self::zero(width);
        for one in all {
            sum.freedom += one.freedom;
            sum.of += &one.of;
            sum.size.iter_mut().zip(&one.size).for_each(|(s, size)| *s += size);
        }
        sum
    }

    /// Whether a column varies within aggregates and contexts.
    pub(super) fn varies(&self, column: usize) -> bool {
        self.of[(column, column)] > CONSTANT * CONSTANT * self.size[column]
    }

    /// The column of the reward: the last one.
    pub(super) fn reward(&self) -> usize {
        self.size.len() - 1
    }
}
