//! What the schemes that choose among algorithms did in a run.

use trimtab_steer::Insight;

use crate::result::{RunRecord, SelectionsRecord};
use crate::stats::summary::in_order;

/// What the selectors of these flows did, by what their steerings show; `None` where nothing
/// chooses, or somebody outside does.
pub fn record(flows: impl Iterator<Item = Insight>) -> Option<SelectionsRecord> {
    let all = flows.filter_map(|insight| insight.selections);
    all.fold(None, |sum: Option<SelectionsRecord>, s| {
        let mut sum = sum.unwrap_or_default();
        sum.made += s.made;
        sum.changed += s.changed;
        sum.fallbacks += s.fallbacks;
        sum.reverts += s.reverts;
        sum.distrust = sum.distrust.or_else(|| s.distrust.map(|d| d.to_string()));
        Some(sum)
    })
}

/// A sentence per scheme whose policy had no answer somewhere: said once, not for every run.
pub(crate) fn fallbacks(runs: &[RunRecord]) -> Vec<String> {
    let of = |cc: &str| {
        let own = runs.iter().filter(|r| r.cc == cc).filter_map(|r| r.selections.as_ref());
        let (mut made, mut fallbacks, mut why) = (0, 0, None);
        for selections in own {
            made += selections.made;
            fallbacks += selections.fallbacks;
            why = why.or(selections.distrust.as_deref());
        }
        why.map(|why| {
            format!(
                "{cc}: the policy declined {fallbacks} of {made} selections, and the fallback was \
                 chosen; the first time because {why}"
            )
        })
    };
    in_order(runs.iter().map(|r| r.cc.as_str())).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(cc: &str) -> crate::scenario::Scenario {
        crate::scenario::Scenario::parse(&format!(
            "cc = [{cc:?}]\ntraces = [\"constant:8Mbit/s\"]\nduration = \"40s\"\nrtt = \"300ms\"\n\
             flows = 2\n[[app]]\nkind = \"web\"\n"
        ))
        .unwrap()
    }

    #[test]
    fn a_model_chooses() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/model/small");
        // It prefers CUBIC where the round-trip time says more than the loss.
        let scenario = scenario(&format!("floo+mortise:model={file}"));
        let effort = crate::run::pool::Effort { jobs: None, quiet: true };
        let recording = crate::run::Recording::default();
        let c = crate::compare::compare(
            &scenario,
            effort,
            recording,
            "x",
            &crate::run::simulator::Simulator,
        )
        .unwrap();
        let selections = c.runs[0].selections.as_ref().unwrap();
        assert_eq!((selections.made, selections.fallbacks), (6, 0), "two flows, three periods");
        assert_eq!(selections.changed, 0, "it began with CUBIC");
    }

    #[test]
    fn what_ships_is_ready() {
        for cc in [
            "floo",
            "floo:counterfactual",
            "floo:shared",
            "floo:paper",
            "floo:p90",
            "floo+mortise",
            "select:antelope",
            "select:antelope:paper",
            "select:antelope:copa",
        ] {
            assert!(crate::run::prepare::prepare(&scenario(cc).plan().unwrap()).is_ok(), "{cc}");
        }
    }

    #[test]
    fn a_model_that_is_not_there_is_known_before_anything_runs() {
        let plan = scenario("floo:model=nowhere/at-all.safetensors").plan().unwrap();
        let e = crate::run::prepare::prepare(&plan).unwrap_err().to_string();
        assert!(e.contains("nowhere/at-all.safetensors") && e.contains("floo:model=FILE"), "{e}");
        let plan = scenario(concat!("floo:model=", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let e = crate::run::prepare::prepare(&plan.plan().unwrap()).unwrap_err().to_string();
        assert!(e.contains("no safetensors file"), "{e}");
    }

    #[test]
    fn what_had_no_answer_is_said_once() {
        let with = |cc: &str, seed, fallbacks, distrust: Option<&str>| RunRecord {
            selections: Some(SelectionsRecord {
                made: 10,
                changed: 3,
                fallbacks,
                reverts: 0,
                distrust: distrust.map(str::to_owned),
            }),
            ..crate::testing::run(cc, "t", seed, 1.0)
        };
        let runs = [
            with("floo", 0, 0, None),
            with("floo", 1, 4, Some("rtt_min is not finite")),
            with("floo", 2, 1, Some("there is no model")),
            with("select:power", 0, 0, None),
            crate::testing::run("cubic", "t", 0, 1.0),
        ];
        assert_eq!(
            fallbacks(&runs),
            ["floo: the policy declined 5 of 30 selections, and the fallback was chosen; the \
                 first time because rtt_min is not finite"]
        );
    }
}
