//! The algorithms other than Copa that Mortise steers, and what boldness does to their knobs.

use libm::pow;
use trimtab_cc::{Bbr3, Cubic, Gcc, Knob, Spec, Vivace};

use crate::KnobValues;

/// An algorithm whose boldness can be steered. As in Mortise-GCC (Mortise §C.1) one number stands
/// for all of its knobs: −1 is as shy as it gets, 0 where flows start, and 1 as bold as it gets.
#[derive(Debug)]
pub struct Tuned {
    name: &'static str,
    /// Knobs that boldness leaves alone, and what Mortise sets them to.
    set: &'static [(&'static str, f64)],
    /// How bold flows start where the link is always idle. Media leaves a link idle between frames.
    pub(super) bold_when_idle: f64,
    knobs: &'static [Turned],
}

/// A knob that turns with boldness, by ratio: what changes by the same factor with each step is its
/// distance to `pivot`, which is 0 for most, and 1 for the share of a window that a loss leaves.
#[derive(Debug)]
struct Turned {
    knob: Knob,
    pivot: f64,
    shyest: f64,
    /// Where flows start.
    origin: f64,
    boldest: f64,
}

impl Turned {
    /// Starts elsewhere than at the knob's default.
    const fn from(mut self, origin: f64) -> Self {
        self.origin = origin;
        self
    }
}

const fn turned(knobs: &[Knob], name: &str, pivot: f64, shyest: f64, boldest: f64) -> Turned {
    let knob = Knob::named(knobs, name);
    Turned { origin: knob.default, knob, pivot, shyest, boldest }
}

/// All of them. Of each algorithm but GCC these are the knobs whose constant value changes what
/// users of downloads get. Other flows do not starve by them, and no other knob adds to them:
/// `trimtab compare --scenario scenarios/mortise/grid.toml --split validate --cc bbr3 --cc
/// bbr3:loss_thresh=0.05`, and so on.
static ALL: [Tuned; 4] = [
    Tuned {
        name: "bbr3",
        set: &[],
        bold_when_idle: 1.0,
        knobs: &[turned(Bbr3::KNOBS, "loss_thresh", 0.0, 0.01, 0.1)],
    },
    // Not its latency_filter: a flow that overlooks more of a growing queue starves others.
    Tuned {
        name: "vivace",
        set: &[],
        bold_when_idle: 1.0,
        knobs: &[turned(Vivace::KNOBS, "loss_filter", 0.0, 0.005, 0.1)],
    },
    Tuned {
        name: "cubic",
        set: &[],
        bold_when_idle: 1.0,
        knobs: &[
            turned(Cubic::KNOBS, "beta", 1.0, 0.5, 0.95),
            turned(Cubic::KNOBS, "c", 0.0, 0.1, 4.0),
        ],
    },
    // Growth, decrease and step are the three of Mortise-GCC (Mortise §C.1), whose values the paper
    // leaves out: the growth is what is above 1, and the decrease what is taken. Where they and the
    // others start was chosen on `--split train` of scenarios/mortise/fig20-conference.toml.
    Tuned {
        name: "gcc",
        set: &[("competitive", 1.0), ("probe_busy", 3.0), ("queue", 0.15)],
        bold_when_idle: 0.0,
        knobs: &[
            turned(Gcc::KNOBS, "growth", 1.0, 1.02, 1.14),
            turned(Gcc::KNOBS, "decrease", 1.0, 0.77, 0.93),
            turned(Gcc::KNOBS, "step", 0.0, 1.0, 16.0).from(4.0),
            turned(Gcc::KNOBS, "gain", 0.0, 20.0, 5.0).from(10.0),
            turned(Gcc::KNOBS, "probe_share", 0.0, 0.7, 0.95).from(0.8),
        ],
    },
];

impl Tuned {
    /// The algorithm of this name; `None` where it cannot be steered.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|tuned| tuned.name == name)
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|tuned| tuned.name)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The algorithm as flows start with it.
    ///
    /// # Panics
    /// Never: a test builds all.
    pub fn algorithm(&self) -> Spec {
        let mut spec = Spec::new(self.name).expect("an algorithm of the table");
        let origins = self.knobs.iter().map(|turned| (turned.knob.name, turned.origin));
        for (knob, value) in self.set.iter().copied().chain(origins) {
            spec.set(knob, value).expect("within the knob's range");
        }
        spec
    }

    /// The values of its knobs with this boldness, −1 to 1.
    pub(super) fn at(&self, boldness: f64) -> KnobValues {
        self.knobs.iter().map(|turned| (turned.knob.name, turned.at(boldness))).collect()
    }
}

impl Turned {
    fn at(&self, boldness: f64) -> f64 {
        let end = if boldness < 0.0 { self.shyest } else { self.boldest };
        let origin = self.origin - self.pivot;
        self.pivot + origin * pow((end - self.pivot) / origin, boldness.abs().min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::Config;

    use super::*;

    /// A line of the table that its algorithm would refuse fails here.
    #[test]
    fn boldness_runs_from_the_shyest_over_the_origin_to_the_boldest() {
        for tuned in &ALL {
            let mut cca = tuned.algorithm().build(&Config::default());
            let defaults = KnobValues::of(&cca);
            for (i, turned) in tuned.knobs.iter().enumerate() {
                let value = |boldness| tuned.at(boldness).iter().nth(i).unwrap().1;
                let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
                assert!(near(value(-1.0), turned.shyest) && near(value(1.0), turned.boldest));
                assert_eq!(Some(value(0.0)), defaults.get(turned.knob.name));
                let way = (turned.boldest - turned.shyest).signum();
                let values: Vec<_> = (-4..=4).map(|k| way * value(f64::from(k) / 4.0)).collect();
                assert!(values.is_sorted(), "{} {values:?}", turned.knob.name);
            }
            for boldness in [-1.0, -0.5, 0.3, 1.0] {
                tuned.at(boldness).apply(&mut cca).unwrap();
                assert_eq!(cca.name(), tuned.name);
            }
        }
    }

    #[test]
    fn knobs_turn_by_ratio() {
        let of = |name: &str, boldness| Tuned::find(name).unwrap().at(boldness);
        let thresh = of("bbr3", 0.5).get("loss_thresh").unwrap();
        assert!((thresh - (0.02_f64 * 0.1).sqrt()).abs() < 1e-12, "{thresh}");
        // What a loss takes of the window: from 30% half of the way to 5%.
        let beta = of("cubic", 0.5).get("beta").unwrap();
        assert!((1.0 - beta - (0.3_f64 * 0.05).sqrt()).abs() < 1e-12, "{beta}");
        // 8% in a second, half of the way to 14%; a step of 4, half of the way to 16.
        let gcc = of("gcc", 0.5);
        let growth = gcc.get("growth").unwrap();
        assert!((growth - 1.0 - (0.08_f64 * 0.14).sqrt()).abs() < 1e-12, "{growth}");
        assert_eq!(gcc.get("step"), Some(8.0));
        assert!(Tuned::find("reno").is_none());
    }
}
