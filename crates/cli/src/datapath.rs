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

static DATAPATHS: [Entry; 3] = [
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
        open: quic_virtual,
    },
];

#[cfg(feature = "quic")]
fn quic_virtual(scenario: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
    Ok(Box::new(trimtab_quic::Virtual::new(scenario).map_err(Failure::input)?))
}

#[cfg(not(feature = "quic"))]
fn quic_virtual(_: &Scenario) -> Result<Box<dyn Datapath>, Failure> {
    Err(Failure::input(
        "this trimtab was built without QUIC: build it with ./dev build, or with cargo build \
         --release -p trimtab --features quic",
    ))
}

/// Parses the name of a datapath.
pub(crate) fn parser() -> impl TypedValueParser<Value = &'static Entry> {
    let names = DATAPATHS
        .iter()
        .map(|entry| PossibleValue::new(entry.name).aliases(entry.alias).help(entry.about));
    PossibleValuesParser::new(names).map(|name| {
        let is = |entry: &&Entry| entry.name == name || entry.alias == Some(&name);
        let entry = DATAPATHS.iter().find(is);
        entry.unwrap_or_else(|| unreachable!("the parser takes these names only"))
    })
}
