//! Chebyshev filters of the first kind, which the published prototype of Mortise applies to its
//! samples of the bandwidth.

use core::f64::consts::PI;

/// What the pass band may vary by, in dB (the prototype's 1).
const RIPPLE_DB: f64 = 1.0;

/// Which frequencies pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Those below the cutoff.
    Low,
    /// Those above it.
    High,
}

/// A filter of twice so many orders, as sections of second order in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chebyshev<const SECTIONS: usize> {
    sections: [Section; SECTIONS],
    /// The gain at the edge of the pass band, which an even order also has at its far end.
    gain: f64,
}

/// One section: its coefficients, the leading one of the denominator being 1, and its state
/// (transposed direct form II).
#[derive(Clone, Copy, Debug)]
struct Section {
    forward: [f64; 3],
    back: [f64; 2],
    state: [f64; 2],
}

impl<const SECTIONS: usize> Chebyshev<SECTIONS> {
    /// A filter with this cutoff, in cycles per sample, below 0.5.
    pub(super) fn new(pass: Pass, cutoff: f64) -> Self {
        let order = 2.0 * SECTIONS as f64;
        let epsilon = libm::sqrt(libm::pow(10.0, RIPPLE_DB / 10.0) - 1.0);
        let mu = libm::asinh(1.0 / epsilon) / order;
        // The bilinear transform, warped so that the cutoff is where it belongs.
        let warped = 2.0 * libm::tan(PI * cutoff);
        let sections = core::array::from_fn(|k| {
            let angle = PI * (2 * k + 1) as f64 / (2.0 * order);
            let real = -libm::sinh(mu) * libm::sin(angle);
            let imaginary = libm::cosh(mu) * libm::cos(angle);
            Section::new(pass, warped, real, real * real + imaginary * imaginary)
        });
        Self { sections, gain: 1.0 / libm::sqrt(1.0 + epsilon * epsilon) }
    }

    /// The next sample, filtered.
    pub(super) fn next(&mut self, sample: f64) -> f64 {
        self.gain * self.sections.iter_mut().fold(sample, |x, section| section.next(x))
    }
}

impl Section {
    /// The section of a pair of poles with this real part and this squared distance from zero, at
    /// a cutoff of 1, moved to the cutoff `warped`.
    fn new(pass: Pass, warped: f64, real: f64, norm: f64) -> Self {
        // Both as polynomials in s, the constant first.
        let (above, below) = match pass {
            Pass::Low => {
                let square = warped * warped;
                ([norm * square, 0.0, 0.0], [norm * square, -2.0 * real * warped, 1.0])
            }
            Pass::High => ([0.0, 0.0, norm], [warped * warped, -2.0 * real * warped, norm]),
        };
        // s = 2(1 − 1/z)/(1 + 1/z), as polynomials in 1/z.
        let digital = |[c, b, a]: [f64; 3]| {
            [c + 2.0 * b + 4.0 * a, 2.0 * (c - 4.0 * a), c - 2.0 * b + 4.0 * a]
        };
        let (above, below) = (digital(above), digital(below));
        Self {
            forward: above.map(|a| a / below[0]),
            back: [below[1] / below[0], below[2] / below[0]],
            state: [0.0; 2],
        }
    }

    fn next(&mut self, x: f64) -> f64 {
        let y = self.forward[0] * x + self.state[0];
        self.state[0] = self.forward[1] * x - self.back[0] * y + self.state[1];
        self.state[1] = self.forward[2] * x - self.back[1] * y;
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The amplitude of what is left of a wave of amplitude 1.
    fn response<const N: usize>(mut filter: Chebyshev<N>, frequency: f64) -> f64 {
        let wave = |i: u32| (2.0 * PI * frequency * f64::from(i)).sin();
        (0..4_000).for_each(|i| {
            filter.next(wave(i));
        });
        let squares: f64 = (4_000..24_000).map(|i| filter.next(wave(i)).powi(2)).sum();
        (2.0 * squares / 20_000.0).sqrt()
    }

    /// 1/√(1 + ε²·T²(x)), with the polynomial of Chebyshev of this order at the warped frequency.
    fn by_formula(pass: Pass, order: f64, cutoff: f64, frequency: f64) -> f64 {
        let ratio = (PI * frequency).tan() / (PI * cutoff).tan();
        let x = if pass == Pass::Low { ratio } else { 1.0 / ratio };
        let cosh = |x: f64| (order * x.acosh()).cosh();
        let polynomial = if x <= 1.0 { (order * x.acos()).cos() } else { cosh(x) };
        let ripple = 10_f64.powf(0.1) - 1.0;
        1.0 / (1.0 + ripple * polynomial * polynomial).sqrt()
    }

    #[test]
    fn what_passes_is_as_by_the_formula() {
        for cutoff in [1.0 / 12.0, 0.2, 0.4] {
            for frequency in [0.01, 0.05, 1.0 / 12.0, 0.11, 0.23, 0.37, 0.45] {
                let low = response(Chebyshev::<1>::new(Pass::Low, cutoff), frequency);
                let expected = by_formula(Pass::Low, 2.0, cutoff, frequency);
                assert!((low - expected).abs() < 1e-3, "{cutoff} {frequency}: {low} {expected}");
                let high = response(Chebyshev::<2>::new(Pass::High, cutoff), frequency);
                let expected = by_formula(Pass::High, 4.0, cutoff, frequency);
                assert!((high - expected).abs() < 1e-3, "{cutoff} {frequency}: {high} {expected}");
            }
        }
    }

    #[test]
    fn a_constant_passes_low_and_not_high() {
        let (mut low, mut high) =
            (Chebyshev::<1>::new(Pass::Low, 0.1), Chebyshev::<2>::new(Pass::High, 0.1));
        let last = (0..500).map(|_| (low.next(3.0), high.next(3.0))).last().unwrap();
        // An even order has its ripple at zero.
        assert!((last.0 / 3.0 - 10_f64.powf(-1.0 / 20.0)).abs() < 1e-9, "{last:?}");
        assert!(last.1.abs() < 1e-9, "{last:?}");
    }
}
