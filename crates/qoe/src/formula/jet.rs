//! Numbers that carry their own derivatives (forward-mode differentiation).
//!
//! A formula evaluated on jets gives its value and its exact partial derivatives in one pass, at
//! kinks too, where a symbolic derivative needs rules that the parsing library does not have.

use core::str::FromStr;

/// A value with its partial derivatives by `T`, `D` and `L`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jet {
    pub(crate) value: f64,
    pub(crate) partial: [f64; 3],
    /// `false` for the outcome of a `then` whose condition does not hold; only `else` reads it.
    chosen: bool,
}

impl Default for Jet {
    fn default() -> Self {
        Self::constant(0.0)
    }
}

impl FromStr for Jet {
    type Err = core::num::ParseFloatError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::constant)
    }
}

/// `slope · partial`, where what does not vary stays so even against an infinite slope: the
/// derivative of `sqrt(L·0)` is 0, not NaN.
fn chain(slope: f64, partial: f64) -> f64 {
    if partial == 0.0 { 0.0 } else { slope * partial }
}

impl Jet {
    /// A number that does not vary.
    pub(crate) const fn constant(value: f64) -> Self {
        Self { value, partial: [0.0; 3], chosen: true }
    }
    /// The variable itself: axis 0 is `T`, 1 is `D`, 2 is `L`.
    pub(crate) fn variable(value: f64, axis: usize) -> Self {
        Self::moving(value, axis, 1.0)
    }
    /// What moves by `speed` for each unit of that variable.
    pub(crate) fn moving(value: f64, axis: usize, speed: f64) -> Self {
        let mut jet = Self::constant(value);
        jet.partial[axis] = speed;
        jet
    }

    /// A function of one argument, given its value and slope there.
    fn unary(self, value: f64, slope: f64) -> Self {
        Self { value, partial: self.partial.map(|p| chain(slope, p)), chosen: true }
    }
    /// A function of two arguments, given its value and its slope in each.
    fn binary(self, other: Self, value: f64, slope: f64, slope_other: f64) -> Self {
        let partial = core::array::from_fn(|i| {
            chain(slope, self.partial[i]) + chain(slope_other, other.partial[i])
        });
        Self { value, partial, chosen: true }
    }

    pub(crate) fn neg(self) -> Self {
        self.unary(-self.value, -1.0)
    }
    pub(crate) fn add(self, b: Self) -> Self {
        self.binary(b, self.value + b.value, 1.0, 1.0)
    }
    pub(crate) fn sub(self, b: Self) -> Self {
        self.binary(b, self.value - b.value, 1.0, -1.0)
    }
    pub(crate) fn mul(self, b: Self) -> Self {
        self.binary(b, self.value * b.value, b.value, self.value)
    }
    pub(crate) fn div(self, b: Self) -> Self {
        let quotient = self.value / b.value;
        self.binary(b, quotient, 1.0 / b.value, -quotient / b.value)
    }
    pub(crate) fn pow(self, b: Self) -> Self {
        let value = libm::pow(self.value, b.value);
        let slope = b.value * libm::pow(self.value, b.value - 1.0);
        self.binary(b, value, slope, value * libm::log(self.value))
    }
    /// The smaller; `b` when they are equal, NaN when either is.
    pub(crate) fn min(self, b: Self) -> Self {
        if self.value < b.value || self.value.is_nan() { self } else { b }
    }
    /// The larger; `b` when they are equal, NaN when either is.
    ///
    /// With `max(0, late)` the kink thus belongs to the side that rises, as Mortise Eq. 9 needs.
    pub(crate) fn max(self, b: Self) -> Self {
        if self.value > b.value || self.value.is_nan() { self } else { b }
    }
    /// `max(0, self)` rounded off over a width.
    pub(crate) fn softplus(self, width: Self) -> Self {
        let (x, w) = (self.value, width.value);
        let value = crate::smooth::softplus(x, w);
        let slope = crate::smooth::softplus_slope(x, w);
        let slope_width = if w > 0.0 { (value - slope * x) / w } else { 0.0 };
        self.binary(width, value, slope, slope_width)
    }
    pub(crate) fn ln(self) -> Self {
        self.unary(libm::log(self.value), 1.0 / self.value)
    }
    pub(crate) fn log10(self) -> Self {
        self.unary(libm::log10(self.value), core::f64::consts::LOG10_E / self.value)
    }
    pub(crate) fn log2(self) -> Self {
        self.unary(libm::log2(self.value), core::f64::consts::LOG2_E / self.value)
    }
    pub(crate) fn exp(self) -> Self {
        let value = libm::exp(self.value);
        self.unary(value, value)
    }
    pub(crate) fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        self.unary(value, 0.5 / value)
    }
    pub(crate) fn tanh(self) -> Self {
        let value = libm::tanh(self.value);
        self.unary(value, 1.0 - value * value)
    }
    /// The distance from zero, whose kink counts as rising.
    pub(crate) fn abs(self) -> Self {
        if self.value < 0.0 { self.neg() } else { self }
    }

    /// 1 or 0, without a slope.
    pub(crate) fn truth(holds: bool) -> Self {
        Self::constant(f64::from(holds))
    }
    /// `outcome`, marked as chosen when `self` is not 0.
    pub(crate) fn then(self, outcome: Self) -> Self {
        Self { chosen: self.value != 0.0, ..outcome }
    }
    /// `self` if it was chosen, else `other`.
    pub(crate) fn or_else(self, other: Self) -> Self {
        if self.chosen { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn slope_is_right(f: impl Fn(Jet) -> Jet, at: f64) {
        let h = 1e-6;
        let value = |x: f64| f(Jet::constant(x)).value;
        let numeric = (value(at + h) - value(at - h)) / (2.0 * h);
        let exact = f(Jet::variable(at, 1));
        assert_eq!((exact.partial[0], exact.partial[2]), (0.0, 0.0));
        assert!((exact.partial[1] - numeric).abs() < 1e-7, "{exact:?}, numeric {numeric}");
    }

    #[test]
    fn every_rule_against_central_differences() {
        let c = Jet::constant(0.7);
        for at in [0.3, 1.9, 2.6] {
            slope_is_right(|x| x.add(c).sub(x.mul(x)), at);
            slope_is_right(|x| c.div(x).add(x.div(c)), at);
            slope_is_right(|x| x.pow(c).add(c.pow(x)).add(x.pow(x)), at);
            slope_is_right(|x| x.min(c).add(x.max(c)).add(c.sub(x).abs()), at);
            slope_is_right(|x| x.ln().add(x.log2()).add(x.log10()), at);
            slope_is_right(|x| x.exp().add(x.sqrt()).add(x.tanh()).neg(), at);
            slope_is_right(|x| x.sub(Jet::constant(1.0)).softplus(c), at);
            slope_is_right(|x| c.softplus(x), at);
        }
    }

    #[test]
    fn what_does_not_vary_has_no_slope() {
        let zero = Jet::constant(0.0);
        assert_eq!(zero.sqrt().mul(Jet::variable(2.0, 0)).partial, [0.0; 3]);
        assert_eq!(zero.ln().partial, [0.0; 3]);
        // A whole power of a negative base has a slope, although ln of the base has none.
        assert_eq!(Jet::variable(-3.0, 2).pow(Jet::constant(2.0)).partial, [0.0, 0.0, -6.0]);
    }

    #[test]
    fn nan_is_never_lost() {
        let (nan, one) = (Jet::constant(f64::NAN), Jet::constant(1.0));
        for lost in [nan.min(one), one.min(nan), nan.max(one), one.max(nan)] {
            assert!(lost.value.is_nan());
        }
    }

    #[test]
    fn choice() {
        let (yes, no) = (Jet::truth(true), Jet::truth(false));
        let (x, y) = (Jet::variable(2.0, 0), Jet::variable(3.0, 1));
        assert_eq!(yes.then(x).or_else(y), x);
        assert_eq!(no.then(x).or_else(y), y);
    }
}
