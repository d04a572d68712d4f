//! The delay profile of Verus: what delay belongs to what window, as a smooth curve through what was
//! measured (Verus §4, "Delay Profiler").
//!
//! Each acknowledgement updates one point. Once in a second a cubic smoothing spline is laid through
//! all of them (Reinsch, "Smoothing by Spline Functions", Numerische Mathematik 10, 1967). The
//! authors' program has penalised splines of ALGLIB for it, with a knot for every fifteen packets.

/// Windows up to this have a point each; greater ones share points, 32 to an octave.
const SINGLE: usize = 64;
const PER_OCTAVE: f64 = 32.0;
/// No window is greater, in packets (`MAX_W_DELAY_CURVE`).
pub(super) const WINDOW_MAX: f64 = 40_000.0;
/// Points for windows up to that.
const POINTS: usize = SINGLE + 298;
/// How stiff the spline is: it follows bends that are longer than some fifteen packets.
const SMOOTHING: f64 = 15.0 * 15.0 * 15.0 * 15.0;
/// What a new sample leaves of a point (§4: EWMA; 0.875 in the authors' program).
const KEEP: f64 = 0.875;
/// So much further than the greatest window that was measured the profile is believed.
const BEYOND: f64 = 1.25;

/// The place of a window in packets among the points.
fn place(window: f64) -> usize {
    let window = window.clamp(1.0, WINDOW_MAX);
    if window < (SINGLE + 1) as f64 {
        return window as usize - 1;
    }
    let octaves = libm::log2(window / SINGLE as f64);
    (SINGLE + (octaves * PER_OCTAVE) as usize).min(POINTS - 1)
}

/// The window in the middle of a place.
fn window_at(place: usize) -> f64 {
    if place < SINGLE {
        return (place + 1) as f64;
    }
    SINGLE as f64 * libm::exp2(((place - SINGLE) as f64 + 0.5) / PER_OCTAVE)
}

/// A knot of the spline.
#[derive(Clone, Copy, Debug, Default)]
struct Knot {
    window: f64,
    delay: f64,
    /// Second derivative of the delay there.
    bend: f64,
}

/// The points, and the spline through them. Windows are in packets, delays in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// Average delay at each place; below zero where nothing was measured.
    points: [f64; POINTS],
    knots: [Knot; POINTS],
    len: usize,
}

impl Profile {
    pub(super) fn new() -> Self {
        Self { points: [-1.0; POINTS], knots: [Knot::default(); POINTS], len: 0 }
    }

    /// A packet that left as one of so many in flight took so long.
    pub(super) fn add(&mut self, window: f64, delay: f64) {
        let point = &mut self.points[place(window)];
        *point = if *point < 0.0 { delay } else { KEEP * *point + (1.0 - KEEP) * delay };
    }

    /// What was measured for greater windows is of a queue that overflowed.
    pub(super) fn forget_above(&mut self, window: f64) {
        self.points[place(window) + 1..].fill(-1.0);
    }

    /// As a link of that bandwidth, in packets per millisecond, has it, up to a window.
    pub(super) fn of_link(min_delay: f64, bandwidth: f64, window: f64) -> Self {
        let mut profile = Self::new();
        for place in 0..=place(window) {
            let window = window_at(place);
            profile.points[place] = min_delay.max(window / bandwidth);
        }
        profile.fit();
        profile
    }

    /// Lays the spline through the points.
    pub(super) fn fit(&mut self) {
        self.len = 0;
        for (place, delay) in self.points.iter().enumerate().filter(|(_, delay)| **delay >= 0.0) {
            self.knots[self.len] = Knot { window: window_at(place), delay: *delay, bend: 0.0 };
            self.len += 1;
        }
        smooth(&mut self.knots[..self.len], SMOOTHING);
    }

    fn knots(&self) -> &[Knot] {
        &self.knots[..self.len]
    }

    /// The delay that belongs to a window; `None` before any spline.
    pub(super) fn delay(&self, window: f64) -> Option<f64> {
        let (first, last) = (self.knots().first()?, self.knots().last()?);
        // Natural splines go on as straight lines.
        if window <= first.window {
            return Some(first.delay + self.slope(0) * (window - first.window));
        }
        if window >= last.window {
            return Some(last.delay + self.slope(self.len - 1) * (window - last.window));
        }
        let after = self.knots().partition_point(|knot| knot.window <= window);
        Some(between(&self.knots[after - 1], &self.knots[after], window))
    }

    /// The slope at a knot that is the first or the last.
    fn slope(&self, knot: usize) -> f64 {
        if self.len < 2 {
            return 0.0;
        }
        let at = if knot == 0 { 0 } else { self.len - 2 };
        let (a, b) = (&self.knots[at], &self.knots[at + 1]);
        let apart = b.window - a.window;
        let bend = if knot == 0 { -(2.0 * a.bend + b.bend) } else { a.bend + 2.0 * b.bend };
        (b.delay - a.delay) / apart + apart * bend / 6.0
    }

    /// The greatest window before the profile exceeds a delay (§4, Fig. 4); `None` before any spline.
    ///
    /// Where the profile ends below it, a packet more than that, or up to a quarter more where the
    /// profile rises.
    pub(super) fn window(&self, delay: f64) -> Option<f64> {
        let (first, last) = (self.knots().first()?, self.knots().last()?);
        let Some(over) = self.knots().iter().position(|knot| knot.delay > delay) else {
            let slope = self.slope(self.len - 1);
            let more = if slope > 0.0 { (delay - last.delay) / slope } else { 1.0 };
            let most = (BEYOND - 1.0) * last.window;
            return Some((last.window + more.min(most).max(1.0)).min(WINDOW_MAX));
        };
        if over == 0 {
            return Some(first.window.min(1.0));
        }
        // The curve is at most there at the knot before, and above at this one.
        let (a, b) = (&self.knots[over - 1], &self.knots[over]);
        let (mut low, mut high) = (a.window, b.window);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if between(a, b, middle) > delay { high = middle } else { low = middle }
        }
        Some(low)
    }
}

/// The spline between two knots.
fn between(a: &Knot, b: &Knot, window: f64) -> f64 {
    let apart = b.window - a.window;
    let (before, after) = (window - a.window, b.window - window);
    let line = (before * b.delay + after * a.delay) / apart;
    let (share_a, share_b) = (1.0 + after / apart, 1.0 + before / apart);
    line - before * after / 6.0 * (share_b * b.bend + share_a * a.bend)
}

/// Reinsch's algorithm: delays become those of the spline that minimises
/// Σ (yᵢ - g(wᵢ))² + λ ∫ g''². With γ the bends at the inner knots it is
/// (R + λ QᵀQ) γ = Qᵀy and g = y - λ Q γ, where R has three bands and QᵀQ five.
fn smooth(knots: &mut [Knot], stiffness: f64) {
    let count = knots.len();
    if count < 3 {
        return;
    }
    let inner = count - 2;
    let apart = |knots: &[Knot], i: usize| knots[i + 1].window - knots[i].window;
    // The three numbers of column j of Q.
    let column = |knots: &[Knot], j: usize| {
        let (before, after) = (1.0 / apart(knots, j), 1.0 / apart(knots, j + 1));
        [before, -before - after, after]
    };
    // The factors L D Lᵀ of the matrix: D, and L's two bands below the diagonal.
    let (mut diagonal, mut first, mut second) = ([0.0; POINTS], [0.0; POINTS], [0.0; POINTS]);
    let mut bends = [0.0; POINTS];
    for j in 0..inner {
        let q = column(knots, j);
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let mut at = (apart(knots, j) + apart(knots, j + 1)) / 3.0 + stiffness * dot(q, q);
        let mut value =
            q[0] * knots[j].delay + q[1] * knots[j + 1].delay + q[2] * knots[j + 2].delay;
        if j >= 2 {
            let two = column(knots, j - 2);
            second[j] = stiffness * two[2] * q[0] / diagonal[j - 2];
            at -= diagonal[j - 2] * second[j] * second[j];
            value -= second[j] * bends[j - 2];
        }
        if j >= 1 {
            let one = column(knots, j - 1);
            let mut band = apart(knots, j) / 6.0 + stiffness * (one[1] * q[0] + one[2] * q[1]);
            if j >= 2 {
                band -= diagonal[j - 2] * second[j] * first[j - 1];
            }
            first[j] = band / diagonal[j - 1];
            at -= diagonal[j - 1] * first[j] * first[j];
            value -= first[j] * bends[j - 1];
        }
        diagonal[j] = at;
        bends[j] = value;
    }
    for j in (0..inner).rev() {
        bends[j] /= diagonal[j];
        if j + 1 < inner {
            bends[j] -= first[j + 1] * bends[j + 1];
        }
        if j + 2 < inner {
            bends[j] -= second[j + 2] * bends[j + 2];
        }
    }
    for j in 0..inner {
        let q = column(knots, j);
        for (i, part) in q.into_iter().enumerate() {
            knots[j + i].delay -= stiffness * part * bends[j];
        }
        knots[j + 1].bend = bends[j];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_window_has_a_place_near_it() {
        for window in 1..=40_000 {
            let window = f64::from(window);
            let middle = window_at(place(window));
            assert!((middle / window - 1.0).abs() < 0.012, "{window}: {middle}");
        }
        assert_eq!((place(0.0), place(1e9)), (0, POINTS - 1));
    }

    fn knots(of: impl Fn(f64) -> f64, windows: &[f64]) -> Vec<Knot> {
        windows.iter().map(|&window| Knot { window, delay: of(window), bend: 0.0 }).collect()
    }

    /// Without stiffness it interpolates, and bends as the function does: of w³ by 6w.
    #[test]
    fn a_spline_without_stiffness_goes_through_all_points() {
        let windows: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.25).collect();
        let mut spline = knots(|w| w * w * w, &windows);
        smooth(&mut spline, 0.0);
        for (i, pair) in spline.windows(2).enumerate().skip(10).take(20) {
            assert!((pair[0].bend - 6.0 * pair[0].window).abs() < 0.01, "{i}: {pair:?}");
            let middle = 0.5 * (pair[0].window + pair[1].window);
            let error = between(&pair[0], &pair[1], middle) - middle * middle * middle;
            assert!(error.abs() < 1e-3, "{i}: {error}");
        }
        assert!(spline.iter().all(|k| (k.delay - k.window.powi(3)).abs() < 1e-9));
    }

    /// Of the greatest stiffness it is the straight line of least squares: of w² over 0 to 10 in
    /// steps of 1 that is 10 w - 15.
    #[test]
    fn a_spline_of_the_greatest_stiffness_is_the_line_of_least_squares() {
        let windows: Vec<f64> = (0..=10).map(f64::from).collect();
        let mut spline = knots(|w| w * w, &windows);
        smooth(&mut spline, 1e9);
        for knot in &spline {
            assert!((knot.delay - (10.0 * knot.window - 15.0)).abs() < 1e-3, "{knot:?}");
        }
    }

    /// A link of 4 packets per millisecond and 20 ms: 80 packets, then 0.25 ms for each more.
    #[test]
    fn window_and_delay_are_inverse() {
        let profile = Profile::of_link(20.0, 4.0, 400.0);
        for (window, delay) in [(120.0, 30.0), (200.0, 50.0), (320.0, 80.0)] {
            let got = profile.delay(window).unwrap();
            assert!((got / delay - 1.0).abs() < 0.05, "{window}: {got}");
            let got = profile.window(delay).unwrap();
            assert!((got / window - 1.0).abs() < 0.05, "{delay}: {got}");
        }
        assert_eq!(profile.window(1.0), Some(1.0), "no window is so fast");
        let most = profile.window(10_000.0).unwrap();
        assert!((480.0..520.0).contains(&most), "a quarter beyond what is known: {most}");
    }

    #[test]
    fn a_flat_profile_gives_a_packet_more_than_was_measured() {
        let mut profile = Profile::new();
        assert_eq!((profile.window(50.0), profile.delay(50.0)), (None, None));
        profile.add(10.0, 40.0);
        profile.fit();
        assert_eq!((profile.window(50.0), profile.delay(3.0)), (Some(11.0), Some(40.0)));
        assert_eq!(profile.window(39.0), Some(1.0));
        for window in 1..=30 {
            profile.add(f64::from(window), 40.0);
        }
        profile.fit();
        let got = profile.window(50.0).unwrap();
        assert!((31.0..=37.5).contains(&got), "{got}");
        profile.forget_above(20.0);
        profile.fit();
        assert_eq!(profile.knots().len(), 20);
    }

    /// §4: EWMA of 0.875.
    #[test]
    fn a_point_follows_its_samples() {
        let mut profile = Profile::new();
        profile.add(5.0, 40.0);
        profile.add(5.0, 80.0);
        assert_eq!(profile.points[4], 45.0);
    }
}
