//! What a switch costs beyond the unswitched fork, for every ordered pair of seven algorithms, on
//! recordings of a part of the split (traces/split.toml).
//!
//! ```text
//! cargo run --release -p trimtab-lab --example switch_costs -- validate 2 bulk
//! cargo run --release -p trimtab-lab --example switch_costs -- validate 2 look
//! ```
//!
//! Each recording gets so many drawn paths: round-trip time, buffer, random loss, where the recording
//! begins, whether a CUBIC flow is next to the flow, and when it is to switch. On each path every
//! algorithm runs from the start. Then the world forks: one fork goes on, and one for each other
//! algorithm switches, fully and partly. Loss and delivered bytes after the switch are compared over
//! the same time with the fork that went on, and with a flow that ran the new algorithm from the
//! start. Intervals are over recordings (BCa, 95%). With `look` it prints `look.rs` instead.

mod look;
mod paths;

use std::collections::BTreeMap;

use rayon::prelude::*;
use trimtab_cc::Spec;
use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_lab::scenario::Part;
use trimtab_lab::stats::{Sums, bca, percentile};
use trimtab_sim::{Control, World};
use trimtab_steer::Steerer;
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_units::{Bytes, Duration};

use paths::{Drawn, draw};

const ALL: [&str; 7] = ["cubic", "bbr", "bbr3", "copa", "copa:mvfst", "westwood", "vegas"];
const STEP: Duration = Duration::from_millis(10);
/// Loss counts in so many steps after the switch, delivered bytes in so many.
const SECOND: usize = 100;
const TWO: usize = 200;
/// A full switch that has not taken place after so many steps is given up.
const PATIENCE: usize = 1000;

/// What a flow had sent, lost and delivered.
#[derive(Clone, Copy, Default)]
struct Counts {
    sent: u64,
    dropped: u64,
    delivered: Bytes,
}

impl Counts {
    fn of(world: &World) -> Self {
        let flow = &world.flows()[0];
        let (sent, delivered) = (flow.sent().packets, flow.sent().delivered);
        Self { sent, dropped: flow.received().dropped, delivered }
    }
}

/// A switch and what came of it, in percent.
#[derive(Clone, Copy)]
struct Cost {
    recording: usize,
    pair: (usize, usize),
    how: Switch,
    /// Lost of what was sent in the second after the switch: by the flow that switched, by the one
    /// that went on, and by the one that ran the new algorithm from the start.
    lost: [f64; 3],
    /// Delivered of what the link can carry in the two seconds after the switch, by the same three.
    used: [f64; 3],
    waited_ms: f64,
}

impl Drawn {
    fn begin(&self, algorithm: usize, app: &str) -> World {
        let config = SelectorConfig::new(specs(), Policy::External);
        let selector = Selector::new(SelectorConfig { first: algorithm, ..config });
        let spec = selector.algorithm();
        let steerer = Some(Steerer::Select(Box::new(selector)));
        self.world(Control::Algorithm { spec, steerer }, app)
    }

    /// Every pair on this path.
    fn costs(&self, app: &str) -> Vec<Cost> {
        let worlds: Vec<World> = (0..ALL.len())
            .map(|algorithm| {
                let mut world = self.begin(algorithm, app);
                world.run_until(self.at);
                world
            })
            .collect();
        let stay: Vec<Vec<Counts>> =
            worlds.iter().map(|w| follow(w.clone(), PATIENCE + TWO)).collect();
        let mut costs = Vec::new();
        for (old, world) in worlds.iter().enumerate() {
            for new in (0..ALL.len()).filter(|new| *new != old) {
                for how in [Switch::Full, Switch::Part] {
                    let switched = self.switched(world, new, how, &stay[old], &stay[new]);
                    costs.extend(switched.map(|cost| Cost { pair: (old, new), ..cost }));
                }
            }
        }
        costs
    }

    /// A fork that switches; `None` where nothing had converged in time.
    fn switched(
        &self,
        world: &World,
        new: usize,
        how: Switch,
        old: &[Counts],
        alone: &[Counts],
    ) -> Option<Cost> {
        let mut fork = world.clone();
        let switches = |w: &World| w.flows()[0].governor().switcher().map_or(0, Switcher::switches);
        let before = switches(&fork);
        fork.switch(0, specs()[new], how);
        let mut step = 0;
        while switches(&fork) == before {
            if step == PATIENCE {
                return None;
            }
            step += 1;
            fork.run_until(self.at + STEP * step as u64);
        }
        let after = follow(fork, TWO);
        let from = self.at + STEP * step as u64;
        let most = self.capacity.bytes_between(from, from + STEP * TWO as u64).as_f64().max(1.0);
        let lost = |counts: &[Counts]| {
            let (a, b) = (counts[0], counts[SECOND]);
            // What was on its way to the link may be more than was sent in a second of silence.
            let share = (b.dropped - a.dropped) as f64 / (b.sent - a.sent).max(1) as f64;
            100.0 * share.min(1.0)
        };
        let used = |counts: &[Counts]| {
            100.0 * (counts[TWO].delivered - counts[0].delivered).as_f64() / most
        };
        let (old, alone) = (&old[step..], &alone[step..]);
        Some(Cost {
            recording: self.recording,
            pair: (0, 0),
            how,
            lost: [lost(&after), lost(old), lost(alone)],
            used: [used(&after), used(old), used(alone)],
            waited_ms: step as f64 * STEP.as_millis_f64(),
        })
    }
}

fn specs() -> Vec<Spec> {
    ALL.iter().filter_map(|name| name.parse().ok()).collect()
}

/// What the flow has counted now and after each of so many steps.
fn follow(mut world: World, steps: usize) -> Vec<Counts> {
    let from = world.now();
    let mut counts = vec![Counts::of(&world)];
    for step in 1..=steps {
        world.run_until(from + STEP * step as u64);
        counts.push(Counts::of(&world));
    }
    counts
}

/// `mean [interval]` of a value over recordings, and its median over switches.
fn shown(costs: &[&Cost], value: impl Fn(&Cost) -> f64) -> (String, f64) {
    let mut by_recording: BTreeMap<usize, Sums> = BTreeMap::new();
    for cost in costs {
        let sums = by_recording.entry(cost.recording).or_default();
        *sums = *sums + Sums::of(value(cost), 0.0);
    }
    let units: Vec<Sums> = by_recording.into_values().collect();
    let values: Vec<f64> = costs.iter().map(|cost| value(cost)).collect();
    let median = percentile(&values, 50.0).unwrap_or(f64::NAN);
    let text = match bca(&units, Sums::mean) {
        Some(estimate) => match estimate.ci95 {
            Some([low, high]) => format!("{:5.2} [{low:5.2}, {high:5.2}]", estimate.value),
            None => format!("{:5.2}", estimate.value),
        },
        None => "-".to_owned(),
    };
    (text, median)
}

fn row(name: &str, costs: &[&Cost]) {
    for how in [Switch::Full, Switch::Part] {
        let own: Vec<&Cost> = costs.iter().filter(|cost| cost.how == how).copied().collect();
        let (over_old, median) = shown(&own, |c| c.lost[0] - c.lost[1]);
        let (over_new, _) = shown(&own, |c| c.lost[0] - c.lost[2]);
        let (lost, _) = shown(&own, |c| c.lost[0]);
        let (used, _) = shown(&own, |c| c.used[0] - c.used[1]);
        let (used_new, _) = shown(&own, |c| c.used[0] - c.used[2]);
        let waited = own.iter().map(|c| c.waited_ms).sum::<f64>() / own.len().max(1) as f64;
        println!(
            "{name:22} {:4} {:5} {over_old} {median:5.2} {over_new} {lost} {used} {used_new} {waited:5.0}",
            if how == Switch::Full { "full" } else { "part" },
            own.len(),
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.to_owned());
    let part: Part = arg(0, "validate").parse()?;
    let each: usize = arg(1, "4").parse()?;
    let app = arg(2, "bulk");
    let paths = draw(part, each)?;
    if app == "look" {
        look::print(&paths);
        return Ok(());
    }
    let costs: Vec<Cost> = paths.par_iter().flat_map_iter(|path| path.costs(&app)).collect();
    println!("{} paths of {part}, {app}, {} switches; percent\n", paths.len(), costs.len());
    println!(
        "{:23}how  count lost beyond the old  median beyond the new      lost                \
         used beyond the old     the new                 waited_ms",
        "pair"
    );
    for (old, from) in ALL.iter().enumerate() {
        for (new, to) in ALL.iter().enumerate().filter(|(new, _)| *new != old) {
            let own: Vec<&Cost> = costs.iter().filter(|c| c.pair == (old, new)).collect();
            row(&format!("{from} to {to}"), &own);
        }
    }
    for (new, to) in ALL.iter().enumerate() {
        let own: Vec<&Cost> = costs.iter().filter(|c| c.pair.1 == new).collect();
        row(&format!("any to {to}"), &own);
    }
    row("all", &costs.iter().collect::<Vec<_>>());
    Ok(())
}
