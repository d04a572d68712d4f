//! How flows share a link.

/// Jain's fairness index, (Σx)² / (n·Σx²): 1 when all shares are equal, 1/n when one has it all
/// (Jain, Chiu, Hawe, DEC-TR-301, 1984). `None` without flows; 1 when nobody got anything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.is_empty() {
        return None;
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    Some(if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) })
}

/// The friendliness ratio of Mortise §5.5: the delivery rate of the flow under test over that of the
/// CUBIC flow next to it; 1 is an equal share, above 1 is aggressive. Both in the same unit. `None`
/// when the CUBIC flow got nothing.
pub fn friendliness_ratio(flow: f64, cubic: f64) -> Option<f64> {
    (cubic > 0.0).then(|| flow / cubic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// expected.md M1.
    #[test]
    fn jain_of_known_shares() {
        for (shares, expected) in [
            ([1.0, 1.0, 1.0], 1.0),
            ([1.0, 2.0, 3.0], 0.857143),
            ([10.0, 0.0, 0.0], 0.333333),
            ([5.0, 5.0, 4.0], 0.989899),
        ] {
            let got = jain(&shares).unwrap();
            assert!((got - expected).abs() < 1e-6, "{shares:?}: {got}");
        }
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), Some(1.0));
    }

    /// expected.md M2.
    #[test]
    fn friendliness() {
        assert_eq!(friendliness_ratio(24.0, 16.0), Some(1.5));
        assert_eq!(friendliness_ratio(24.0, 0.0), None);
    }
}
