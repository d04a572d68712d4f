//! What the switches of a run cost: loss in the second after each, and the time until the flow had
//! settled (Floo §5.5.1).
//!
//! *Settled* asks nothing of the algorithm, whose own word for it means something else after a part
//! switch than after a full one. It compares the flow with itself: the second half of each turn
//! says what the algorithm makes of the path, and a flow has settled once its share of the link and
//! its queue stay within that for two seconds.

use trimtab_units::{Duration, Time};

use crate::result::{RunRecord, Series, SwitchRecord};
use crate::run::course::BIN;
use crate::stats::Sorted;

/// How often a flow is looked at.
pub const STEP: Duration = Duration::from_millis(10);
/// For so long after a switch losses count as its own.
const AFTER: Duration = Duration::from_secs(1);
/// Share and queue are means over so many bins: half a second.
const WINDOW: usize = 5;
/// So long must they stay where they belong: two seconds, so that a calm start is not taken for the
/// end of a storm that is yet to come.
const STAY: usize = 20;
/// Shorter turns say nothing of where they settle.
const TURN_MIN: usize = 60;
/// What belongs there: from the 5th to the 95th percentile of the second half of the turn, and
/// whatever is within this share of its mean.
const NEAR: f64 = 0.2;
/// A queue of this delay more than usual is not told from it: a packet or two on a slow link.
const QUEUE_NEAR_MS: f64 = 5.0;

/// A flow that can switch, as it is at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// The algorithm that runs.
    pub algorithm: &'static str,
    /// The algorithm that is to take over.
    pub pending: Option<&'static str>,
    /// How often another one took over.
    pub switches: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost on the path.
    pub dropped: u64,
}

/// Looks at a flow that switches.
#[derive(Clone, Debug)]
pub struct Watch {
    current: &'static str,
    switches: u64,
    /// Who is to take over, and since when.
    pending: Option<(&'static str, Time)>,
    seen: Vec<Seen>,
    counts: Vec<Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    asked: Time,
    from: &'static str,
    to: &'static str,
}

/// Packets by a point in time.
#[derive(Clone, Copy, Debug)]
struct Counts {
    at: Time,
    sent: u64,
    dropped: u64,
}

impl Watch {
    /// Of a flow that is like this at its beginning.
    pub fn new(flow: &Glance) -> Self {
        Self {
            current: flow.algorithm,
            switches: flow.switches,
            pending: None,
            seen: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Notes what happened since it was looked at last; [`STEP`] ago, where the caller can.
    pub fn look(&mut self, now: Time, flow: &Glance) {
        let &Glance { algorithm: to, pending, switches, sent, dropped } = flow;
        self.counts.push(Counts { at: now, sent, dropped });
        if switches > self.switches {
            let asked = self.pending.map_or(now, |(_, since)| since);
            self.seen.push(Seen { at: now, asked, from: self.current, to });
            (self.current, self.switches) = (to, switches);
            self.pending = None;
        }
        self.pending = pending
            .map(|name| self.pending.filter(|(known, _)| *known == name).unwrap_or((name, now)));
    }

    /// One record per switch whose second after it was seen. `endless` says that the flow always had
    /// data to send: only then can be told whether it has settled.
    pub fn records(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        let of = |(i, seen): (usize, &Seen)| {
            let next = self.seen.get(i + 1);
            let from = bin(seen.at);
            let to = next.map_or(usize::MAX, |next| bin(next.asked)).min(series.rtt_ms.len());
            let turn = Turn { series, from, to };
            let settled = (endless && to >= from + TURN_MIN).then(|| turn.settled());
            Some(SwitchRecord {
                at_ms: seen.at.as_millis_f64(),
                from: seen.from.to_owned(),
                to: seen.to.to_owned(),
                waited_ms: seen.at.since(seen.asked).as_millis_f64(),
                loss_ratio: self.loss_after(seen.at)?,
                turn_ms: to.saturating_sub(from) as f64 * BIN.as_millis_f64(),
                settled_ms: settled.flatten().map(|bins| bins as f64 * BIN.as_millis_f64()),
                settles: settled.map(|settled| settled.is_some()),
                queue_delay_ms: mean(series.queue_delay_ms.get(from..to).unwrap_or_default()),
            })
        };
        self.seen.iter().enumerate().filter_map(of).collect()
    }

    /// Packets lost over packets sent in the second after `at`; `None` where the run ended before.
    fn loss_after(&self, at: Time) -> Option<f64> {
        let by = |time: Time| self.counts.iter().find(|c| c.at >= time);
        let (from, to) = (by(at)?, by(at + AFTER)?);
        Some((to.dropped - from.dropped) as f64 / (to.sent - from.sent).max(1) as f64)
    }
}

/// What the switches of a scheme cost, over many runs.
#[derive(Clone, Debug)]
pub(crate) struct SwitchCosts {
    pub(crate) cc: String,
    /// Share lost in the second after each.
    pub(crate) loss: Sorted,
    /// Until it had settled, in ms; the length of the turn where it did not.
    pub(crate) settled: Sorted,
    /// The share of those that did not.
    pub(crate) unsettled: f64,
}

impl SwitchCosts {
    /// Of these runs; `None` without any switch.
    pub(crate) fn of<'a>(cc: &str, runs: impl Iterator<Item = &'a RunRecord>) -> Option<Self> {
        let all: Vec<&SwitchRecord> = runs.flat_map(|run| &run.switches).collect();
        let told: Vec<&SwitchRecord> =
            all.iter().copied().filter(|s| s.settles.is_some()).collect();
        let never = told.iter().filter(|s| s.settles == Some(false)).count();
        (!all.is_empty()).then(|| Self {
            cc: cc.to_owned(),
            loss: Sorted::new(all.iter().map(|s| s.loss_ratio)),
            settled: Sorted::new(told.iter().map(|s| s.settled_ms.unwrap_or(s.turn_ms))),
            unsettled: never as f64 / told.len().max(1) as f64,
        })
    }
}

fn bin(at: Time) -> usize {
    (at.since(Time::ZERO).as_nanos() / BIN.as_nanos()) as usize
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The bins in which one algorithm ran.
struct Turn<'a> {
    series: &'a Series,
    from: usize,
    to: usize,
}

impl Turn<'_> {
    /// Share of the link that was used, and the queue's delay, over the window that begins with the
    /// bin. On a link that carried nothing there is no share.
    fn window(&self, bin: usize) -> (f64, f64) {
        let range = bin..bin + WINDOW;
        let sum = |values: &[f64]| values[range.clone()].iter().sum::<f64>();
        let capacity = sum(&self.series.capacity_mbps);
        let share = sum(&self.series.throughput_mbps) / capacity;
        let share = if capacity > 0.0 { share } else { f64::NAN };
        (share, mean(&self.series.queue_delay_ms[range]))
    }

    /// After how many bins it had settled; `None` if it did not before its second half.
    fn settled(&self) -> Option<usize> {
        let windows: Vec<(f64, f64)> =
            (self.from..self.to - WINDOW).map(|bin| self.window(bin)).collect();
        let half = windows.len() / 2;
        let share = Band::of(windows[half..].iter().map(|w| w.0), 0.0);
        let queue = Band::of(windows[half..].iter().map(|w| w.1), QUEUE_NEAR_MS);
        // A queue that is not there yet harms nobody.
        let belongs = |w: &(f64, f64)| share.holds(w.0) && w.1 <= queue.hi;
        (0..half).find(|&start| windows[start..start + STAY].iter().all(belongs))
    }
}

/// Values that are usual.
#[derive(Clone, Copy, Debug)]
struct Band {
    lo: f64,
    hi: f64,
}

impl Band {
    fn of(values: impl Iterator<Item = f64>, near: f64) -> Self {
        let sorted = Sorted::new(values);
        let mean = sorted.mean().unwrap_or(0.0);
        let near = near.max(NEAR * mean);
        Self {
            lo: sorted.percentile(5.0).map_or(f64::MIN, |low| low.min(mean - near)),
            hi: sorted.percentile(95.0).map_or(f64::MAX, |high| high.max(mean + near)),
        }
    }

    /// What could not be measured is not unusual.
    fn holds(&self, value: f64) -> bool {
        value.is_nan() || (self.lo..=self.hi).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 10 Mbit/s; what a turn of 20 s delivers, and its queue in ms, in each bin.
    fn settled(throughput: impl Fn(usize) -> f64, queue: impl Fn(usize) -> f64) -> Option<usize> {
        let series = Series {
            capacity_mbps: vec![10.0; 200],
            throughput_mbps: (0..200).map(throughput).collect(),
            queue_delay_ms: (0..200).map(queue).collect(),
            ..Series::default()
        };
        Turn { series: &series, from: 0, to: 200 }.settled()
    }

    #[test]
    fn a_flow_that_goes_on_has_settled_at_once() {
        assert_eq!(settled(|_| 9.0, |_| 10.0), Some(0));
        // A queue that has yet to grow is no trouble.
        assert_eq!(settled(|_| 9.0, |i| i as f64), Some(0));
        // Noise that lasts is how the algorithm is.
        assert_eq!(settled(|i| [2.0, 9.0][i / 7 % 2], |_| 10.0), Some(0));
    }

    #[test]
    fn a_gap_and_a_queue_take_their_time() {
        // The window of half a second forgives two tenths of a second less.
        assert_eq!(settled(|i| if i < 20 { 1.0 } else { 9.0 }, |_| 10.0), Some(19));
        assert_eq!(settled(|_| 9.0, |i| if i < 30 { 80.0 } else { 10.0 }), Some(30));
        // Twice out of the band: only then has it settled.
        assert_eq!(settled(|i| if (20..30).contains(&i) { 1.0 } else { 9.0 }, |_| 10.0), Some(29));
    }

    #[test]
    fn a_turn_may_end_before_it_has_settled() {
        // Falls all the way to the last quarter.
        assert_eq!(settled(|_| 9.0, |i| 400.0 - 2.0 * i as f64), None);
    }

    /// A run of 40 s that sends 10 packets in each 10 ms, and loses one in ten from 20 s to 20.5 s.
    fn watch(seen: &[(u64, u64)]) -> Watch {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let dropped = |ms: u64| (ms.clamp(20_000, 20_500) - 20_000) / 10;
        Watch {
            current: "bbr",
            switches: seen.len() as u64,
            pending: None,
            seen: seen
                .iter()
                .map(|&(asked, ms)| Seen { at: at(ms), asked: at(asked), from: "cubic", to: "bbr" })
                .collect(),
            counts: (0..=4000_u64)
                .map(|i| Counts { at: at(10 * i), sent: 10 * i, dropped: dropped(10 * i) })
                .collect(),
        }
    }

    fn flat(bins: usize) -> Series {
        Series {
            bin_ms: 100.0,
            capacity_mbps: vec![10.0; bins],
            throughput_mbps: vec![9.0; bins],
            queue_delay_ms: (0..bins).map(|i| if i < 200 { 4.0 } else { 8.0 }).collect(),
            rtt_ms: vec![30.0; bins],
            ..Series::default()
        }
    }

    #[test]
    fn a_switch_has_the_losses_of_the_second_after_it_and_the_rest_of_its_turn() {
        let records = watch(&[(9_900, 10_000), (20_000, 20_000)]).records(&flat(400), true);
        let [first, second] = &records[..] else { panic!("two switches: {records:?}") };
        assert_eq!((first.at_ms, first.waited_ms, first.loss_ratio), (10_000.0, 100.0, 0.0));
        assert_eq!((first.turn_ms, first.queue_delay_ms), (10_000.0, 4.0), "to the next one");
        assert_eq!((second.turn_ms, second.queue_delay_ms), (20_000.0, 8.0), "to the end");
        assert_eq!(second.loss_ratio, 0.05, "50 of 1000 packets");
        assert_eq!((first.settled_ms, first.settles), (Some(0.0), Some(true)));
        assert_eq!((first.from.as_str(), first.to.as_str()), ("cubic", "bbr"));
    }

    #[test]
    fn what_cannot_be_told_of_a_switch_is_left_open() {
        // Turns below 6 s, flows that are idle at times, and switches in the last second.
        let short = watch(&[(10_000, 10_000), (15_900, 16_000)]).records(&flat(400), true);
        assert_eq!((short[0].turn_ms, short[0].settles), (5900.0, None));
        assert_eq!(short[1].settles, Some(true));
        let idle = watch(&[(10_000, 10_000)]).records(&flat(400), false);
        assert_eq!((idle[0].settled_ms, idle[0].settles), (None, None));
        let last = watch(&[(10_000, 10_000), (39_500, 39_500)]).records(&flat(400), true);
        assert_eq!(last.len(), 1, "its second was not seen");
        assert_eq!(last[0].turn_ms, 29_500.0);
    }

    #[test]
    fn costs_count_a_switch_that_never_settled_with_its_whole_turn() {
        let switch = |loss_ratio, settled_ms, settles| SwitchRecord {
            loss_ratio,
            settled_ms,
            settles,
            turn_ms: 8000.0,
            ..watch(&[(10_000, 10_000)]).records(&flat(400), true)[0].clone()
        };
        let mut runs = [0, 1].map(|seed| crate::testing::run("switch:cubic,bbr", "t", seed, 1.0));
        runs[0].switches =
            vec![switch(0.01, Some(500.0), Some(true)), switch(0.02, None, Some(false))];
        runs[1].switches = vec![switch(0.06, None, None), switch(0.03, Some(100.0), Some(true))];
        let costs = SwitchCosts::of("switch:cubic,bbr", runs.iter()).unwrap();
        assert_eq!(costs.loss.values(), [0.01, 0.02, 0.03, 0.06]);
        assert_eq!(costs.settled.values(), [100.0, 500.0, 8000.0]);
        assert_eq!(costs.unsettled, 1.0 / 3.0, "of the three that can be told");
        assert!(SwitchCosts::of("cubic", runs[..0].iter()).is_none());
    }
}
