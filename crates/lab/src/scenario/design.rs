//! Space-filling designs: points drawn evenly from ranges, in place of the values of axes.
//!
//! Papers test "400 conditions with losses of 0 to 1%, round-trip times of 10 to 300 ms" (Mortise
//! §D.1, Floo §4.3.1). A grid of so many dimensions repeats each value; a design by the WSP
//! algorithm ([`trimtab_net::wsp`]) has each once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trimtab_net::wsp;
use trimtab_units::Duration;

use super::grid::Cell;
use super::quantity::{self, Quantity};
use super::{Buffer, Probability, QuantityError, Scenario, ScenarioError};

/// More points than this take minutes to draw: the time grows with the square.
const POINTS_MAX: u32 = 5_000;
/// What separates the ends of a range.
const TO: &str = " to ";

/// The points of a design. Every point has one value of each range and one trace; traces take turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// How many points.
    pub points: u32,
    /// Which design: the same number and seed give the same points. Default: 0.
    #[serde(default)]
    pub seed: u64,
    /// Base round-trip times.
    #[serde(with = "quantity::one")]
    pub rtt: Range<Duration>,
    /// Sizes of the bottleneck's drop-tail buffer, both in BDP.
    #[serde(with = "quantity::one")]
    pub buffer: Range<Buffer>,
    /// Probabilities of independent random loss. Default: none.
    #[serde(with = "quantity::one", default)]
    pub loss: Range<Probability>,
    /// Most that each data packet is late. Default: none.
    #[serde(with = "quantity::one", default)]
    pub jitter: Range<Duration>,
}

/// All values from the first to the last, such as `10ms to 300ms`. One value alone is a range, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range<T> {
    /// The lowest value.
    pub low: T,
    /// The highest.
    pub high: T,
}

impl<T: Copy + FromStr<Err: fmt::Display>> FromStr for Range<T> {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let value = |text: &str| text.parse().map_err(|e: T::Err| QuantityError(e.to_string()));
        Ok(match text.split_once(TO) {
            Some((low, high)) => Self { low: value(low)?, high: value(high)? },
            None => value(text).map(|only| Self { low: only, high: only })?,
        })
    }
}

impl<T: fmt::Display + PartialEq> fmt::Display for Range<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low == self.high {
            true => self.low.fmt(f),
            false => write!(f, "{}{TO}{}", self.low, self.high),
        }
    }
}

impl<T: Quantity + Copy + PartialEq> Quantity for Range<T> {
    const EXPECTED: &'static str = "a range in quotes, such as \"10ms to 300ms\" or \"0% to 1%\"";
}

impl<T: Copy> Range<T> {
    /// Its ends as numbers.
    fn map(self, number: impl Fn(T) -> f64) -> (f64, f64) {
        (number(self.low), number(self.high))
    }
}

/// The number of BDP; `None` for a buffer of bytes or packets.
fn bdp(buffer: Buffer) -> Option<f64> {
    match buffer {
        Buffer::Bdp(bdp) => Some(bdp),
        Buffer::Bytes(_) | Buffer::Packets(_) => None,
    }
}

impl Design {
    /// The ends of each range: milliseconds, BDP, percent and milliseconds.
    fn ranges(&self) -> [(f64, f64); 4] {
        [
            self.rtt.map(Duration::as_millis_f64),
            self.buffer.map(|buffer| bdp(buffer).unwrap_or(f64::NAN)),
            self.loss.map(|loss| 100.0 * loss.get()),
            self.jitter.map(Duration::as_millis_f64),
        ]
    }

    /// The points, as cells with so many flows and these rivals. Values are rounded to what reads
    /// well: milliseconds and hundredths, and tenths of a millisecond of jitter.
    pub(super) fn cells(&self, flows: u32, rivals: Option<usize>) -> Vec<Cell> {
        let ranges = self.ranges();
        let cell = |point: [f64; 4]| {
            let mut values =
                ranges.iter().zip(point).map(|((low, high), at)| low + (high - low) * at);
            let mut rounded = |per_unit: f64| {
                let value = values.next().unwrap_or_default();
                libm::round(value * per_unit) / per_unit
            };
            let rtt = Duration::from_millis_f64(rounded(1.0)).into();
            let buffer = Buffer::Bdp(rounded(100.0));
            let loss = Probability::from_percent(rounded(100.0));
            let jitter = Duration::from_millis_f64(rounded(10.0));
            Cell { rtt, buffer, loss, jitter, flows, rivals }
        };
        self.unit_points().into_iter().map(cell).collect()
    }

    /// The points in the unit cube. Only ranges with two ends are dimensions of the design: a further
    /// one would crowd the points of the others.
    fn unit_points(&self) -> Vec<[f64; 4]> {
        fn along<const D: usize>(points: u32, seed: u64, varied: &[usize]) -> Vec<[f64; 4]> {
            let spread = |point: [f64; D]| {
                let mut of_all = [0.0; 4];
                varied.iter().zip(point).for_each(|(&axis, at)| of_all[axis] = at);
                of_all
            };
            wsp::design::<D>(points as usize, seed).into_iter().map(spread).collect()
        }
        let ranges = self.ranges();
        let varied: Vec<usize> = (0..4).filter(|&axis| ranges[axis].0 < ranges[axis].1).collect();
        let draw = match varied.len() {
            0 | 1 => along::<1>,
            2 => along::<2>,
            3 => along::<3>,
            _ => along::<4>,
        };
        draw(self.points, self.seed, &varied)
    }

    /// Why it makes no sense by itself; `None` where it does.
    fn problem(&self) -> Option<String> {
        if !(1..=POINTS_MAX).contains(&self.points) {
            return Some(format!("`points` lies between 1 and {POINTS_MAX}"));
        }
        if bdp(self.buffer.low).and(bdp(self.buffer.high)).is_none() {
            let buffer = self.buffer;
            return Some(format!("its buffer {buffer} is not in BDP, such as \"0.5BDP to 2BDP\""));
        }
        let texts = [
            self.rtt.to_string(),
            self.buffer.to_string(),
            self.loss.to_string(),
            self.jitter.to_string(),
        ];
        let falls = self.ranges().into_iter().zip(texts).find(|((low, high), _)| low > high);
        falls.map(|(_, text)| format!("the range {text} goes down: name its lowest value first"))
    }
}

/// Whether the scenario's design makes sense, next to its grid.
pub(super) fn validate(scenario: &Scenario) -> Result<(), ScenarioError> {
    let Some(design) = &scenario.design else { return Ok(()) };
    let fail = |message: String| Err(ScenarioError::Invalid(message));
    let default = Scenario::default();
    let axes = [
        ("rtt", scenario.rtt != default.rtt),
        ("buffer", scenario.buffer != default.buffer),
        ("loss", scenario.loss != default.loss),
        ("jitter", scenario.jitter != default.jitter),
        ("path", !scenario.path.is_empty()),
    ];
    if let Some((key, _)) = axes.iter().find(|(_, is_set)| *is_set) {
        return fail(format!(
            "the scenario has a [design] and `{key}`: the design draws round-trip times, buffers, \
             losses and jitter, so leave `{key}` out, or the design"
        ));
    }
    design.problem().map_or(Ok(()), |problem| fail(format!("[design]: {problem}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HEAD: &str = "cc = [\"newreno\", \"cubic\"]\nseeds = 2\nflows = [1, 4]\n\
        traces = [\"constant:12Mbit/s\", \"constant:24Mbit/s\", \"constant:48Mbit/s\"]\n\
        [[app]]\nkind = \"bulk\"\n";
    const DESIGN: &str = "[design]\npoints = 60\nseed = 3\nrtt = \"10ms to 300ms\"\n\
        buffer = \"0.5BDP to 2BDP\"\nloss = \"0% to 1%\"\n";

    fn scenario(design: &str) -> Scenario {
        Scenario::parse(&format!("{HEAD}{design}")).unwrap_or_else(|e| panic!("{e}"))
    }

    fn refused(design: &str) -> String {
        scenario(design).validate().unwrap_err().to_string()
    }

    #[test]
    fn points_fill_the_ranges_and_traces_take_turns() {
        let plan = scenario(DESIGN).plan().unwrap();
        assert_eq!(plan.jobs.len(), 60 * 2 * 2 * 2, "points, flows, seeds, schemes");
        let mut traces = BTreeMap::new();
        let (mut longest, mut fewest, mut most) = (Vec::new(), 1.0_f64, 0.0_f64);
        for job in plan.jobs.iter().filter(|j| j.scheme == 0 && j.seed == 0 && j.cell.flows == 1) {
            *traces.entry(job.trace).or_insert(0) += 1;
            longest.push(job.cell.rtt.longest().as_millis_f64());
            let Buffer::Bdp(bdp) = job.cell.buffer else { panic!("{:?}", job.cell) };
            assert!((0.5..=2.0).contains(&bdp));
            fewest = fewest.min(job.cell.loss.get());
            most = most.max(job.cell.loss.get());
            assert_eq!(job.cell.jitter, Duration::ZERO);
        }
        assert_eq!(traces.into_values().collect::<Vec<_>>(), [20, 20, 20]);
        assert!((0.0..0.001).contains(&fewest) && (0.009..=0.01).contains(&most));
        assert!(longest.iter().all(|rtt| (10.0..=300.0).contains(rtt) && rtt.fract() == 0.0));
        let mean = longest.iter().sum::<f64>() / 60.0;
        assert!((mean - 155.0).abs() < 15.0, "{mean}");
        longest.sort_by(f64::total_cmp);
        longest.dedup();
        assert!(longest.len() > 45, "few round-trip times occur twice: {}", longest.len());
    }

    #[test]
    fn the_same_design_reads_back_and_another_seed_is_another() {
        let first = scenario(DESIGN);
        let again = Scenario::parse(&first.to_toml()).unwrap();
        assert_eq!(again.design, first.design);
        assert_eq!(again.plan().unwrap().jobs, first.plan().unwrap().jobs);
        let other = scenario(&DESIGN.replace("seed = 3", "seed = 4"));
        assert_ne!(other.plan().unwrap().jobs, first.plan().unwrap().jobs);
    }

    #[test]
    fn traces_that_give_too_small_a_share_have_no_turn() {
        let points = |share: &str| {
            let text = format!("share_min = \"{share}\"\n{HEAD}{DESIGN}");
            Scenario::parse(&text).unwrap().plan()
        };
        let kept = points("10Mbit/s").unwrap().jobs;
        let of = |flows, trace| {
            let at = |j: &&super::super::Job| (j.cell.flows, j.trace) == (flows, trace);
            kept.iter().filter(at).count() / (2 * 2)
        };
        assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [20, 20, 20]);
        assert_eq!([of(4, 0), of(4, 1), of(4, 2)], [0, 0, 60], "every point has a trace");
        let none = points("50Mbit/s").unwrap_err().to_string();
        assert!(none.contains("lower share_min"), "{none}");
    }

    #[test]
    fn a_single_value_is_no_dimension() {
        let fixed = DESIGN.replace("0% to 1%", "0.5%") + "jitter = \"0ms to 20ms\"\n";
        let cells = scenario(&fixed).design.unwrap().cells(1, None);
        assert!(cells.iter().all(|cell| cell.loss.get() == 0.005));
        assert!(cells.iter().any(|cell| cell.jitter > Duration::from_millis(15)));
        let constant = "[design]\npoints = 2\nrtt = \"20ms\"\nbuffer = \"1BDP\"\n";
        let same = scenario(constant).design.unwrap().cells(1, None);
        assert!(same.len() == 2 && same[0] == same[1]);
    }

    #[test]
    fn a_thinned_design_keeps_points_of_it() {
        let all = scenario(DESIGN).plan().unwrap().jobs;
        let some = Scenario { thin: Some(16), ..scenario(DESIGN) }.plan().unwrap().jobs;
        assert_eq!(some.len(), 16 * 2 * 2);
        assert!(some.iter().all(|job| all.contains(job)));
    }

    #[test]
    fn mistakes_are_named_with_the_way_out() {
        for (from, to, words) in [
            ("points = 60", "points = 0", "`points` lies between 1 and"),
            ("10ms to 300ms", "300ms to 10ms", "300ms to 10ms goes down"),
            ("0.5BDP to 2BDP", "30KB to 2BDP", "is not in BDP"),
        ] {
            let e = refused(&DESIGN.replace(from, to));
            assert!(e.starts_with("[design]: ") && e.contains(words), "{e}");
        }
        let with_axis = Scenario::parse(&format!("rtt = \"30ms\"\n{HEAD}{DESIGN}")).unwrap();
        let e = with_axis.validate().unwrap_err().to_string();
        assert!(e.contains("a [design] and `rtt`") && e.contains("leave `rtt` out"), "{e}");
        let e = Scenario::parse(&format!("{HEAD}{}", DESIGN.replace("10ms to", "10 to")));
        assert!(e.unwrap_err().to_string().contains("line 10"));
    }
}
