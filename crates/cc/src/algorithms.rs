//! The table of all algorithms. A new one is a file of its own and a line in each half of this one.

use enum_dispatch::enum_dispatch;

use crate::muses::{self, Muses};
use crate::{Bbr, Bbr3, Config, Copa, Cubic, Knob, NewReno, Vegas, Vivace, Westwood};

/// Any of the algorithms, dispatched without allocation or virtual calls.
#[enum_dispatch(CongestionControl, Migrate)]
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would allocate in every clone and fork; which variants differ much comes and goes"
)]
pub enum Controller {
    /// RFC 5681, RFC 6582, RFC 9002 §7.
    NewReno,
    /// Linux `tcp_bbr.c`.
    Bbr,
    /// draft-ietf-ccwg-bbr.
    Bbr3,
    /// RFC 9438.
    Cubic,
    /// NSDI 2018.
    Copa,
    /// SIGCOMM 1994.
    Vegas,
    /// Westwood+.
    Westwood,
    /// INFOCOM 2022.
    Muses,
    /// NSDI 2018, as deployed.
    Vivace,
}

impl Controller {
    /// The name of the algorithm, as in [`ALGORITHMS`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::NewReno(_) => "newreno",
            Self::Bbr(_) => "bbr",
            Self::Bbr3(_) => "bbr3",
            Self::Cubic(_) => "cubic",
            Self::Copa(_) => "copa",
            Self::Vegas(_) => "vegas",
            Self::Westwood(_) => "westwood",
            Self::Muses(_) => muses::DRIVEN.name,
            Self::Vivace(_) => "vivace",
        }
    }
}

/// A named set of knob values.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name: `mit` in `copa:mit`.
    pub name: &'static str,
    /// The knobs that it sets.
    pub knobs: &'static [(&'static str, f64)],
    /// What it is for, in one sentence.
    pub about: &'static str,
}

/// An algorithm of the table.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The paper, RFC or draft that it implements.
    pub source: &'static str,
    /// Its knobs.
    pub knobs: &'static [Knob],
    /// Its presets.
    pub presets: &'static [Preset],
    /// Builds one with every knob at its default.
    pub build: fn(&Config) -> Controller,
}

/// Every algorithm. Command line help, documentation and the tests that run "for every algorithm"
/// read this table.
pub static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "newreno",
        about: "loss-based additive increase, multiplicative decrease: the baseline of the \
                standards",
        source: "RFC 5681, RFC 6582, RFC 9002 section 7",
        knobs: NewReno::KNOBS,
        presets: NewReno::PRESETS,
        build: |config| NewReno::new(config).into(),
    },
    Algorithm {
        name: "cubic",
        about: "loss-based, the window a cubic function of time: what most of the Internet runs",
        source: "RFC 9438 with HyStart++ (RFC 9406)",
        knobs: Cubic::KNOBS,
        presets: Cubic::PRESETS,
        build: |config| Cubic::new(config).into(),
    },
    Algorithm {
        name: "copa",
        about: "delay-based: keeps about 1/delta packets in the queue, so one knob trades delay \
                against throughput",
        source: "Arun and Balakrishnan, NSDI 2018",
        knobs: Copa::KNOBS,
        presets: Copa::PRESETS,
        build: |config| Copa::new(config).into(),
    },
    Algorithm {
        name: "bbr",
        about: "BBR version 1: paces at the largest delivery rate of ten rounds, deaf to loss",
        source: "Linux tcp_bbr.c; Cardwell et al., ACM Queue 14:5, 2016",
        knobs: Bbr::KNOBS,
        presets: &[],
        build: |config| Bbr::new(config).into(),
    },
    Algorithm {
        name: "bbr3",
        about: "BBR version 3: as version 1, but loss bounds what it keeps in flight, and probes are rarer",
        source: "draft-ietf-ccwg-bbr",
        knobs: Bbr3::KNOBS,
        presets: &[],
        build: |config| Bbr3::new(config).into(),
    },
    Algorithm {
        name: "vegas",
        about: "delay-based: keeps two to four packets in the queue; starves beside loss-based flows",
        source: "Brakmo, O'Malley and Peterson, SIGCOMM 1994; Linux tcp_vegas.c",
        knobs: Vegas::KNOBS,
        presets: &[],
        build: |config| Vegas::new(config).into(),
    },
    Algorithm {
        name: "westwood",
        about: "as newreno, but a loss leaves the window that the path was measured to carry",
        source: "Grieco and Mascolo, 2004 (Westwood+); Linux tcp_westwood.c",
        knobs: Westwood::KNOBS,
        presets: &[],
        build: |config| Westwood::new(config).into(),
    },
    Algorithm {
        name: "vivace",
        about: "PCC Vivace as deployed, not as published (vivace:plain): climbs the gradient of a utility of rate, loss and \
                delay growth",
        source: "Dong et al., NSDI 2018; PCC customization section 5",
        knobs: Vivace::KNOBS,
        presets: Vivace::PRESETS,
        build: |config| Vivace::new(config).into(),
    },
];

/// The algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}
