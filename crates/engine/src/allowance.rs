//! How often somebody may do something: so often in a second on average, and more at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Those that are remembered at most.
const KEYS_MAX: usize = 1 << 16;
/// Between two times that those are looked for which need not be.
const CLEAN_EVERY_MS: i64 = 1000;

/// What is left to each, as of when.
struct State<K> {
    left: HashMap<K, (i64, f64)>,
    cleaned_ms: i64,
}

/// An allowance for each key, which fills up again.
pub(crate) struct Allowance<K> {
    per_s: f64,
    burst: f64,
    state: Mutex<State<K>>,
}

impl<K: Eq + Hash> Allowance<K> {
    /// So many a second on average, and `burst` at once after a pause.
    pub(crate) fn new(per_s: f64, burst: f64) -> Self {
        let state = State { left: HashMap::new(), cleaned_ms: 0 };
        Self { per_s, burst, state: Mutex::new(state) }
    }

    /// How many of so many it may now. Where too many others asked lately, a new one may none.
    pub(crate) fn take(&self, key: K, wanted: usize, now_ms: i64) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left.len() >= KEYS_MAX && !state.left.contains_key(&key) {
            self.clean(&mut state, now_ms);
            if state.left.len() >= KEYS_MAX {
                return 0;
            }
        }
        let (at_ms, left) = state.left.entry(key).or_insert((now_ms, self.burst));
        *left = self.refilled((*at_ms, *left), now_ms);
        *at_ms = now_ms;
        let may = wanted.min(*left as usize);
        *left -= may as f64;
        may
    }

    /// Whether it may once more.
    pub(crate) fn may(&self, key: K, now_ms: i64) -> bool {
        self.take(key, 1, now_ms) == 1
    }

    fn refilled(&self, (at_ms, left): (i64, f64), now_ms: i64) -> f64 {
        let gained = (now_ms - at_ms).max(0) as f64 / 1000.0 * self.per_s;
        (left + gained).min(self.burst)
    }

    /// One that has all of its allowance again is as if it had never asked.
    fn clean(&self, state: &mut State<K>, now_ms: i64) {
        if (now_ms - state.cleaned_ms).abs() >= CLEAN_EVERY_MS {
            state.cleaned_ms = now_ms;
            state.left.retain(|_, known| self.refilled(*known, now_ms) < self.burst);
        }
    }
}

/// An address; of IPv6 the network of 64 bits, which one machine has to itself.
pub(crate) fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_burst_and_then_its_rate() {
        let allowance = Allowance::new(20.0, 200.0);
        assert_eq!(allowance.take("edge-1", 500, 1000), 200);
        assert!(!allowance.may("edge-1", 1049) && allowance.may("edge-2", 1049));
        assert!(allowance.may("edge-1", 1050) && !allowance.may("edge-1", 1050));
        assert_eq!(allowance.take("edge-1", 500, 2050), 20);
        assert_eq!(allowance.take("edge-1", 500, 1000), 0, "a clock that goes back gives nothing");
        assert_eq!(allowance.take("edge-1", 500, 100_000), 200);
    }

    #[test]
    fn many_that_ask_fill_no_memory_and_make_room_when_they_stop() {
        let allowance = Allowance::new(1.0, 10.0);
        for key in 0..KEYS_MAX {
            assert!(allowance.may(key, 5000));
        }
        assert!(!allowance.may(usize::MAX, 5000), "there is no room");
        assert!(allowance.may(7, 5000), "who is known has its own");
        assert!(!allowance.may(usize::MAX, 5999));
        assert!(allowance.may(usize::MAX, 7000));
        assert!(allowance.state.lock().unwrap().left.len() < 3);
    }

    #[test]
    fn an_address_of_ipv6_is_its_network() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!((of("2001:db8::1"), of("2001:db8::2:1")), (of("2001:db8::"), of("2001:db8::")));
        assert_eq!(of("2001:db8:0:1::1"), "2001:db8:0:1::/64");
    }
}
