//! What a path offers to its stack, kept where it is read without the path's lock: a stack asks for
//! window and rate several times per packet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trimtab_units::{Bytes, Rate};

use crate::path::Path;

/// What a path offers at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What may be in flight ([`Path::window`]).
    pub window: Bytes,
    /// The algorithm's pacing rate; `None` leaves it to the stack.
    pub pacing_rate: Option<Rate>,
    /// The most that leaves at once; `None` without a pacing rate.
    pub send_quantum: Option<Bytes>,
    /// The window below which the algorithm is in slow start, where it has one.
    pub ssthresh: Option<Bytes>,
    /// The highest delivery rate of the last 10 s.
    pub bandwidth: Option<Rate>,
}

impl Offer {
    fn of(path: &mut Path) -> Self {
        // First: it tells the algorithm of the acknowledgement that waits.
        let window = path.window();
        Self {
            window,
            pacing_rate: path.pacing_rate(),
            send_quantum: path.send_quantum(),
            ssthresh: path.ssthresh(),
            bandwidth: path.bandwidth(),
        }
    }
}

/// `None` as a number.
const NONE: u64 = u64::MAX;

/// The offer of the last look, until the path changes. It is written under the path's lock, and by
/// controllers only: a stack calls those of a path one at a time. Handles, from other threads, only
/// have it forgotten. So a reader that finds it current gets one offer, and not parts of two.
#[derive(Debug, Default)]
pub(crate) struct LastOffer {
    is_current: AtomicBool,
    window: AtomicU64,
    pacing_rate: AtomicU64,
    send_quantum: AtomicU64,
    ssthresh: AtomicU64,
    bandwidth: AtomicU64,
}

impl LastOffer {
    /// The path may change: its lock is taken.
    pub(crate) fn forget(&self) {
        self.is_current.store(false, Ordering::Release);
    }

    /// What the path offered when it was last looked at; `None` where it may have changed.
    pub(crate) fn get(&self) -> Option<Offer> {
        if !self.is_current.load(Ordering::Acquire) {
            return None;
        }
        let read = |of: &AtomicU64| Some(of.load(Ordering::Relaxed)).filter(|&n| n != NONE);
        Some(Offer {
            window: Bytes::new(self.window.load(Ordering::Relaxed)),
            pacing_rate: read(&self.pacing_rate).map(Rate::from_bytes_per_sec),
            send_quantum: read(&self.send_quantum).map(Bytes::new),
            ssthresh: read(&self.ssthresh).map(Bytes::new),
            bandwidth: read(&self.bandwidth).map(Rate::from_bytes_per_sec),
        })
    }

    /// Looks at the path, whose lock the caller holds.
    pub(crate) fn look(&self, path: &mut Path) -> Offer {
        let offer = Offer::of(path);
        let write = |to: &AtomicU64, n: Option<u64>| to.store(n.unwrap_or(NONE), Ordering::Relaxed);
        self.window.store(offer.window.get(), Ordering::Relaxed);
        write(&self.pacing_rate, offer.pacing_rate.map(Rate::bytes_per_sec));
        write(&self.send_quantum, offer.send_quantum.map(Bytes::get));
        write(&self.ssthresh, offer.ssthresh.map(Bytes::get));
        write(&self.bandwidth, offer.bandwidth.map(Rate::bytes_per_sec));
        self.is_current.store(true, Ordering::Release);
        offer
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::SharedPath;
    use crate::tests::Config;
    use crate::units::{self, Bytes};

    /// What is kept is what the path offers, after callbacks and after changes by a handle.
    #[test]
    fn an_offer_is_never_older_than_the_last_change() {
        let (paths, handle) = Config::new("copa:delta=0.5").unwrap().connection();
        let epoch = Instant::now();
        let path = paths.build(epoch, 1200);
        let at = |ms: u64| epoch + Duration::from_millis(ms);
        let look = |path: &SharedPath| {
            let (offer, again) = (path.offer(), path.offer());
            assert_eq!(offer, again);
            let mut inside = path.lock();
            let direct = (inside.window(), inside.pacing_rate(), inside.send_quantum());
            assert_eq!((offer.window, offer.pacing_rate, offer.send_quantum), direct);
            assert_eq!((offer.ssthresh, offer.bandwidth), (inside.ssthresh(), inside.bandwidth()));
            offer
        };
        let first = look(&path);
        (0..10).for_each(|number| path.on_sent(at(0), Bytes::new(1200), number));
        assert_eq!(look(&path).window, first.window);
        let rtt = units::Duration::from_millis(40);
        (0..10).for_each(|number| path.lock().on_acked(at(40), epoch, number, rtt));
        path.lock().on_end_acks(at(40), false);
        let grown = look(&path);
        assert!(grown.window > first.window && grown.pacing_rate.is_some(), "{grown:?}");
        // Another thread changes the scheme, and no callback has told the controller. The switch
        // takes place at the next packet.
        let other = handle.clone();
        std::thread::spawn(move || other.set_scheme("cubic")).join().unwrap().unwrap();
        path.on_sent(at(41), Bytes::new(1200), 10);
        path.on_sent(at(90), Bytes::new(1200), 11);
        path.lock().on_packet_lost(at(91), 10);
        path.lock().on_losses(at(91), false);
        let reduced = look(&path);
        assert!(reduced.window < grown.window, "{reduced:?}");
    }
}
