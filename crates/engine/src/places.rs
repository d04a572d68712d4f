//! Places for connections: so many in all, and so many of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::allowance::network;

/// How many connections each address has.
#[derive(Clone)]
pub(crate) struct Places {
    of_each: usize,
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place that is taken until this is dropped.
pub(crate) struct Place {
    places: Places,
    of: String,
}

impl Places {
    /// So many for each address.
    pub(crate) fn new(of_each: u32) -> Self {
        Self { of_each: of_each as usize, taken: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more for an address; none where it has all of its own.
    pub(crate) fn take(&self, from: IpAddr) -> Option<Place> {
        let of = network(from);
        let mut taken = self.taken();
        let count = taken.entry(of.clone()).or_default();
        if *count >= self.of_each {
            return None;
        }
        *count += 1;
        drop(taken);
        Some(Place { places: self.clone(), of })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(count) = taken.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_places_and_gets_them_back() {
        let places = Places::new(2);
        let take = |from: &str| places.take(from.parse().unwrap());
        let (one, _two) = (take("192.0.2.1").unwrap(), take("::ffff:192.0.2.1").unwrap());
        assert!(take("192.0.2.1").is_none());
        let other = take("192.0.2.2").unwrap();
        drop(one);
        let three = take("192.0.2.1");
        assert!(three.is_some() && take("192.0.2.1").is_none());
        drop((three, other));
        assert_eq!(places.taken().len(), 1, "who has none is not remembered");
    }
}
