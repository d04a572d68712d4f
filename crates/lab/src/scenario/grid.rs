//! The grid of traces and cells, all of it or an even sample, and the list of runs that it makes.

use trimtab_net::{Capacity, MarkConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Rate};

use super::{
    Buffer, Competitor, Delay, Design, Mark, NamedTrace, PathSettings, Probability, Scenario,
    ScenarioError, split,
};
use crate::run::links;

/// A point of the grid, apart from its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Base round-trip time.
    pub rtt: Delay,
    /// Size of the bottleneck's buffer.
    pub buffer: Buffer,
    /// Probability of random loss.
    pub loss: Probability,
    /// The most that a data packet is late.
    pub jitter: Duration,
    /// Flows of the scheme.
    pub flows: u32,
    /// Which set of rivals of the scenario; `None` where it has none.
    pub rivals: Option<usize>,
}

impl Cell {
    /// The buffer in bytes on a link with this mean rate; a packet counts 1500 bytes where it is given
    /// in packets.
    pub fn buffer_bytes(&self, mean_rate: Rate) -> Bytes {
        self.buffer.bytes(mean_rate, self.rtt.longest())
    }

    /// The drop-tail queue on a link with this mean rate, counted in packets where it is given so.
    pub fn queue(&self, mean_rate: Rate) -> QueueConfig {
        match self.buffer {
            Buffer::Packets(n) => {
                QueueConfig::drop_tail_packets(u32::try_from(n).unwrap_or(u32::MAX))
            }
            _ => QueueConfig::drop_tail_bytes(self.buffer_bytes(mean_rate)),
        }
    }
}

impl Buffer {
    /// In bytes, on a path with this mean rate and base round-trip time.
    fn bytes(self, mean_rate: Rate, rtt: Duration) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(n) => Bytes::new(1500) * n,
            // At least two packets: with less, nothing that sends in bursts gets through.
            Self::Bdp(k) => (mean_rate * rtt).mul_f64(k).max(Bytes::new(3000)),
        }
    }
}

impl Mark {
    /// What a link does with this mean rate, on a path with this base round-trip time. A packet counts 1500
    /// bytes where the queue length is given in packets.
    pub fn on(self, mean_rate: Rate, rtt: Duration) -> MarkConfig {
        match self {
            Self::Share(share) => MarkConfig::Random(share.get()),
            Self::Above(length) => MarkConfig::Above(length.bytes(mean_rate, rtt)),
        }
    }
}

/// One run to do: indices into the scenario's lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Which application of the scenario.
    pub app: usize,
    /// Which trace of the plan.
    pub trace: usize,
    /// Where in the grid.
    pub cell: Cell,
    /// Which path of the scenario; `None` in a grid.
    pub path: Option<usize>,
    /// The seed.
    pub seed: u64,
    /// Which scheme of the scenario.
    pub scheme: usize,
}

/// A scenario with its traces read and its runs listed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The traces that it names.
    pub traces: Vec<NamedTrace>,
    /// The capacity of each of them.
    pub links: Vec<Capacity>,
    /// Every run: by application, trace, cell, seed, scheme.
    pub jobs: Vec<Job>,
}

/// A trace, a cell, and a path where the scenario has some.
type Point = (usize, Cell, Option<usize>);

impl Plan {
    /// The flows that compete with the scheme's in a run.
    pub fn competitors(&self, job: &Job) -> &[Competitor] {
        match (job.path, job.cell.rivals) {
            (Some(path), _) => &self.scenario.path[path].competitor,
            (None, Some(set)) => &self.scenario.rivals[set].competitor,
            (None, None) => &self.scenario.competitor,
        }
    }
}

impl Scenario {
    /// Every cell of the grid: round-trip time, then buffer, then loss, then jitter, then flows,
    /// then rivals.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        let rivals: Vec<Option<usize>> = match self.rivals.len() {
            0 => vec![None],
            n => (0..n).map(Some).collect(),
        };
        for rtt in &self.rtt {
            for &buffer in &self.buffer {
                for &loss in &self.loss {
                    for &jitter in &self.jitter {
                        for &flows in &self.flows {
                            let rtt = || rtt.clone();
                            let of =
                                |&rivals| Cell { rtt: rtt(), buffer, loss, jitter, flows, rivals };
                            cells.extend(rivals.iter().map(of));
                        }
                    }
                }
            }
        }
        cells
    }

    /// Checks the scenario, reads its traces and lists its runs.
    ///
    /// # Errors
    /// The scenario is not valid, a trace cannot be found or read, or `share_min` leaves nothing.
    pub fn plan(&self) -> Result<Plan, ScenarioError> {
        self.validate()?;
        let traces = match &self.path[..] {
            [] => {
                let all = super::source::named(&self.traces)?;
                self.split.map_or(Ok(all.clone()), |part| split::of(part, all))?
            }
            paths => paths.iter().map(PathSettings::trace).collect::<Result<_, _>>()?,
        };
        let links = traces
            .iter()
            .map(|t| links::capacity(&t.source))
            .collect::<Result<Vec<Capacity>, _>>()?;
        let points = match (&self.path[..], &self.design) {
            ([], None) => self.points(&links)?,
            ([], Some(design)) => self.designed(design, &links)?,
            (_, _) => self.own_points(),
        };
        let mut jobs = Vec::new();
        for app in 0..self.app.len() {
            for (trace, cell, path) in &points {
                let job = |seed, scheme| {
                    let (trace, cell, path) = (*trace, cell.clone(), *path);
                    Job { app, trace, cell, path, seed, scheme }
                };
                for seed in self.first_seed..self.first_seed + u64::from(self.seeds) {
                    jobs.extend((0..self.cc.len()).map(|scheme| job(seed, scheme)));
                }
            }
        }
        if jobs.len() > super::RUNS_MAX {
            let (n, max) = (jobs.len(), super::RUNS_MAX);
            return Err(ScenarioError::Invalid(format!("{n} runs are more than {max}")));
        }
        Ok(Plan { scenario: self.clone(), traces, links, jobs })
    }

    /// The points of the grid, or its sample, by trace and cell.
    fn points(&self, links: &[Capacity]) -> Result<Vec<Point>, ScenarioError> {
        let cells = self.cells();
        let axes = [
            links.len(),
            self.rtt.len(),
            self.buffer.len(),
            self.loss.len(),
            self.jitter.len(),
            self.flows.len(),
            self.rivals.len().max(1),
        ];
        let rates: Vec<Rate> = links.iter().map(Capacity::mean_rate).collect();
        let points: Vec<usize> = (0..links.len() * cells.len())
            .filter(|p| self.has_share(rates[p / cells.len()], &cells[p % cells.len()]))
            .collect();
        self.some_left(&points)?;
        // Thinned last, so that the sample has its size, balanced over what is left.
        let points = match self.thin {
            Some(size) => spread(&axes, points, size as usize),
            None => points,
        };
        let at = |point: usize| (point / cells.len(), cells[point % cells.len()].clone(), None);
        Ok(points.into_iter().map(at).collect())
    }

    /// The points of the design with each number of flows and set of rivals, or as many of them as
    /// `thin` leaves, by trace. The traces that `share_min` leaves take turns.
    fn designed(&self, design: &Design, links: &[Capacity]) -> Result<Vec<Point>, ScenarioError> {
        let mut points: Vec<Point> = Vec::new();
        // Only flows and rivals are axes of their own next to a design.
        for other in &self.cells() {
            let traces: Vec<usize> = (0..links.len())
                .filter(|&trace| self.has_share(links[trace].mean_rate(), other))
                .collect();
            if traces.is_empty() {
                continue;
            }
            let cells = design.cells(other.flows, other.rivals).into_iter().enumerate();
            points.extend(cells.map(|(at, cell)| (traces[at % traces.len()], cell, None)));
        }
        self.some_left(&points)?;
        let size = self.thin.map_or(points.len(), |size| size as usize);
        let kept = spread(&[points.len()], (0..points.len()).collect(), size);
        let mut points: Vec<Point> = kept.into_iter().map(|at| points[at].clone()).collect();
        points.sort_by_key(|(trace, _, _)| *trace);
        Ok(points)
    }

    /// The paths of the scenario, or as many of them as `thin` leaves.
    fn own_points(&self) -> Vec<Point> {
        let all: Vec<usize> = (0..self.path.len()).collect();
        let size = self.thin.map_or(all.len(), |size| size as usize);
        let kept = spread(&[self.path.len()], all, size);
        kept.into_iter().map(|path| (path, self.path[path].cell(), Some(path))).collect()
    }

    /// An error where `share_min` leaves no point.
    fn some_left<T>(&self, points: &[T]) -> Result<(), ScenarioError> {
        match self.share_min {
            Some(share) if points.is_empty() => Err(ScenarioError::Invalid(format!(
                "no trace gives each flow {share}: lower share_min, or name faster traces or fewer flows"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether an equal share of a link with this mean rate is enough for each flow of the cell.
    fn has_share(&self, rate: Rate, cell: &Cell) -> bool {
        self.share_min.is_none_or(|min| {
            rate.bytes_per_sec() >= min.bytes_per_sec().saturating_mul(cell.flows.into())
        })
    }
}

/// `size` of these points of the grid with these axis lengths, spread evenly: each value of an axis occurs
/// as often as every other (give or take one), and so does each pair of values of two axes as far as
/// the size allows. Points are numbered as nested loops count them, the last axis fastest, and come
/// in ascending order. The same input gives the same points.
///
/// Greedy: each step takes the point whose values, then whose pairs of values, were taken least;
/// among equals a fixed pseudo-random one, so that no diagonal is preferred.
fn spread(axes: &[usize], points: Vec<usize>, size: usize) -> Vec<usize> {
    if points.len() <= size {
        return points;
    }
    let coordinates = |mut point: usize| {
        let mut at = vec![0; axes.len()];
        for (value, &length) in at.iter_mut().zip(axes).rev() {
            *value = point % length;
            point /= length;
        }
        at
    };
    let mut candidates: Vec<(usize, Vec<usize>)> =
        points.into_iter().map(|p| (p, coordinates(p))).collect();
    let mut values: Vec<Vec<u64>> = axes.iter().map(|&n| vec![0; n]).collect();
    // Pair (f, g) of axes with f < g, at values (a, b): pairs[f][g][a * axes[g] + b].
    let mut pairs: Vec<Vec<Vec<u64>>> =
        axes.iter().map(|&a| axes.iter().map(|&b| vec![0; a * b]).collect()).collect();
    let pair_list: Vec<(usize, usize)> =
        (0..axes.len()).flat_map(|f| (f + 1..axes.len()).map(move |g| (f, g))).collect();

    let mut taken = Vec::with_capacity(size);
    for _ in 0..size {
        let cost = |(point, at): &(usize, Vec<usize>)| {
            // Scaled by the length of the axis: one more of a rare value weighs as one share more.
            let single: u64 =
                at.iter().enumerate().map(|(f, &v)| values[f][v] * axes[f] as u64).sum();
            let double: u64 = pair_list
                .iter()
                .map(|&(f, g)| pairs[f][g][at[f] * axes[g] + at[g]] * (axes[f] * axes[g]) as u64)
                .sum();
            (single, double, scrambled(*point as u64))
        };
        let Some(best) = (0..candidates.len()).min_by_key(|&i| cost(&candidates[i])) else { break };
        let (point, at) = candidates.swap_remove(best);
        for (f, &v) in at.iter().enumerate() {
            values[f][v] += 1;
        }
        for &(f, g) in &pair_list {
            pairs[f][g][at[f] * axes[g] + at[g]] += 1;
        }
        taken.push(point);
    }
    taken.sort_unstable();
    taken
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a fixed shuffle of all numbers.
fn scrambled(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each value of an axis occurs among the points.
    fn counts(axes: &[usize], points: &[usize], axis: usize) -> Vec<usize> {
        let faster: usize = axes[axis + 1..].iter().product();
        let mut counts = vec![0; axes[axis]];
        for p in points {
            counts[p / faster % axes[axis]] += 1;
        }
        counts
    }

    #[test]
    fn a_thinned_grid_is_balanced() {
        // The axes of the grid: traces, RTT, buffer, loss, flows.
        let axes = [40, 3, 4, 3, 3];
        let points = spread(&axes, (0..40 * 108).collect(), 96);
        assert_eq!(points.len(), 96);
        assert!(points.windows(2).all(|w| w[0] < w[1]), "no point twice");
        for axis in 0..axes.len() {
            let counts = counts(&axes, &points, axis);
            let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(max - min <= 1, "axis {axis}: {counts:?}");
        }
        // Pairs: RTT × buffer has 12 combinations, 8 each if perfect.
        let mut pairs = [0; 12];
        for p in &points {
            pairs[p / 36 % 3 * 4 + p / 9 % 4] += 1;
        }
        assert!(pairs.iter().all(|n| (6..=10).contains(n)), "{pairs:?}");
    }

    #[test]
    fn the_whole_grid_when_it_is_small() {
        assert_eq!(spread(&[2, 2], vec![0, 1, 2, 3], 4), [0, 1, 2, 3]);
        assert_eq!(spread(&[2, 2], vec![0, 1, 3], 9), [0, 1, 3]);
        let all = || (0..9).collect();
        assert_eq!(spread(&[3, 3], all(), 5), spread(&[3, 3], all(), 5));
    }

    /// The mean rate of the trace, in kbit/s, and the flows of each planned run of one scheme.
    fn planned(extra: &str) -> Vec<(u64, u32)> {
        let plan = Scenario::parse(&format!(
            "cc = [\"newreno\"]\n\
             traces = [\"constant:1600kbit/s\", \"step:3Mbit/s,9Mbit/s@4s\", \"constant:48Mbit/s\"]\n\
             flows = [1, 4, 16]\nrtt = [\"20ms\", \"60ms\"]\n{extra}\n[[app]]\nkind = \"vod\"\n"
        ))
        .unwrap()
        .plan()
        .unwrap();
        plan.jobs
            .iter()
            .filter(|j| {
                j.cell.rtt == Duration::from_millis(20).into() || plan.scenario.thin.is_some()
            })
            .map(|j| (plan.links[j.trace].mean_rate().bytes_per_sec() / 125, j.cell.flows))
            .collect()
    }

    #[test]
    fn a_share_below_the_least_is_left_out() {
        assert_eq!(planned("").len(), 9);
        let kept = planned("share_min = \"1.5 Mbit/s\"");
        // Exactly 1.5 Mbit/s each, four flows on a mean of 6 Mbit/s, is enough.
        assert_eq!(kept, [(1600, 1), (6000, 1), (6000, 4), (48_000, 1), (48_000, 4), (48_000, 16)]);
    }

    #[test]
    fn the_sample_is_drawn_from_what_is_left() {
        let sample = planned("share_min = \"1.5 Mbit/s\"\nthin = 6");
        assert_eq!(sample.len(), 6, "left out before, not after");
        assert!(sample.iter().all(|&(rate, flows)| rate >= 1500 * u64::from(flows)), "{sample:?}");
        for rate in [1600, 6000, 48_000] {
            assert_eq!(sample.iter().filter(|s| s.0 == rate).count(), 2, "{sample:?}");
        }
    }

    #[test]
    fn nothing_left_is_a_mistake() {
        let e = Scenario::parse(
            "cc = [\"newreno\"]\ntraces = [\"constant:12Mbit/s\"]\nshare_min = \"13Mbit/s\"\n[[app]]\nkind = \"vod\"\n",
        )
        .unwrap()
        .plan()
        .unwrap_err()
        .to_string();
        assert!(e.contains("13Mbit/s") && e.contains("lower share_min"), "{e}");
    }

    #[test]
    fn jobs_come_in_the_order_of_the_scenario() {
        let s = Scenario::parse(
            "cc = [\"newreno\"]\ntraces = [\"constant:12Mbit/s\", \"constant:48Mbit/s\"]\n\
             seeds = 2\nflows = [1, 4]\n[[app]]\nkind = \"vod\"\n[[app]]\nkind = \"web\"\n",
        )
        .unwrap();
        let plan = s.plan().unwrap();
        assert_eq!(plan.jobs.len(), 2 * 2 * 2 * 2);
        let first: Vec<_> =
            plan.jobs.iter().take(5).map(|j| (j.app, j.trace, j.cell.flows, j.seed)).collect();
        assert_eq!(first, [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 4, 0), (0, 0, 4, 1), (0, 1, 1, 0)]);
    }
}
