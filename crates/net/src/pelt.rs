//! Change points of a series: PELT, pruned exact linear time (Killick, Fearnhead and Eckley, "Optimal
//! Detection of Changepoints with a Linear Computational Cost", 2012).
//!
//! The crate `pelt` does the same with matrices and threads. It asks for a newer Rust than this
//! workspace does, and the whole is the loop below.

/// Where a series changes its mean: the ends of its segments, the first of which begins at 0. The last
/// end is the length of the series. Empty where the series is.
///
/// Minimises the squared error within the segments plus `penalty` for each change, exactly. The time
/// grows with the length of the series where changes do, and with its square where there are none.
pub(crate) fn ends(values: &[f64], penalty: f64) -> Vec<usize> {
    let sums = Sums::of(values);
    // Section 3, with K = 0, since a split never raises the squared error. `best[t]` has F(t) and the
    // last change before t.
    let mut best = vec![(-penalty, 0)];
    let mut candidates = Vec::new();
    for to in 1..=values.len() {
        candidates.push(to - 1);
        let with = |from: usize| best[from].0 + sums.squared_error(from, to);
        let costs = candidates.iter().map(|&from| (with(from), from));
        let (cost, from) = costs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
        // Theorem 3.1: a change there is no best one for any later end.
        candidates.retain(|&from| with(from) <= cost + penalty);
        best.push((cost + penalty, from));
    }
    let mut ends = Vec::new();
    let mut at = values.len();
    while at > 0 {
        ends.push(at);
        at = best[at].1;
    }
    ends.reverse();
    ends
}

/// Sums from the start of a series, which give the squared error of any part of it at once.
struct Sums {
    of_values: Vec<f64>,
    of_squares: Vec<f64>,
}

impl Sums {
    fn of(values: &[f64]) -> Self {
        // Without the mean the squares are small, so differences of sums keep their digits.
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (mut of_values, mut of_squares) = (vec![0.0], vec![0.0]);
        let (mut total, mut squares) = (0.0, 0.0);
        for value in values.iter().map(|value| value - mean) {
            (total, squares) = (total + value, squares + value * value);
            of_values.push(total);
            of_squares.push(squares);
        }
        Self { of_values, of_squares }
    }

    /// The squared distances of a part's values from their mean. `from` is below `to`.
    fn squared_error(&self, from: usize, to: usize) -> f64 {
        let total = self.of_values[to] - self.of_values[from];
        self.of_squares[to] - self.of_squares[from] - total * total / (to - from) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The squared error of a part, by its definition.
    fn squared_error(part: &[f64]) -> f64 {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|value| (value - mean) * (value - mean)).sum()
    }

    /// What a segmentation costs.
    fn cost(values: &[f64], penalty: f64, ends: &[usize]) -> f64 {
        let starts = std::iter::once(&0).chain(ends);
        let errors = starts.zip(ends).map(|(&from, &to)| squared_error(&values[from..to]));
        errors.map(|error| error + penalty).sum::<f64>() - penalty
    }

    /// The least cost, by optimal partitioning: every last change is tried for every end.
    fn least(values: &[f64], penalty: f64) -> f64 {
        let mut best = vec![-penalty];
        for to in 1..=values.len() {
            let with = |from: usize| best[from] + squared_error(&values[from..to]) + penalty;
            best.push((0..to).map(with).fold(f64::INFINITY, f64::min));
        }
        best[values.len()]
    }

    proptest! {
        #[test]
        fn pruning_loses_no_optimum(
            parts in prop::collection::vec((-4.0..4.0, 1..12_usize), 1..9),
            noise in prop::collection::vec(-1.0..1.0, 100),
            penalty in 0.01..6.0,
        ) {
            let levels = parts.iter().flat_map(|&(level, n)| std::iter::repeat_n(level, n));
            let values: Vec<f64> = levels.zip(&noise).map(|(level, noise)| level + noise).collect();
            let ends = ends(&values, penalty);
            prop_assert!(ends.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(ends.last(), Some(&values.len()));
            let (own, exact) = (cost(&values, penalty, &ends), least(&values, penalty));
            prop_assert!((own - exact).abs() < 1e-9, "{own} instead of {exact}");
        }
    }

    /// Two levels `d` apart, of `k` values each, have a squared error of `k d² / 2` together.
    #[test]
    fn a_change_is_found_where_it_is_worth_its_penalty() {
        let values = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0];
        assert_eq!(ends(&values, 7.9), [4, 8]);
        assert_eq!(ends(&values, 8.1), [8]);
        assert_eq!(ends(&[], 1.0), [0; 0]);
        assert_eq!(ends(&[5.0], 1.0), [1]);
    }
}
