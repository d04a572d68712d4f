//! The bitrate that arrives, over a second or twenty packets: the lower of what was sent and what was
//! received, its longest pause aside (libwebrtc `robust_throughput_estimator.cc`, the default since
//! 2022; before, a Bayesian estimate over 150 ms).
//!
//! Packets are kept one by one, as there: a window of runs of packets made the loss part differ.

use trimtab_units::{Bytes, Duration, Rate, Time};

/// Packets before there is an estimate (`required_packets`), and packets that the window has at least
/// and at most (`window_packets`, `max_window_packets`).
const REQUIRED: usize = 10;
const PACKETS: usize = 20;
const PACKETS_MAX: usize = 500;
/// Time that the window spans at least and at most (`min_window_duration`, `max_window_duration`).
const SPAN: Duration = Duration::from_secs(1);
const SPAN_MAX: Duration = Duration::from_secs(5);
/// Spans count as no shorter.
const SPAN_MIN: Duration = Duration::from_millis(1);
/// Resolution of times.
const TICK: Duration = Duration::from_micros(100);

/// A packet that arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    bytes: u32,
    /// How long after the one before it it arrived and left, in ticks.
    arrived: u16,
    sent: i16,
}

/// The window.
#[derive(Clone, Debug)]
pub(super) struct Acked {
    /// A ring, `count` of them from `first` on.
    packets: [Packet; PACKETS_MAX],
    first: u16,
    count: u16,
    /// Ticks from the first arrival to the last.
    span: u32,
    /// When the newest left and arrived, in ticks.
    newest: (u64, u64),
    /// What is known by other means until the window is full.
    assumed: Option<Rate>,
}

impl Default for Acked {
    fn default() -> Self {
        let packets = [Packet::default(); PACKETS_MAX];
        Self { packets, first: 0, count: 0, span: 0, newest: (0, 0), assumed: None }
    }
}

fn ticks(time: Time) -> u64 {
    time.as_nanos() / TICK.as_nanos()
}

fn small(ticks: Duration) -> u32 {
    (ticks.as_nanos() / TICK.as_nanos()) as u32
}

impl Acked {
    fn window(&self) -> impl Iterator<Item = Packet> {
        let first = usize::from(self.first);
        let place = move |i: usize| self.packets[(first + i) % PACKETS_MAX];
        (0..self.len()).map(place)
    }

    fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// `None` before ten packets arrived (`bitrate()`).
    pub(super) fn rate(&self) -> Option<Rate> {
        if self.len() < REQUIRED {
            return self.assumed;
        }
        let mut others = self.window();
        let first = others.next()?;
        let (mut pauses, mut bytes) = ([0; 2], 0);
        // Ticks since the first packet left: of this one, and the first and the last to leave.
        let (mut sent, mut left) = (0_i64, (0, 0));
        let mut last = first.bytes;
        for packet in others {
            bytes += u64::from(packet.bytes);
            let pause = u32::from(packet.arrived);
            if pause > pauses[0] {
                pauses = [pause, pauses[0]];
            } else {
                pauses[1] = pauses[1].max(pause);
            }
            sent += i64::from(packet.sent);
            if sent > left.1 {
                last = packet.bytes;
            }
            left = (left.0.min(sent), left.1.max(sent));
        }
        // The longest pause counts as the second longest. The first packet's own time on the wire is
        // not in the span of arriving, nor is that of the last in the span of leaving.
        let arriving = TICK * u64::from(self.span - pauses[0] + pauses[1]);
        let leaving = TICK * (left.1 - left.0).unsigned_abs();
        let out = bytes + u64::from(first.bytes) - u64::from(last);
        let rate = |bytes: u64, span: Duration| Bytes::new(bytes) / span.max(SPAN_MIN);
        Some(rate(out, leaving).min(rate(bytes, arriving)))
    }

    /// A rate that is known by other means counts until ten packets arrived.
    pub(super) fn assume(&mut self, rate: Rate) {
        self.assumed = Some(rate);
    }

    /// A packet arrived (`IncomingPacketFeedbackVector()`). One that was overtaken counts as arrived
    /// with the newest.
    pub(super) fn add(&mut self, sent: Time, arrival: Time, bytes: Bytes) {
        let (sent, arrival) = (ticks(sent), ticks(arrival));
        let pause = arrival.saturating_sub(self.newest.1);
        let step = sent.wrapping_sub(self.newest.0).cast_signed();
        let within = pause <= u64::from(small(SPAN_MAX)) && self.count > 0;
        let bytes = u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let mut packet = Packet { bytes, ..Packet::default() };
        match i16::try_from(step) {
            Ok(sent) if within => (packet.arrived, packet.sent) = (pause as u16, sent),
            _ => (self.count, self.span) = (0, 0),
        }
        if self.len() == PACKETS_MAX {
            self.forget();
        }
        self.packets[(usize::from(self.first) + self.len()) % PACKETS_MAX] = packet;
        self.count += 1;
        self.span += u32::from(packet.arrived);
        self.newest = (sent, arrival.max(self.newest.1));
        while self.is_first_outside() {
            self.forget();
        }
    }

    /// `FirstPacketOutsideWindow()`.
    fn is_first_outside(&self) -> bool {
        self.span > small(SPAN_MAX) || (self.len() > PACKETS && self.span > small(SPAN))
    }

    fn forget(&mut self) {
        self.first = ((usize::from(self.first) + 1) % PACKETS_MAX) as u16;
        self.count -= 1;
        // What was between the first and the second is not in the window.
        self.span -= u32::from(self.packets[usize::from(self.first)].arrived);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn mbps(acked: &Acked) -> f64 {
        acked.rate().map_or(0.0, Rate::mbps)
    }

    /// 1250 bytes every 10 ms are 1 Mbit/s from the tenth packet on, and every ms 10 Mbit/s, which
    /// is more packets than the window has.
    #[test]
    fn a_steady_stream_shows_its_rate() {
        let mut acked = Acked::default();
        for i in 0..3000 {
            let sent = if i < 1000 { 10 * i } else { 10_000 + (i - 1000) };
            acked.add(ms(sent), ms(70_000 + sent), Bytes::new(1250));
            match i {
                0..9 => assert_eq!(acked.rate(), None, "packet {i}"),
                9..1000 => assert!((mbps(&acked) - 1.0).abs() < 1e-6, "{} at {i}", mbps(&acked)),
                1600.. => assert!((mbps(&acked) - 10.0).abs() < 1e-5, "{} at {i}", mbps(&acked)),
                _ => {}
            }
        }
        assert_eq!(acked.len(), PACKETS_MAX);
        acked.assume(Rate::from_mbps(9.0));
        assert!(mbps(&acked) > 9.5, "what arrives counts, not what is assumed");
    }

    /// What was sent within 45 ms and arrives in 90 is no faster than it arrives, and the other way
    /// round: 9 packets of 1250 bytes in 90 ms.
    #[test]
    fn the_slower_of_sending_and_arriving_counts() {
        for (sending, arriving) in [(5, 10), (10, 5)] {
            let mut acked = Acked::default();
            (0..10).for_each(|i| acked.add(ms(sending * i), ms(arriving * i), Bytes::new(1250)));
            assert!((mbps(&acked) - 1.0).abs() < 1e-6, "{}", mbps(&acked));
        }
    }

    /// Packets leave every 10 ms and one arrives 300 ms late: the pause counts as 10 ms, so arriving
    /// took no longer than leaving. A second pause counts: 20 packets in 190 + 250 ms.
    #[test]
    fn the_longest_pause_alone_does_not_count() {
        let play = |second: u64| {
            let mut acked = Acked::default();
            for i in 0..20 {
                let late = if i >= 5 { 300 } else { 0 } + if i >= 12 { second } else { 0 };
                acked.add(ms(10 * i), ms(10 * i + late), Bytes::new(1250));
            }
            mbps(&acked)
        };
        assert!((play(0) - 1.0).abs() < 1e-6, "{}", play(0));
        // 310 ms count as 260: 19 packets in 190 + 300 + 250 - 310 + 260 ms.
        assert!((play(250) - 19.0 * 10e-3 / 0.69).abs() < 1e-5, "{}", play(250));
    }

    /// After more than five seconds nothing is known; twenty packets may span more than one.
    #[test]
    fn a_long_pause_begins_anew() {
        let mut acked = Acked::default();
        (0..40).for_each(|i| acked.add(ms(100 * i), ms(100 * i), Bytes::new(1250)));
        assert_eq!((acked.len(), acked.span), (PACKETS, 19_000));
        acked.add(ms(9000), ms(9000), Bytes::new(1250));
        assert_eq!(acked.rate(), None);
        acked.assume(Rate::from_mbps(2.0));
        assert_eq!(acked.rate(), Some(Rate::from_mbps(2.0)));
    }
}
