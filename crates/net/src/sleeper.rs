//! A link that is a program: it sleeps between the packets, and its clock has whole milliseconds.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_units::{Duration, Time};

use crate::delay::JitterConfig;
use crate::seed::{Purpose, generator};

/// This share of the sleeps is later than `rarely`.
const RARE: f64 = 0.01;
/// And none is later than this: the latest that was seen in 1900 seconds (README.md of the ground truth).
const LATEST: Duration = Duration::from_millis(38);

/// When the program looks what is due, and what it lets go then ([`JitterConfig::Polled`]).
#[derive(Clone, Debug)]
pub(crate) struct Sleeper {
    late: Duration,
    rarely: Duration,
    each: Duration,
    random: Pcg64Mcg,
    /// What is due by then may leave: the millisecond in which it last looked.
    looked_at: Time,
    /// When it looks next if nothing comes; [`Time::MAX`] while nothing waits.
    wakes_at: Time,
    /// When it has written its last packet.
    free_at: Time,
}

impl Sleeper {
    /// `None` for a link that is no program.
    pub(crate) fn new(jitter: JitterConfig, seed: u64) -> Option<Self> {
        let JitterConfig::Polled { late, rarely, each } = jitter else { return None };
        let random = generator(seed, Purpose::Jitter);
        let (looked_at, wakes_at, free_at) = (Time::ZERO, Time::MAX, Time::ZERO);
        Some(Self { late, rarely, each, random, looked_at, wakes_at, free_at })
    }

    /// Draws from another seed from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.random = generator(seed, Purpose::Jitter);
    }

    /// When the next packet leaves, which is due then, if nothing comes before.
    pub(crate) fn next(&self, now: Time, due: Time) -> Time {
        if due <= self.looked_at { self.free_at.max(now) } else { self.wakes_at }
    }

    /// Whether it has slept enough.
    pub(crate) fn is_awake(&self, now: Time) -> bool {
        self.wakes_at <= now
    }

    /// It looks, lets go what is due by its clock, and sleeps until `next`, by which the next
    /// packet is due: for as many whole milliseconds as its clock says, and a little longer.
    pub(crate) fn look(&mut self, now: Time, next: Time) {
        self.looked_at = whole_ms(now);
        self.wakes_at = Time::MAX;
        if next < Time::MAX {
            let late = self.draw();
            self.wakes_at = now + next.since(self.looked_at) + late;
        }
    }

    /// How much too long a sleep is.
    fn draw(&mut self) -> Duration {
        let chance: f64 = self.random.random();
        if chance < RARE {
            return self.rarely.mul_f64((RARE / chance).sqrt()).min(LATEST);
        }
        self.late.mul_f64(0.5 + (chance - RARE) / (1.0 - RARE))
    }

    /// A packet was written.
    pub(crate) fn on_written(&mut self, at: Time) {
        self.free_at = at + self.each.mul_f64(0.5 + self.random.random::<f64>());
    }
}

/// The start of the millisecond, which is what the program's clock reads.
pub(crate) fn whole_ms(time: Time) -> Time {
    Time::from_millis(time.as_millis())
}

#[cfg(test)]
mod tests {
    use crate::{Capacity, Event, Link, LinkConfig, Packet};
    use trimtab_units::{Bytes, Rate};

    use super::*;

    const LATE: Duration = Duration::from_micros(80);
    const EACH: Duration = Duration::from_micros(10);

    /// Packets that enter at these times, in microseconds, a delay of 10 ms; when they come out.
    fn through(times: &[u64]) -> Vec<u64> {
        let config = LinkConfig::new(Capacity::Constant(Rate::MAX))
            .delay(Duration::from_millis(10))
            .jitter(JitterConfig::Polled { late: LATE, rarely: LATE, each: EACH });
        let mut link = Link::new(&config, 1);
        let mut out = Vec::new();
        let mut sends = times.iter().map(|us| Time::from_micros(*us)).peekable();
        loop {
            let event = link.next_event().unwrap_or(Time::MAX);
            let send = sends.peek().copied().unwrap_or(Time::MAX);
            let now = event.min(send);
            if now == Time::MAX {
                return out;
            }
            while let Some(event) = link.poll(now) {
                let Event::Delivered(delivery) = event else { panic!("nothing is dropped") };
                assert_eq!(delivery.at, now);
                out.push(delivery.at.as_nanos() / 1000);
            }
            if send <= event {
                sends.next();
                link.send(now, Packet { size: Bytes::new(1500), payload: () }).unwrap();
            }
        }
    }

    /// Alone, it keeps its place within the millisecond, and the sleep is a little too long.
    #[test]
    fn a_packet_waits_for_whole_milliseconds() {
        let out = through(&[5_300]);
        assert!((15_340..=15_420).contains(&out[0]), "{out:?}");
    }

    /// What comes wakes it, and what is due leaves then: the first is due at 15 ms, whatever its own place was.
    #[test]
    fn a_packet_that_comes_takes_another_along() {
        let out = through(&[5_900, 15_100]);
        assert_eq!(out[0], 15_100);
        assert!((25_140..=25_220).contains(&out[1]), "{out:?}");
    }

    /// One after the other, as each is written.
    #[test]
    fn packets_that_are_due_together_leave_together() {
        let out = through(&[5_300, 5_400, 5_500, 6_000]);
        let gaps: Vec<u64> = out.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps[..2].iter().all(|gap| (5..=15).contains(gap)), "{out:?}");
        assert!(gaps[2] > 400, "the last is due a millisecond later: {out:?}");
    }
}
