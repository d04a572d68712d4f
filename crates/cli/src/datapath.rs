//! The datapaths of `trimtab compare`: a new one is a line here.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::{Scenario, TransportKind};
use trimtab_testbed::Rig;

use crate::Failure;

/// A datapath on the command line.
#[derive(Debug)]
pub(crate) struct Entry {
    name: &'static str,
    /// A former name, which still works.
    alias: Option<&'static str>,
    about: &'static str,
    /// The transport of a scenario, where the user names none; `None` leaves it to the scenario.
    pub(crate) transport: Option<TransportKind>,
    /// Makes it ready for a scenario.
    pub(crate) open: fn(&Scenario) -> Result<Box<dyn Datapath>, Failure>,
}

static DATAPATHS: [Entry; 7] = [
    Entry {
        name: "sim",
        alias: None,
        about: "The simulator",
        transport: None,
        open: |_| Ok(Box::new(Simulator)),
    },
    Entry {
        name: "kernel",
        alias: Some("tcp"),
        about: "This machine's kernel: real sockets, eBPF, an emulated link",
        transport: Some(TransportKind::Tcp),
        open: |scenario| Ok(Box::new(Rig::new(scenario).map_err(Failure::input)?)),
    },
    Entry {
        name: "quic-virtual",
        alias: None,
        about: "noq, a QUIC stack, in virtual time over the simulator's link",
        transport: None,
        open: quic::in_virtual_time,
    },
    Entry {
        name: "quic",
        alias: None,
        about: "noq over real sockets and an emulated link",
        transport: None,
        open: quic::over_sockets,
    },
    Entry {
        name: "s2n-virtual",
        alias: None,
        about: "s2n-quic in virtual time over the simulator's link; builds with --features s2n",
        transport: None,
        open: s2n::in_virtual_time,
    },
    Entry {
        name: "webrtc-virtual",
        alias: None,
        about: "Calls over WebRTC's interceptors in virtual time; builds with --features webrtc",
        transport: None,
        open: webrtc::in_virtual_time,
    },
    Entry {
        name: "webrtc",
        alias: None,
        about: "Calls to Chromium over an emulated link; builds with --features webrtc",
        transport: None,
        open: webrtc::to_a_browser,
    },
];

#[cfg(feature = "quic")]
mod quic {
    use trimtab_quic::{Real, Virtual};

    use super::{Datapath, Failure, Scenario};

    pub(super) fn in_virtual_time(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Ok(Box::new(Virtual::new(scenario).map_err(Failure::input)?))
    }

    pub(super) fn over_sockets(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Ok(Box::new(Real::new(scenario).map_err(Failure::input)?))
    }
}

#[cfg(feature = "s2n")]
mod s2n {
    use trimtab_quic::S2nVirtual;

    use super::{Datapath, Failure, Scenario};

    pub(super) fn in_virtual_time(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Ok(Box::new(S2nVirtual::new(scenario).map_err(Failure::input)?))
    }
}

#[cfg(feature = "webrtc")]
mod webrtc {
    use trimtab_webrtc::{Browsers, Virtual};

    use super::{Datapath, Failure, Scenario};

    pub(super) fn in_virtual_time(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Ok(Box::new(Virtual::new(scenario).map_err(Failure::input)?))
    }

    pub(super) fn to_a_browser(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Ok(Box::new(Browsers::new(scenario).map_err(Failure::input)?))
    }
}

#[cfg(not(feature = "webrtc"))]
mod webrtc {
    use super::{Datapath, Failure, Scenario};

    pub(super) fn to_a_browser(_: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Err(Failure::input(
            "this trimtab was built without WebRTC: build it with ./dev build, or with cargo build \
             --release -p trimtab --features webrtc",
        ))
    }

    pub(super) use to_a_browser as in_virtual_time;
}

#[cfg(not(feature = "s2n"))]
mod s2n {
    use super::{Datapath, Failure, Scenario};

    pub(super) fn in_virtual_time(_: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Err(Failure::input(
            "this trimtab was built without s2n-quic: build it with cargo build --release \
             -p trimtab --features s2n",
        ))
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    use super::{Datapath, Failure, Scenario};

    pub(super) fn in_virtual_time(_: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
        Err(Failure::input(
            "this trimtab was built without QUIC: build it with ./dev build, or with cargo build \
             --release -p trimtab --features quic",
        ))
    }

    pub(super) use in_virtual_time as over_sockets;
}

/// The datapath of this name.
pub(crate) fn named(name: &str) -> Result<&'static Entry, Failure> {
    DATAPATHS.iter().find(|entry| entry.is(name)).ok_or_else(|| {
        let names: Vec<&str> = DATAPATHS.iter().map(|entry| entry.name).collect();
        Failure::input(format!("no datapath {name:?}: there are {}", names.join(", ")))
    })
}

impl Entry {
    fn is(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }
}

/// Parses the name of a datapath.
pub(crate) fn parser() -> impl TypedValueParser<Value = &'static Entry> {
    let names = DATAPATHS
        .iter()
        .map(|entry| PossibleValue::new(entry.name).aliases(entry.alias).help(entry.about));
    PossibleValuesParser::new(names).map(|name| {
        named(&name).unwrap_or_else(|_| unreachable!("the parser takes these names only"))
    })
}
