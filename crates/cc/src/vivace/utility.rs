//! What an interval was worth, and where more would be: the utility function and its gradient.

use super::knobs::Values;
use crate::interval::Seen;

/// A slope within so many standard errors (1.25, squared) of zero is noise. More makes flows of few
/// packets deaf to a shared queue, and unfair; fewer let the bursts of a cellular link look like
/// queues.
const SLOPE_ERRORS2: f64 = 1.5625;

/// u = α·x^δ − β·x·L − γ·x·dRTT/dt (PCC customization §2.1; NSDI 2018 §4 with t, c, b for δ, β, γ), for the rate x in
/// Mbit/s, the share L of its packets that was lost and the slope of the round-trip time in s/s.
///
/// Latency and loss below their filter levels count as none (§2.1), as does a slope that its own
/// error explains; losses must not all be of one burst (§5.4). A round-trip time that falls is no
/// merit: the queue that empties then was made by the sender before.
pub(super) fn utility(values: &Values, seen: &Seen) -> f64 {
    let loss_level = values.loss_filter;
    let noise = seen.loss < loss_level || (loss_level > 0.0 && seen.lost_ranges < 2);
    let loss = if noise { 0.0 } else { seen.loss };
    let slope_level = values.latency_filter;
    let explained =
        slope_level > 0.0 && seen.slope * seen.slope <= SLOPE_ERRORS2 * seen.slope_error2;
    let slope = if seen.slope < slope_level || explained { 0.0 } else { seen.slope.max(0.0) };
    let x = seen.rate;
    values.alpha * libm::pow(x, values.delta) - values.beta * x * loss - values.gamma * x * slope
}

/// The gradient at the middle of two rates: the secant (§5.2, whose printed formula lacks the utility).
///
/// `None` where the rates do not differ by enough to tell.
pub(super) fn secant(before: (f64, f64), after: (f64, f64)) -> Option<f64> {
    let apart = after.0 - before.0;
    (apart.abs() > 1e-3 * after.0).then(|| (after.1 - before.1) / apart)
}

/// No gradient of a concave utility that is 0 at rate 0 is greater than this at a rate of that
/// utility. So a rate that is worth less than nothing is too high, whatever the rate before it was
/// worth when the path was another.
pub(super) fn most_gradient(rate: f64, utility: f64) -> f64 {
    utility / rate.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vivace::knobs::plain;

    fn seen(rate: f64, loss: f64, slope: f64) -> Seen {
        Seen {
            rate,
            arrived: None,
            packets: 1000.0,
            loss,
            lost_ranges: 9,
            slope,
            slope_error2: 0.0,
        }
    }

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-3 * want.abs().max(1.0), "{got} for {want}");
    }

    /// expected.md Z1.
    #[test]
    fn ten_megabits() {
        close(utility(&plain(), &seen(10.0, 0.0, 0.0)), 7.9433);
        close(utility(&plain(), &seen(10.0, 0.01, 0.0)), 6.8083);
        // NSDI 2018 ignores slopes below 1%.
        close(utility(&plain(), &seen(10.0, 0.0, 0.02)), 7.9433 - 180.0);
    }

    /// expected.md Z5b: the optimum is at the capacity.
    #[test]
    fn losses_put_the_optimum_at_the_capacity() {
        let of = |x: f64| utility(&plain(), &seen(x, ((x - 48.0) / x).max(0.0), 0.0));
        for (x, want) in
            [(10.0, 7.943), (40.0, 27.66), (48.0, 32.592), (50.0, 11.112), (60.0, -96.4)]
        {
            close(of(x), want);
        }
        assert!(of(47.0) < of(48.0) && of(49.0) < of(48.0));
    }

    /// expected.md Z6.
    #[test]
    fn the_secant_is_the_gradient_in_the_middle() {
        let of = |x: f64| (x, utility(&plain(), &seen(x, 0.0, 0.0)));
        close(secant(of(9.5), of(10.5)).unwrap(), 0.7148);
        assert_eq!(secant(of(10.0), of(10.0)), None);
        close(most_gradient(10.0, of(10.0).1), 0.794);
    }

    /// §5.4: what is noise counts for nothing, by default; plain Vivace believes it.
    #[test]
    fn noise_is_filtered() {
        let ours = Values::default();
        let clean = utility(&ours, &seen(10.0, 0.0, 0.0));
        let burst = Seen { lost_ranges: 1, ..seen(10.0, 0.05, 0.0) };
        let few = seen(10.0, 0.5 * ours.loss_filter, 0.0);
        let jitter = Seen { slope_error2: 0.01, ..seen(10.0, 0.0, 0.05) };
        let falling = seen(10.0, 0.0, -0.05);
        for noise in [&burst, &few, &jitter] {
            assert_eq!(utility(&ours, noise), clean, "{noise:?}");
            assert!(utility(&plain(), noise) < clean, "{noise:?}");
        }
        assert_eq!(utility(&ours, &falling), clean);
        assert!(utility(&ours, &seen(10.0, 0.05, 0.0)) < clean);
    }
}
