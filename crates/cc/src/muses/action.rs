//! The seven actions (Muses §III-C), and the window that they multiply.

use trimtab_units::Bytes;

/// How many actions there are.
pub const ACTIONS: usize = 7;
/// What each multiplies by, as a [`Factor`]: /2.0, /1.2, /1.05, +0.0, *1.05, *1.2, *2.0.
const FACTORS: [u16; ACTIONS] = [8192, 13_653, 15_604, 16_384, 17_203, 19_661, 32_768];
/// Bits after the point of a factor.
pub const FACTOR_POINT: u32 = 14;
/// Parts of a packet in which the window is kept: an action of 5 % must not vanish on a window of two packets.
pub const PACKET_PARTS: u64 = 1024;

/// One of the seven actions, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(u8);

impl Action {
    /// The action that changes nothing.
    pub const KEEP: Self = Self(3);

    /// Number 0 to 6, from the strongest decrease to the strongest increase; `None` for another.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < ACTIONS { Some(Self(number)) } else { None }
    }

    /// Every action.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ACTIONS as u8).map(Self)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// By what it multiplies the window.
    pub const fn factor(self) -> Factor {
        Factor(FACTORS[self.0 as usize])
    }

    /// The window after it, as [`Factor::apply`] has it.
    pub fn apply(self, cwnd: u64) -> u64 {
        self.factor().apply(cwnd)
    }
}

/// What a window is multiplied by in a control interval: from a half to two.
///
/// A policy that knows seven actions does one of theirs. The leaf of a tree stands for many states,
/// in which its teacher does now this and now that, and does what comes to the same: the mean of
/// what the teacher does. Rounded to one of the seven, a mean between none and 2.5% would be none,
/// and flows that share a link would keep whatever shares they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u16);

impl Factor {
    /// A half.
    pub const MIN: Self = Self(FACTORS[0]);
    /// Changes nothing.
    pub const ONE: Self = Self(1 << FACTOR_POINT);
    /// Two.
    pub const MAX: Self = Self(FACTORS[ACTIONS - 1]);

    /// Of so many 1/16384; `None` below a half or above two.
    pub const fn new(parts: u16) -> Option<Self> {
        if parts >= Self::MIN.0 && parts <= Self::MAX.0 { Some(Self(parts)) } else { None }
    }

    /// In 1/16384.
    pub const fn parts(self) -> u16 {
        self.0
    }

    /// Whether it makes a window larger.
    pub const fn grows(self) -> bool {
        self.0 > Self::ONE.0
    }

    /// The window after it, of a window in 1/1024 packets below 2^48. Rounded down.
    pub const fn apply(self, cwnd: u64) -> u64 {
        (cwnd * self.0 as u64) >> FACTOR_POINT
    }
}

/// What a policy outside the algorithm does in a state
/// ([`on_decision`](crate::CongestionControl::on_decision)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the window is multiplied by.
    pub factor: Factor,
    /// Whether the policy learnt from states like this one.
    pub known: bool,
}

impl Decision {
    /// Changes nothing.
    pub const KEEP: Self = Self { factor: Factor::ONE, known: true };
}

impl<F: Into<Factor>> From<F> for Decision {
    /// In a state that the policy has learnt from.
    fn from(factor: F) -> Self {
        Self { factor: factor.into(), known: true }
    }
}

impl From<Action> for Factor {
    fn from(action: Action) -> Self {
        action.factor()
    }
}

/// The action that takes a window closest to the optimal one (Muses Eq. 2), both in 1/1024 packets. Of equals
/// the first, which keeps less in flight.
pub fn best_action(cwnd: u64, optimal: u64) -> Action {
    let distance = |action: &Action| action.apply(cwnd).abs_diff(optimal);
    Action::all().min_by_key(distance).unwrap_or(Action::KEEP)
}

/// The optimal window in 1/1024 packets where the link carries this much in a round trip, times α in percent (at most
/// 1000): Eq. 1, for which the paper's α is 120.
pub fn optimal_window(carried: Bytes, packet: Bytes, alpha_percent: u32) -> u64 {
    let parts = carried.get().min(1 << 40) * PACKET_PARTS;
    (parts / packet.get().max(1)) * u64::from(alpha_percent.min(1000)) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    /// expected.md U7.
    #[test]
    fn the_window_of_a_constant_link() {
        use trimtab_units::{Duration, Rate};
        for (mbps, owd_ms, packets) in [(12.0, 20, 48.0), (36.0, 20, 144.0), (1.2, 150, 36.0)] {
            let carried = Rate::from_mbps(mbps) * Duration::from_millis(2 * owd_ms);
            let window = optimal_window(carried, PACKET, 120) as f64 / PACKET_PARTS as f64;
            assert!((window - packets).abs() < 0.01, "{mbps} Mbit/s: {window}");
        }
    }

    /// expected.md U8.
    #[test]
    fn the_best_action() {
        let best =
            |cwnd, optimal| best_action(cwnd * PACKET_PARTS, optimal * PACKET_PARTS).number();
        assert_eq!(best(40, 48), 5, "40 * 1.2");
        assert_eq!(best(48, 48), 3);
        assert_eq!(best(100, 48), 0, "50 is nearest");
        assert_eq!(best(4, 0), 0);
        assert_eq!(best(10, 15), 5, "12 and 20 are 3 and 5 away");
    }

    #[test]
    fn of_equals_the_first() {
        // 40 / 2 and 40 / 1.2 are 20 and 33.33; in whole parts no middle is exact but this one.
        let (low, high) = (Action(3).apply(2000), Action(6).apply(2000));
        assert_eq!(best_action(2000, u64::midpoint(low, high)).number(), 6 - 1, "2400 is nearer");
        assert_eq!(best_action(0, 5), Action(0), "nothing moves a window of nothing");
    }

    #[test]
    fn small_windows_still_move() {
        let two = 2 * PACKET_PARTS;
        let windows: [u64; ACTIONS] = core::array::from_fn(|i| Action(i as u8).apply(two));
        assert_eq!(windows, [1024, 1706, 1950, 2048, 2150, 2457, 4096]);
        assert_eq!(Action::new(7), None);
    }
}
