//! Monitor intervals: what became of the packets that were sent in one stretch of time at one rate.
//! PCC Vivace and PCC Allegro decide by them.

use trimtab_units::{Bytes, Duration, Time};

/// So many intervals can wait for their packets at once. When none is free the running one goes on for longer.
const CAPACITY: usize = 8;

/// A rate that differs by no more than this share from what was asked for is that.
const AS_ASKED: f64 = 0.1;

/// What an interval was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Slow start.
    Start,
    /// The higher and the lower rate of a pair (plain Vivace, Allegro).
    Up,
    Down,
    /// The rate that the last decision chose (exploring and using it at once; Allegro's adjusting).
    Step,
    /// Nothing: the results of another are on their way.
    Wait,
}

/// One monitor interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) purpose: Purpose,
    /// The rate that was asked for, in Mbit/s.
    pub(crate) asked: f64,
    start: Time,
    /// When the first packet of the next interval left; `None` while packets are added.
    end: Option<Time>,
    sent: Bytes,
    /// Packets.
    sent_count: u32,
    acked: Bytes,
    /// Acknowledgements with a round-trip time.
    pub(crate) samples: u32,
    lost: Bytes,
    /// Ranges of packets that were lost one after another.
    lost_ranges: u32,
    /// Whether the application left the rate unused at any time.
    pub(crate) app_limited: bool,
    trend: Trend,
    first_ack: Option<(Time, Bytes)>,
    last_ack: Time,
}

/// What an interval showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Rate of sending in Mbit/s.
    pub(crate) rate: f64,
    /// Rate of arrival in Mbit/s, by the acknowledgements; `None` where there were too few.
    pub(crate) arrived: Option<f64>,
    /// Packets that are accounted for.
    pub(crate) packets: f64,
    /// Share of the packets that was lost, and in how many ranges.
    pub(crate) loss: f64,
    pub(crate) lost_ranges: u32,
    /// Slope of the round-trip time over the time of sending, in s/s, and its standard error squared.
    pub(crate) slope: f64,
    pub(crate) slope_error2: f64,
}

fn mbps(bytes: Bytes, time: Duration) -> f64 {
    bytes.bits() * 1e-6 / time.as_secs_f64()
}

impl Interval {
    fn new(purpose: Purpose, asked: f64, start: Time) -> Self {
        Self {
            purpose,
            asked,
            start,
            end: None,
            sent: Bytes::ZERO,
            sent_count: 0,
            acked: Bytes::ZERO,
            samples: 0,
            lost: Bytes::ZERO,
            lost_ranges: 0,
            app_limited: false,
            trend: Trend::default(),
            first_ack: None,
            last_ack: start,
        }
    }

    /// Whether it may end: it is long enough, and has packets enough to say something.
    pub(crate) fn is_due(&self, now: Time, length: Duration, packets: f64) -> bool {
        now.since(self.start) >= length && f64::from(self.sent_count) >= packets
    }

    /// Whether all that there is to know of it is known: everything arrived or was lost, or what
    /// was sent `grace` after its end has arrived. One acknowledgement may stand for packets of two
    /// intervals, so that some never are accounted for.
    fn is_resolved(&self, newest_sent_at: Time, grace: Duration) -> bool {
        let Some(end) = self.end else { return false };
        self.acked + self.lost >= self.sent || newest_sent_at >= end + grace
    }

    /// What it shows: of all its packets, or while some are on their way, of those that are accounted for.
    pub(crate) fn seen(&self) -> Seen {
        let known = self.acked + self.lost;
        let of = if self.end.is_some() { self.sent.max(known) } else { known };
        let paced = self.end.filter(|end| *end > self.start);
        let sent = paced.map_or(self.asked, |end| mbps(self.sent, end - self.start));
        // A packet more or less is not the sender's choice, what the window or a busy host withheld is.
        let as_asked = (sent - self.asked).abs() < AS_ASKED * self.asked;
        Seen {
            rate: if as_asked { self.asked } else { sent },
            arrived: self.first_ack.filter(|(at, _)| self.last_ack > *at).map(|(at, first)| {
                // The first acknowledgement opens the time in which the others came.
                mbps(self.acked - first, self.last_ack - at)
            }),
            packets: f64::from(self.sent_count) * of.as_f64() / self.sent.as_f64().max(1.0),
            loss: if of.is_zero() { 0.0 } else { self.lost.ratio(of) },
            lost_ranges: self.lost_ranges,
            slope: self.trend.slope(),
            slope_error2: self.trend.error2(),
        }
    }
}

/// The intervals whose packets are under way, oldest first; the last is the running one.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    ring: [Interval; CAPACITY],
    head: usize,
    len: usize,
}

impl Intervals {
    pub(crate) fn new() -> Self {
        Self { ring: [Interval::new(Purpose::Wait, 0.0, Time::ZERO); CAPACITY], head: 0, len: 0 }
    }

    fn at(&self, i: usize) -> usize {
        (self.head + i) % CAPACITY
    }

    pub(crate) fn running(&self) -> Option<&Interval> {
        (self.len > 0).then(|| &self.ring[self.at(self.len - 1)])
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == CAPACITY
    }

    /// The one of that purpose, if it is still looked at.
    pub(crate) fn find(&mut self, purpose: Purpose) -> Option<&mut Interval> {
        let i = (0..self.len).map(|i| self.at(i)).find(|i| self.ring[*i].purpose == purpose)?;
        Some(&mut self.ring[i])
    }

    /// Ends the running one and begins another. There is room.
    pub(crate) fn begin(&mut self, now: Time, purpose: Purpose, asked: f64) {
        if self.len > 0 {
            let last = self.at(self.len - 1);
            self.ring[last].end = Some(now);
        }
        let next = self.at(self.len);
        self.ring[next] = Interval::new(purpose, asked, now);
        self.len += 1;
    }

    pub(crate) fn on_sent(&mut self, bytes: Bytes, app_limited: bool) {
        if self.len > 0 {
            let running = self.at(self.len - 1);
            let running = &mut self.ring[running];
            running.sent += bytes;
            running.sent_count = running.sent_count.saturating_add(1);
            running.app_limited |= app_limited;
        }
    }

    /// The one in which a packet was sent.
    fn of(&mut self, sent_at: Time) -> Option<&mut Interval> {
        let i = (0..self.len).rev().map(|i| self.at(i)).find(|i| self.ring[*i].start <= sent_at)?;
        Some(&mut self.ring[i])
    }

    /// An acknowledgement. Returns the interval that its newest packet is of.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        sent_at: Time,
        bytes: Bytes,
        rtt: Option<Duration>,
    ) -> Option<&Interval> {
        let interval = self.of(sent_at)?;
        interval.acked += bytes;
        interval.first_ack.get_or_insert((now, interval.acked));
        interval.last_ack = now;
        if let Some(rtt) = rtt {
            interval.samples = interval.samples.saturating_add(1);
            let at = sent_at.since(interval.start).as_secs_f64();
            interval.trend.add(at, rtt.as_secs_f64());
        }
        Some(interval)
    }

    pub(crate) fn on_lost(&mut self, sent_at: Time, bytes: Bytes, new_range: bool) {
        if let Some(interval) = self.of(sent_at) {
            interval.lost += bytes;
            interval.lost_ranges = interval.lost_ranges.saturating_add(u32::from(new_range));
        }
    }

    /// Takes the oldest one out once everything is known of it.
    pub(crate) fn take_resolved(
        &mut self,
        newest_sent_at: Time,
        grace: Duration,
    ) -> Option<Interval> {
        let oldest = self.ring[self.head];
        if self.len == 0 || !oldest.is_resolved(newest_sent_at, grace) {
            return None;
        }
        self.head = self.at(1);
        self.len -= 1;
        Some(oldest)
    }

    /// What is under way says nothing any more.
    pub(crate) fn disregard(&mut self) {
        for i in 0..self.len {
            let i = self.at(i);
            self.ring[i].purpose = Purpose::Wait;
        }
    }

    /// Nothing is under way any more.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

/// A straight line through round-trip times over times of sending, by least squares.
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    n: f64,
    x: f64,
    y: f64,
    /// Sums of squares and products of what differs from the means.
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Trend {
    /// Welford's way: sums of plain squares would lose the digits.
    fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        let (dx, dy) = (x - self.x, y - self.y);
        self.x += dx / self.n;
        self.y += dy / self.n;
        self.xx += dx * (x - self.x);
        self.xy += dx * (y - self.y);
        self.yy += dy * (y - self.y);
    }

    /// Zero where there is no line.
    fn slope(&self) -> f64 {
        if self.n >= 3.0 && self.xx > 0.0 { self.xy / self.xx } else { 0.0 }
    }

    /// The slope's standard error, squared.
    fn error2(&self) -> f64 {
        if self.n < 3.0 || self.xx <= 0.0 {
            return 0.0;
        }
        let left = (self.yy - self.xy * self.xy / self.xx).max(0.0);
        left / (self.n - 2.0) / self.xx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Packets `from` to `to` ms, one each.
    fn filled(from: u64, to: u64) -> Intervals {
        let mut all = Intervals::new();
        all.begin(ms(from), Purpose::Step, 12.0);
        (from..to).for_each(|_| all.on_sent(MSS, false));
        all.begin(ms(to), Purpose::Wait, 12.0);
        all
    }

    #[test]
    fn rates_losses_and_the_slope_are_those_of_its_packets() {
        let mut all = filled(100, 120);
        for t in 100..120 {
            if t == 110 || t == 115 {
                all.on_lost(ms(t), MSS, true);
                continue;
            }
            // 20 ms, growing by 2% of the time: 50 packets' time for 51.
            let rtt = Duration::from_millis(20) + Duration::from_micros(20) * (t - 100);
            all.on_ack(ms(t) + rtt, ms(t), MSS, Some(rtt));
        }
        let interval = all.take_resolved(ms(119), Duration::ZERO).unwrap();
        let seen = interval.seen();
        assert!((seen.rate - 12.0).abs() < 1e-9, "{seen:?}");
        assert!((seen.loss - 0.1).abs() < 1e-12 && seen.lost_ranges == 2, "{seen:?}");
        assert!((seen.slope - 0.02).abs() < 1e-9 && seen.slope_error2 < 1e-12, "{seen:?}");
        // 17 packets after the first in 19 ms and what the last one waited longer.
        assert!((seen.arrived.unwrap() - 17.0 * 0.012 / 0.01938).abs() < 1e-6, "{seen:?}");
    }

    #[test]
    fn it_waits_for_the_last_packet_but_not_for_ever() {
        let mut all = filled(0, 10);
        for t in 0..9 {
            all.on_ack(ms(t + 20), ms(t), MSS, None);
        }
        let grace = Duration::from_millis(5);
        assert!(all.take_resolved(ms(14), grace).is_none(), "the tenth may come");
        assert!(all.clone().take_resolved(ms(15), grace).is_some());
        all.on_lost(ms(9), MSS, true);
        assert!(all.take_resolved(ms(14), grace).is_some());
        assert!(all.take_resolved(ms(99), grace).is_none(), "the running one goes on");
    }

    #[test]
    fn noise_has_an_error_beyond_its_slope() {
        let mut trend = Trend::default();
        for i in 0..40 {
            // Alternates by 2 ms around 30.
            trend.add(f64::from(i) * 0.001, 0.030 + if i % 2 == 0 { 0.001 } else { -0.001 });
        }
        assert!(trend.slope() * trend.slope() < trend.error2(), "{trend:?}");
    }

    #[test]
    fn the_ring_holds_what_it_can() {
        let mut all = Intervals::new();
        for i in 0..CAPACITY as u64 {
            assert!(!all.is_full());
            all.begin(ms(i), Purpose::Step, i as f64);
            all.on_sent(MSS, i == 3);
        }
        assert!(all.is_full());
        for i in 0..CAPACITY as u64 - 1 {
            all.on_ack(ms(50 + i), ms(i), MSS, None);
            let one = all.take_resolved(ms(i), Duration::ZERO).unwrap();
            assert_eq!((one.asked, one.app_limited), (i as f64, i == 3));
        }
        assert_eq!(all.running().unwrap().asked, 7.0);
    }
}
