//! What a look after each switch is worth to Floo: completion times of web pages over three minutes
//! with it, vs. the same run without.

use rayon::prelude::*;
use trimtab_apps::{Application, Outcome, RequestRecord};
use trimtab_lab::stats::{Sums, bca};
use trimtab_sim::Control;
use trimtab_steer::scheme::{By, Selection};
use trimtab_steer::{Selections, Steer, Steerer};
use trimtab_units::{Duration, Time};

use crate::paths::Drawn;

const LENGTH: Duration = Duration::from_secs(180);
const LOOKS_S: [u64; 3] = [0, 2, 3];

/// Mean completion time in s, and what was selected; `None` where nothing was completed.
fn run(path: &Drawn, policy: &'static str, look_s: u64) -> Option<(f64, Selections)> {
    let by = By::Shipped(policy);
    let model = by.read(by.shipped()?).ok()?;
    let look = (look_s > 0).then(|| Duration::from_secs(look_s));
    let selector = Selection { look, ..Selection::by(by) }.selector(&Ok(model), &|_| true);
    let spec = selector.algorithm();
    let steerer = Some(Steerer::Select(Box::new(selector)));
    let mut world = path.world(Control::Algorithm { spec, steerer }, "web");
    world.run_until(Time::ZERO + LENGTH);
    let flow = &world.flows()[0];
    let Outcome::Requests(requests) = flow.app().outcome(world.now()) else { return None };
    let times: Vec<f64> = requests
        .iter()
        .filter_map(RequestRecord::completion_time)
        .map(Duration::as_secs_f64)
        .collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let selections = flow.steerer()?.insight().selections?;
    mean.is_finite().then_some((mean, selections))
}

/// Prints a row for each policy and look.
pub(crate) fn print(paths: &[Drawn]) {
    println!("policy               look  switches reverts  completion time vs. without a look");
    for policy in ["floo", "floo-counterfactual"] {
        let runs: Vec<_> = paths
            .par_iter()
            .map(|path| (path.recording, LOOKS_S.map(|look_s| run(path, policy, look_s))))
            .collect();
        for (i, look_s) in LOOKS_S.into_iter().enumerate() {
            let (mut changed, mut reverts) = (0, 0);
            let mut units = std::collections::BTreeMap::<usize, Sums>::new();
            for (recording, run) in &runs {
                let (Some((without, _)), Some((with, done))) = (&run[0], &run[i]) else { continue };
                (changed, reverts) = (changed + done.changed, reverts + done.reverts);
                let unit = units.entry(*recording).or_default();
                *unit = *unit + Sums::of((with / without).ln(), 0.0);
            }
            let units: Vec<Sums> = units.into_values().collect();
            let Some(change) = bca(&units, Sums::mean) else { continue };
            let percent = |log: f64| 100.0 * (log.exp() - 1.0);
            let ci95 = change.ci95.map_or_else(String::new, |[low, high]| {
                format!(" [{:+.1}%, {:+.1}%]", percent(low), percent(high))
            });
            println!(
                "{policy:20} {look_s:3}s {changed:9} {reverts:7}  {:+.1}%{ci95}",
                percent(change.value)
            );
        }
    }
}
