//! The least or greatest of recent samples, in constant space and amortised constant time.

use trimtab_units::{Duration, Rate, Time};

/// A sample outlives the window by at most one part in this many.
const GRAINS: u64 = 8;
/// More samples than `GRAINS` are kept, so that a window may grow while it is in use.
const CAPACITY: usize = 16;

/// The least (or with `MAX` the greatest) of the samples of a sliding window.
///
/// It keeps the samples that are better than all after them, as the monotonic queue of the textbooks
/// does, but merges those that are closer than an eighth of the window. So the answer is never worse
/// than the true one, and a sample counts for at most 9/8 of the window. (Where the window
/// grows manyfold within its own length the queue may be full; then the newest sample kept outlives
/// the window by as much as samples were merged into it.)
#[derive(Clone, Debug)]
pub(crate) struct Extreme<T, const MAX: bool> {
    /// A ring, oldest and best first.
    kept: [Kept<T>; CAPACITY],
    head: usize,
    len: usize,
}

/// Least of the window.
pub(crate) type WindowedMin = Extreme<Duration, false>;
/// Greatest of the window.
pub(crate) type WindowedMax = Extreme<Duration, true>;
/// Greatest rate of the window.
pub(crate) type WindowedMaxRate = Extreme<Rate, true>;

/// A sample, standing for those taken from `first` to `last`.
#[derive(Clone, Copy, Debug, Default)]
struct Kept<T> {
    value: T,
    first: Time,
    last: Time,
}

impl<T: Copy + Default + PartialOrd, const MAX: bool> Extreme<T, MAX> {
    pub(crate) fn new() -> Self {
        Self { kept: [Kept::default(); CAPACITY], head: 0, len: 0 }
    }

    /// The extreme; `None` before any sample.
    pub(crate) fn get(&self) -> Option<T> {
        self.get_at().map(|(value, _)| value)
    }

    /// The extreme and when it was taken.
    pub(crate) fn get_at(&self) -> Option<(T, Time)> {
        (self.len > 0).then(|| (self.kept[self.head].value, self.kept[self.head].first))
    }

    /// Adds a sample; those older than `window` leave.
    pub(crate) fn update(&mut self, now: Time, window: Duration, value: T) {
        while self.len > 0 && now.since(self.kept[self.head].last) > window {
            self.head = (self.head + 1) % CAPACITY;
            self.len -= 1;
        }
        while self.len > 0 && !Self::better(self.kept[self.back()].value, value) {
            self.len -= 1;
        }
        if self.len > 0 {
            let back = self.back();
            let kept = &mut self.kept[back];
            if self.len == CAPACITY || now.since(kept.first) < window / GRAINS {
                kept.last = now;
                return;
            }
        }
        self.len += 1;
        let back = self.back();
        self.kept[back] = Kept { value, first: now, last: now };
    }

    fn better(a: T, b: T) -> bool {
        if MAX { a > b } else { a < b }
    }

    fn back(&self) -> usize {
        (self.head + self.len - 1) % CAPACITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Against a search through all samples, with the error that the documentation states.
    #[test]
    fn never_worse_than_true_and_at_most_an_eighth_late() {
        let window = Duration::from_millis(100);
        let (mut least, mut greatest) = (WindowedMin::new(), WindowedMax::new());
        let mut samples: Vec<(Time, Duration)> = Vec::new();
        let (mut now, mut x) = (Time::ZERO, 1u64);
        for _ in 0..5000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += Duration::from_micros((x >> 33) % 2000);
            let value = Duration::from_micros(20_000 + (x >> 40) % 30_000);
            samples.push((now, value));
            least.update(now, window, value);
            greatest.update(now, window, value);
            let within = |w: Duration| {
                samples.iter().filter(move |(t, _)| now.since(*t) <= w).map(|(_, v)| *v)
            };
            let wider = window + window / GRAINS;
            let least = least.get().unwrap();
            assert!(
                least <= within(window).min().unwrap() && least >= within(wider).min().unwrap()
            );
            let greatest = greatest.get().unwrap();
            assert!(greatest >= within(window).max().unwrap());
            assert!(greatest <= within(wider).max().unwrap());
        }
    }

    #[test]
    fn a_window_of_nothing_gives_the_latest() {
        let mut least = WindowedMin::new();
        for (t, ms) in [(1, 5), (2, 9), (3, 7)] {
            least.update(Time::from_millis(t), Duration::ZERO, Duration::from_millis(ms));
            assert_eq!(least.get(), Some(Duration::from_millis(ms)));
        }
    }

    #[test]
    fn a_window_that_grows_manyfold_loses_nothing_newer_than_it() {
        let mut least = WindowedMin::new();
        for i in 0..10_000u64 {
            let window = Duration::from_millis(1 + i / 10);
            least.update(Time::from_millis(i), window, Duration::from_micros(1000 + i));
        }
        // The last window was 1 s: the true minimum is 1000 + 9000 us or a little newer.
        let got = least.get().unwrap().as_micros();
        assert!((1000..=10_000).contains(&got), "{got}");
    }

    use proptest::prelude::*;

    proptest! {
        /// Any gaps, values and window: the answer is never worse than the true extreme, and no
        /// sample counts for more than 9/8 of the window.
        #[test]
        fn extremes_of_any_samples(
            window_us in 0u64..200_000,
            samples in prop::collection::vec((0u64..20_000, 1u64..1000), 1..200),
        ) {
            let window = Duration::from_micros(window_us);
            let (mut least, mut greatest) = (WindowedMin::new(), WindowedMax::new());
            let mut now = Time::ZERO;
            let mut all: Vec<(Time, Duration)> = Vec::new();
            for (gap, value) in samples {
                now += Duration::from_micros(gap);
                let value = Duration::from_micros(value);
                all.push((now, value));
                least.update(now, window, value);
                greatest.update(now, window, value);
                let within = |w: Duration| {
                    all.iter().filter(move |(t, _)| now.since(*t) <= w).map(|(_, v)| *v)
                };
                let wider = window + window / GRAINS;
                let (min, max) = (least.get().unwrap(), greatest.get().unwrap());
                prop_assert!(min <= within(window).min().unwrap());
                prop_assert!(min >= within(wider).min().unwrap());
                prop_assert!(max >= within(window).max().unwrap());
                prop_assert!(max <= within(wider).max().unwrap());
            }
        }
    }

    #[test]
    fn the_extreme_comes_with_the_time_at_which_it_was_taken() {
        let (mut least, ms) = (WindowedMin::new(), Duration::from_millis);
        assert_eq!((least.get(), least.get_at()), (None, None));
        for (at, value) in [(0, 30), (40, 20), (80, 25), (139, 25)] {
            least.update(Time::from_millis(at), ms(100), ms(value));
        }
        assert_eq!(least.get_at(), Some((ms(20), Time::from_millis(40))), "99 ms ago");
        least.update(Time::from_millis(140), ms(100), ms(25));
        assert_eq!(least.get(), Some(ms(20)), "100 ms ago is within the window");
        least.update(Time::from_millis(141), ms(100), ms(26));
        assert_eq!(least.get(), Some(ms(25)));
    }

    #[test]
    fn rates_have_a_filter_too() {
        let (mut most, mbps) = (WindowedMaxRate::new(), Rate::from_mbps);
        for (at, rate) in [(0, 10.0), (50, 5.0), (120, 3.0)] {
            most.update(Time::from_millis(at), Duration::from_millis(100), mbps(rate));
        }
        assert_eq!(most.get(), Some(mbps(5.0)));
    }
}
