//! What connections observed of their destinations, for later ones: how much the path carries
//! (RFC 9959 §3.1), and which algorithm suits it.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::LruCache;
use trimtab_cc::Spec;
use trimtab_cc::resume::{CarefulResume, Saved};
use trimtab_steer::SUITED_LIFETIME;
use trimtab_units::{Bytes, Duration, Time};

use crate::paths::lock;

/// Destinations that a memory holds by default: about 3 MB.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Remembers, for each destination, the capacity and the round-trip time that the last connection
/// to it observed. The next one starts near that rate by Careful Resume (RFC 9959), with its Safe
/// Retreat where the path has changed. Of a scheme that chooses among algorithms, such as `floo`, it
/// also remembers which one suits the destination by what the last connection saw. The next
/// connections of the scheme begin with it. Cheap to clone: all clones share what is remembered.
///
/// The rules of the RFC for hosts hold for capacities. One connection at a time uses what was saved for a
/// destination, and what it refutes is deleted. Which algorithm suits is no capacity: all
/// connections may know it, for an hour. A destination is an IPv4 address, or the first 64
/// bits of an IPv6 address.
///
/// [`Config::with_memory`](crate::Config::with_memory) takes it, and
/// [`Config::connection_to`](crate::Config::connection_to) asks it for the peer.
#[derive(Clone, Debug)]
pub struct Memory {
    sets: Arc<Mutex<LruCache<IpAddr, Set>>>,
    suited: Arc<Mutex<LruCache<IpAddr, Suited>>>,
}

/// Which algorithm suits a destination.
#[derive(Clone, Debug)]
struct Suited {
    /// The scheme whose policy found it.
    scheme: String,
    spec: Spec,
    expires: Instant,
}

/// What is known of a destination.
#[derive(Clone, Copy, Debug)]
struct Set {
    window: Bytes,
    rtt: Duration,
    expires: Instant,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// For 10,000 destinations.
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    /// For so many destinations. A new one replaces the one that no connection has had for longest.
    pub fn with_capacity(destinations: NonZeroUsize) -> Self {
        Self {
            sets: Arc::new(Mutex::new(LruCache::new(destinations))),
            suited: Arc::new(Mutex::new(LruCache::new(destinations))),
        }
    }

    /// Of how many destinations the capacity is known, less those whose set a connection uses at
    /// present.
    pub fn len(&self) -> usize {
        lock(&self.sets).len()
    }

    /// Whether no destination's capacity is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all destinations, e.g. when the host's own network has changed (RFC 9959 §4.1).
    /// Connections that live leave what they observed when they end: close them first.
    pub fn clear(&self) {
        lock(&self.sets).clear();
        lock(&self.suited).clear();
    }
}

/// A connection's place in the memory: its destination, and what it got from there.
#[derive(Debug)]
pub(crate) struct Place {
    memory: Memory,
    destination: IpAddr,
    /// What the connection resumes, to give back if it comes to nothing.
    taken: Option<Set>,
}

impl Place {
    /// Takes what is known of a destination, so that no other connection uses it (RFC 9959 §3.2).
    pub(crate) fn take(memory: &Memory, address: IpAddr, now: Instant) -> Self {
        let destination = destination(address);
        let taken = lock(&memory.sets).pop(&destination).filter(|set| set.expires > now);
        Self { memory: memory.clone(), destination, taken }
    }

    /// What it took, on a clock that begins now.
    pub(crate) fn saved(&self, now: Instant) -> Option<Saved> {
        let Set { window, rtt, expires } = self.taken?;
        let left = expires.saturating_duration_since(now).as_nanos();
        let expires = Time::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
        Some(Saved { window, rtt, expires })
    }

    /// What suits the destination by the scheme of this text.
    pub(crate) fn suited(&self, scheme: &str, now: Instant) -> Option<Spec> {
        let mut known = lock(&self.memory.suited);
        let suited = known.get(&self.destination)?;
        (suited.scheme == scheme && suited.expires > now).then_some(suited.spec)
    }

    /// The connection of this scheme found at this time that the algorithm suits the destination.
    pub(crate) fn suits(&self, scheme: &str, spec: Spec, now: Instant) {
        let lifetime = std::time::Duration::from_nanos(SUITED_LIFETIME.as_nanos());
        let suited = Suited { scheme: scheme.to_owned(), spec, expires: now + lifetime };
        lock(&self.memory.suited).put(self.destination, suited);
    }

    /// The destination suffered from what seemed to suit it.
    pub(crate) fn suits_nothing(&self) {
        lock(&self.memory.suited).pop(&self.destination);
    }

    /// The connection is over, whose clock began at `epoch` and stands at `now`: what it observed
    /// takes the place of what it took. Without that, what it took goes back, if it still holds.
    pub(crate) fn leave(&self, state: &CarefulResume, epoch: Instant, now: Time) {
        let observed = state.observed(now).map(|Saved { window, rtt, expires }| Set {
            window,
            rtt,
            expires: epoch + std::time::Duration::from_nanos(expires.as_nanos()),
        });
        if let Some(set) = observed.or(self.taken.filter(|_| !state.is_refuted())) {
            lock(&self.memory.sets).put(self.destination, set);
        }
    }
}

/// Hosts change the lower half of their IPv6 addresses (RFC 8981).
fn destination(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_suits_a_destination_holds_for_an_hour_and_until_it_harms() {
        let (memory, now) = (Memory::new(), Instant::now());
        let place = |last: u8| Place::take(&memory, IpAddr::from([192, 0, 2, last]), now);
        let copa = Spec::new("copa").unwrap();
        place(1).suits("floo", copa, now);
        let knows = |last, scheme, at| place(last).suited(scheme, at).is_some();
        let hour = std::time::Duration::from_secs(3600);
        let before = now + hour - std::time::Duration::from_secs(1);
        assert!(knows(1, "floo", before) && !knows(1, "floo", now + hour));
        assert!(!knows(1, "floo:part", now) && !knows(2, "floo", now));
        place(2).suits_nothing();
        assert!(knows(1, "floo", now), "another destination suffered");
        place(1).suits_nothing();
        assert!(!knows(1, "floo", now));
    }
}
