//! One connection: who it is, what was measured on it, and its knobs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use trimtab_cc::Phase;
use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Counts;
use trimtab_datapath::{Alarm, FlowId, Identity, Switching, Totals};
use trimtab_steer::KnobValues;
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::knobs;
use crate::layout::{self, Slot};
use crate::mapping::Mapping;

/// How often a reader tries again when the kernel writes meanwhile. The kernel writes for less than a microsecond.
const TRIES: usize = 1000;

const AF_INET6: u32 = 10;

/// What was measured on a connection until the kernel last published it: at most half a round trip
/// or half a millisecond ago, and when nothing was left in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Sums since the connection began.
    pub totals: Totals,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Lowest round-trip time since the connection began; `None` before any sample.
    pub min_rtt: Option<Duration>,
    /// The congestion window.
    pub window: Bytes,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Bytes that wait in the socket to be sent for the first time. What its buffer had no room for
    /// is with the application.
    pub unsent: Bytes,
    /// The pacing rate; `None` before the first round-trip time.
    pub pacing: Option<Rate>,
    /// Payload of a full-size packet.
    pub mss: Bytes,
    /// The phase of the algorithm.
    pub phase: Phase,
    /// Whether Copa is in TCP-competitive mode.
    pub competitive: bool,
    /// The δ in force, in 1/packets: what is set, or less in competitive mode. 0 of an algorithm without.
    pub delta: f64,
    /// Acknowledgements seen.
    pub acks: u64,
    /// Where the states of Muses lay since the connection began, for the choice of its tree; `None`
    /// while another algorithm runs.
    pub states: Option<Counts>,
    /// Why Muses is not trusted any longer on this connection; `None` while it is, or where it never ran.
    pub alarm: Option<Alarm>,
    /// Of the interval that the last [`Flow::start_interval`] ended.
    pub extremes: Extremes,
}

/// Extremes of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extremes {
    /// Lowest and highest round-trip sample; `None` without any.
    pub rtt: Option<(Duration, Duration)>,
    /// Highest delivery rate that the application did not limit; `None` without any.
    pub delivery_rate: Option<Rate>,
}

/// A connection's slot in the shared memory. Cheap to clone; outlives the connection, and then answers [`None`].
#[derive(Clone, Debug)]
pub struct Flow {
    slots: Arc<Mapping<Slot>>,
    index: u32,
    identity: Identity,
}

impl Flow {
    /// The connection in this slot, if there is one.
    pub(crate) fn at(slots: &Arc<Mapping<Slot>>, index: u32) -> Option<Self> {
        let slot = slots.get(index as usize)?;
        if slot.id.load(Relaxed) == 0 {
            return None;
        }
        let identity = read(slot, identify)??;
        Some(Self { slots: Arc::clone(slots), index, identity })
    }

    fn slot(&self) -> &Slot {
        // Checked by `at`, which alone makes flows.
        &self.slots[self.index as usize]
    }

    /// Who it is. The cookie is that of when the flow was looked up; [`Flow::cookie`] looks again.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The algorithm that it runs now; of a connection that has ended, any.
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::of_slot(load(&self.slot().cca)).unwrap_or(Algorithm::Copa)
    }

    /// Number of its slot, as events have it.
    pub fn slot_number(&self) -> u32 {
        self.index
    }

    /// Number of the connection.
    pub fn id(&self) -> FlowId {
        self.identity.id
    }

    /// The socket's cookie as of now; `None` as long as nobody asked the kernel for it.
    pub fn cookie(&self) -> Option<u64> {
        let cookie = self.slot().cookie.load(Relaxed);
        (cookie != 0 && self.is_open()).then_some(cookie)
    }

    /// Whether the connection is still open.
    pub fn is_open(&self) -> bool {
        self.slot().id.load(Acquire) == self.identity.id.0
    }

    /// Whether nothing is sent on it any more, though its socket is there: this side has closed,
    /// and all of its data was acknowledged. The algorithm tells with the acknowledgement; of a
    /// reset, and of a FIN that nobody answers, [`Datapath::reap`](crate::Datapath::reap) does.
    pub fn is_closing(&self) -> bool {
        load(&self.slot().flags) & layout::FLAG_CLOSING != 0 && self.is_open()
    }

    /// Acknowledgements seen until now, at a fraction of what a sample costs; `None` when the connection has ended.
    pub fn acks(&self) -> Option<u64> {
        let acks = self.slot().acks.load(Acquire);
        self.is_open().then_some(acks)
    }

    /// Asks for an event, once, when the kernel publishes the next measurements; `false` when the
    /// connection has ended. What is published at this very moment may send none, so look at
    /// [`acks`](Self::acks) again afterwards.
    pub fn watch(&self) -> bool {
        self.slot().watch.store(1, SeqCst);
        self.is_open()
    }

    /// What was measured until now; `None` when the connection has ended.
    pub fn sample(&self) -> Option<Sample> {
        let id = self.identity.id.0;
        read(self.slot(), |slot| (slot.id.load(Relaxed) == id).then(|| measure(slot)))?
    }

    /// Starts a new interval of the extremes, and gives what was measured until now with the extremes of the interval
    /// that ends. No sample is lost between the two. One reader per connection may do this.
    pub fn start_interval(&self) -> Option<Sample> {
        if !self.is_open() {
            return None;
        }
        self.slot().epoch.fetch_add(1, Release);
        self.sample()
    }

    /// Sets a knob of the algorithm that runs, brought into its range first; gives the value in force, which fixed
    /// point rounds (by less than a thousandth). It acts within half a round trip.
    ///
    /// # Errors
    /// The algorithm has no such knob, or the connection has ended.
    pub fn set(&self, knob: &str, value: f64) -> Result<f64, Error> {
        self.set_of(self.algorithm(), knob, value)
    }

    /// The kernel takes orders only for whom they are meant: should the connection end right here, the next one in the
    /// slot does not get them.
    fn tell_knobs(&self) {
        let slot = self.slot();
        slot.knobs_for.store(self.identity.id.0, Relaxed);
        slot.version.fetch_add(1, Release);
    }

    /// The value of a knob of the algorithm that runs, as last set.
    ///
    /// # Errors
    /// The algorithm has no such knob, or the connection has ended.
    pub fn knob(&self, knob: &str) -> Result<f64, Error> {
        let algorithm = self.algorithm();
        let place = knobs::find(algorithm, knob)?;
        let word = algorithm.knobs_of(self.slot())[place.index].load(Relaxed);
        if self.is_open() { Ok(place.decode(word)) } else { Err(Error::Closed) }
    }

    /// The values of all knobs of the algorithm that runs, those left to the system aside.
    pub fn knobs(&self) -> KnobValues {
        let algorithm = self.algorithm();
        let words = algorithm.knobs_of(self.slot());
        let set = knobs::places(algorithm)
            .map(|place| (place, words[place.index].load(Relaxed)))
            .filter(|&(place, word)| !place.is_left(word));
        set.map(|(place, word)| (place.knob.name, place.decode(word))).collect()
    }

    /// Sets a knob of an algorithm that may run later, as [`set`](Self::set) does of the one that
    /// runs: of what is to take over when the guard of Muses speaks.
    ///
    /// # Errors
    /// The algorithm has no such knob, or the connection has ended.
    pub fn set_of(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error> {
        let place = knobs::find(algorithm, knob)?;
        if !self.is_open() {
            return Err(Error::Closed);
        }
        let word = place.encode(value);
        algorithm.knobs_of(self.slot())[place.index].store(word, Relaxed);
        self.tell_knobs();
        Ok(place.decode(word))
    }

    /// Asks for another algorithm: with these knobs, and the others at their defaults; or, without,
    /// with all of them as they were left (at first, the defaults of new connections). It takes
    /// over when the one that runs has converged and no loss is being repaired (`Switch::Full`), or
    /// as soon as none is (`Switch::Part`): see [`Flow::switching`]. Another request takes the
    /// place of one that waits; one for the algorithm that runs cancels it, and sets the knobs.
    ///
    /// # Errors
    /// The algorithm has no such knob, and nothing is changed; or the connection has ended.
    pub fn switch(
        &self,
        to: Algorithm,
        settings: Option<&[(&str, f64)]>,
        how: Switch,
    ) -> Result<(), Error> {
        let mut words = knobs::defaults(to);
        for (knob, value) in settings.unwrap_or_default() {
            let place = knobs::find(to, knob)?;
            words[place.index] = place.encode(*value);
        }
        if !self.is_open() {
            return Err(Error::Closed);
        }
        let slot = self.slot();
        for (place, word) in knobs::places(to).map(|p| (p, words[p.index])) {
            // An initial window that is left to the system stays what the system had.
            if settings.is_some() && !place.is_left(word) {
                to.knobs_of(slot)[place.index].store(word, Relaxed);
            }
        }
        self.tell_knobs();
        let how = match how {
            Switch::Full => layout::HOW_FULL,
            Switch::Part => layout::HOW_PART,
        };
        let number_at = layout::NEXT_CCA_BITS + layout::NEXT_HOW_BITS;
        let number = (load(&slot.next) >> number_at).wrapping_add(1);
        let order = number << number_at | how << layout::NEXT_CCA_BITS | to.layout().number;
        slot.next.store(order, Release);
        Ok(())
    }

    /// How it stands with changes of the algorithm; `None` when the connection has ended.
    pub fn switching(&self) -> Option<Switching> {
        let id = self.identity.id.0;
        let read = read(self.slot(), |slot| {
            let (next, done) = (load(&slot.next), load(&slot.next_done));
            let wanted = next & ((1 << layout::NEXT_CCA_BITS) - 1);
            (slot.id.load(Relaxed) == id).then(|| Switching {
                pending: (next != done)
                    .then(|| Algorithm::of_slot(wanted).map(Into::into))
                    .flatten(),
                switches: load(&slot.switches),
                took: Duration::from_nanos(load(&slot.switch_ns).into()),
                refused: Some(load(&slot.refused) as i32).filter(|errno| *errno != 0),
            })
        });
        read?
    }
}

/// Reads a slot while the kernel does not write it; `None` when it never stops, which no kernel does.
fn read<T>(slot: &Slot, what: impl Fn(&Slot) -> T) -> Option<T> {
    for _ in 0..TRIES {
        let before = slot.seq.load(Acquire);
        if before.is_multiple_of(2) {
            let result = what(slot);
            // The reads above must not move below the second look at the number.
            fence(Acquire);
            if slot.seq.load(Relaxed) == before {
                return Some(result);
            }
        }
        std::hint::spin_loop();
    }
    None
}

fn load(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

fn micros(word: &AtomicU32) -> Duration {
    Duration::from_micros(load(word).into())
}

/// An address as the kernel's side tells it: words in network order, the port in the host's.
pub(crate) fn address(family: u32, words: &[u32; 4], port: u32) -> SocketAddr {
    let mut bytes = [0; 16];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes()); // they are in network order in memory
    }
    let ip = if family == AF_INET6 {
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    } else {
        IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
    };
    SocketAddr::new(ip, port as u16)
}

fn identify(slot: &Slot) -> Option<Identity> {
    let id = slot.id.load(Relaxed);
    let algorithm = Algorithm::of_slot(load(&slot.cca))?;
    let positive = |value: u64| (value != 0).then_some(value);
    let at = |words: &[AtomicU32; 4], port: &AtomicU32| {
        address(load(&slot.family), &words.each_ref().map(load), load(port))
    };
    positive(id).map(|id| Identity {
        id: FlowId(id),
        algorithm: algorithm.name(),
        cookie: positive(slot.cookie.load(Relaxed)),
        netns_cookie: slot.netns_cookie.load(Relaxed),
        cgroup: positive(slot.cgroup_id.load(Relaxed)),
        local: at(&slot.local_addr, &slot.local_port),
        remote: at(&slot.remote_addr, &slot.remote_port),
        device: (load(&slot.ifindex) != 0).then(|| load(&slot.ifindex)),
        opened: Time::from_micros(slot.opened_us.load(Relaxed)),
        adopted: load(&slot.flags) & layout::FLAG_ADOPTED != 0,
        towards: load(&slot.flags) & layout::FLAG_TOWARDS != 0,
    })
}

fn measure(slot: &Slot) -> Sample {
    let bytes = |field: &std::sync::atomic::AtomicU64| Bytes::new(field.load(Relaxed));
    let min_rtt = micros(&slot.min_rtt_us);
    let pacing = slot.pacing_bytes_per_s.load(Relaxed);
    let flags = load(&slot.flags);
    Sample {
        totals: Totals {
            sent: bytes(&slot.sent_bytes),
            acked: bytes(&slot.acked_bytes),
            lost: bytes(&slot.lost_bytes),
            busy: Duration::from_micros(slot.busy_us.load(Relaxed)),
            rtt_sum: Duration::from_micros(slot.rtt_sum_us.load(Relaxed)),
            rtt_count: slot.rtt_count.load(Relaxed),
            last: Time::from_micros(slot.now_us.load(Relaxed)),
        },
        srtt: micros(&slot.srtt_us),
        min_rtt: (!min_rtt.is_zero()).then_some(min_rtt),
        window: bytes(&slot.window_bytes),
        inflight: bytes(&slot.inflight_bytes),
        unsent: Bytes::new(load(&slot.unsent_bytes).into()),
        pacing: (pacing != u64::MAX).then(|| Rate::from_bytes_per_sec(pacing)),
        mss: Bytes::new(load(&slot.mss_bytes).into()),
        phase: match load(&slot.phase) {
            layout::PHASE_SLOW_START => Phase::SlowStart,
            layout::PHASE_DRAIN => Phase::Drain,
            layout::PHASE_RECOVERY => Phase::Recovery,
            layout::PHASE_PROBE_RTT => Phase::ProbeRtt,
            _ => Phase::Steady,
        },
        competitive: flags & layout::FLAG_COMPETITIVE != 0,
        delta: match load(&slot.inverse_delta_q16) {
            0 => 0.0,
            inverse => f64::from(layout::SCALE_Q16) / f64::from(inverse),
        },
        acks: slot.acks.load(Relaxed),
        states: (Algorithm::of_slot(load(&slot.cca)) == Some(Algorithm::Muses))
            .then(|| states(slot)),
        alarm: match flags >> layout::FLAG_ALARM_SHIFT & ((1 << layout::FLAG_ALARM_BITS) - 1) {
            layout::ALARM_UNKNOWN => Some(Alarm::Unknown),
            layout::ALARM_RUN_AWAY => Some(Alarm::RunAway),
            layout::ALARM_NO_MODEL => Some(Alarm::NoModel),
            layout::ALARM_STARVED => Some(Alarm::Starved),
            _ => None,
        },
        extremes: extremes(slot),
    }
}

fn states(slot: &Slot) -> Counts {
    let cell = |component: usize, bin: usize| load(&slot.cells[component * layout::BINS + bin]);
    Counts::of(std::array::from_fn(|component| std::array::from_fn(|bin| cell(component, bin))))
}

/// Those of the interval that ended when the epoch last moved.
fn extremes(slot: &Slot) -> Extremes {
    let (least, most, packets, time) =
        match load(&slot.epoch).wrapping_sub(load(&slot.interval_epoch)) {
            // The kernel has seen an acknowledgement since, and set them aside.
            0 => (
                &slot.last_rtt_min_us,
                &slot.last_rtt_max_us,
                &slot.last_rate_packets,
                &slot.last_rate_us,
            ),
            // None came since.
            1 => (&slot.rtt_min_us, &slot.rtt_max_us, &slot.rate_packets, &slot.rate_us),
            // None came in the whole interval.
            _ => return Extremes::default(),
        };
    let (least, most, time) = (micros(least), micros(most), micros(time));
    let delivered = Bytes::new(u64::from(load(packets)) * u64::from(load(&slot.mss_bytes)));
    Extremes {
        rtt: (!least.is_zero()).then_some((least, most)),
        delivery_rate: (!time.is_zero()).then(|| delivered / time),
    }
}

#[cfg(test)]
mod tests;
