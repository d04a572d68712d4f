//! The table of all algorithms. A new one is a file of its own, its `mod` in `lib.rs`, and a line here.

use enum_dispatch::enum_dispatch;

use crate::muses::{self, Muses};
#[cfg(feature = "plugin")]
use crate::plugin::Plugged;
use crate::{Config, Knob};
#[cfg(feature = "rivals")]
use crate::{
    astraea::{self, Astraea},
    aurora::mocc::{self, Mocc},
    aurora::{self, Aurora},
    indigo::{self, Indigo},
    orca::{self, Orca},
    remy::{self, Remy},
};

/// Each algorithm is `TYPE in MODULE,`, in the order in which they are listed, with `if "FEATURE"`
/// where it needs one. The module has an `ENTRY`.
macro_rules! algorithms {
    ($($(#[$about:meta])* $Type:ident in $($module:ident)::+ $(if $feature:literal)?,)*) => {
        $($(#[cfg(feature = $feature)])? pub use $($module)::+::$Type;)*

        /// Any of the algorithms, dispatched without allocation or virtual calls.
        #[enum_dispatch(CongestionControl, Migrate)]
        #[derive(Clone, Debug)]
        #[allow(
            clippy::large_enum_variant,
            reason = "a box would allocate in every clone and fork; which variants differ much comes and goes"
        )]
        pub enum Controller {
            $($(#[cfg(feature = $feature)])? $(#[$about])* $Type,)*
            /// INFOCOM 2022. It is nothing without a model, so it is not in the table.
            Muses,
            #[cfg(feature = "plugin")]
            /// From outside of this crate. The table is of what is in it.
            Plugged,
            /// SIGCOMM 2013. It is nothing without a table, so it is not in the table here.
            #[cfg(feature = "rivals")]
            Remy,
            /// ATC 2018. It is nothing without a network.
            #[cfg(feature = "rivals")]
            Indigo,
            /// ICML 2019. It is nothing without a network.
            #[cfg(feature = "rivals")]
            Aurora,
            /// EuroSys 2022, on Aurora. It is nothing without a network.
            #[cfg(feature = "rivals")]
            Mocc,
            /// SIGCOMM 2020. It is nothing without a network.
            #[cfg(feature = "rivals")]
            Orca,
            /// EuroSys 2024. It is nothing without a network.
            #[cfg(feature = "rivals")]
            Astraea,
        }

        impl Controller {
            /// The name of the algorithm, as in [`ALGORITHMS`].
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$Type(_) => $($module)::+::ENTRY.name,)*
                    Self::Muses(_) => muses::DRIVEN.name,
                    #[cfg(feature = "plugin")]
                    Self::Plugged(plugged) => plugged.name(),
                    #[cfg(feature = "rivals")]
                    Self::Remy(_) => remy::NAME,
                    #[cfg(feature = "rivals")]
                    Self::Indigo(_) => indigo::NAME,
                    #[cfg(feature = "rivals")]
                    Self::Aurora(_) => aurora::NAME,
                    #[cfg(feature = "rivals")]
                    Self::Mocc(_) => mocc::NAME,
                    #[cfg(feature = "rivals")]
                    Self::Orca(_) => orca::NAME,
                    #[cfg(feature = "rivals")]
                    Self::Astraea(_) => astraea::NAME,
                }
            }
        }

        /// Every algorithm. Command line help, documentation and the tests that run "for every
        /// algorithm" read this table.
        pub static ALGORITHMS: &[Algorithm] = &[$($(#[cfg(feature = $feature)])? $($module)::+::ENTRY,)*];
    };
}

algorithms! {
    /// RFC 5681, RFC 6582, RFC 9002 §7.
    NewReno in crate::newreno,
    /// RFC 9438.
    Cubic in crate::cubic,
    /// NSDI 2018.
    Copa in crate::copa,
    /// Linux `tcp_bbr.c`.
    Bbr in crate::bbr::v1,
    /// draft-ietf-ccwg-bbr.
    Bbr3 in crate::bbr::v3,
    /// SIGCOMM 1994.
    Vegas in crate::vegas,
    /// Westwood+.
    Westwood in crate::westwood,
    /// NSDI 2018, as deployed.
    Vivace in crate::vivace,
    /// RFC 6817.
    Ledbat in crate::ledbat,
    /// Performance Evaluation 2008, Linux `tcp_illinois.c`.
    Illinois in crate::illinois,
    /// JSAC 2019, on CUBIC.
    C2tcp in crate::cubic::c2tcp if "rivals",
    /// NSDI 2015.
    Allegro in crate::allegro if "rivals",
    /// NSDI 2013.
    Sprout in crate::sprout if "rivals",
    /// SIGCOMM 2015.
    Verus in crate::verus if "rivals",
    /// MMSys 2016, libwebrtc `goog_cc`.
    Gcc in crate::gcc if "media",
    /// RFC 8698.
    Nada in crate::nada if "media",
    /// draft-ietf-rmcat-rfc8298bis.
    Scream in crate::scream if "media",
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

/// The algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}
