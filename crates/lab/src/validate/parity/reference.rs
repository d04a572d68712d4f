//! The datapaths that a model is compared with: a new one is an entry here.

use crate::scenario::{Scenario, TransportKind};

use super::quantity::{
    Band, LOSS, QUEUE_DELAY, Quantity, RCT_P50, RETRANSMITS, RTT_P95, THROUGHPUT,
};

/// A datapath, and how near a model has to come to it.
#[derive(Debug)]
pub(super) struct Reference {
    /// Its name in records.
    pub(super) name: &'static str,
    /// A former name in records.
    alias: Option<&'static str>,
    /// Makes the model's scenario from its own.
    pub(super) translate: fn(&mut Scenario),
    /// What is compared, and the bands, which medians over cells have to keep.
    pub(super) bands: &'static [(&'static Quantity, Band)],
}

pub(super) static REFERENCES: [Reference; 4] = [
    Reference {
        name: "kernel",
        // In schema 1 of comparisons.
        alias: Some("tcp"),
        translate: |scenario| {
            scenario.transport = TransportKind::Tcp;
            scenario.cc.iter_mut().for_each(|cc| *cc = cc.as_in_linux());
        },
        bands: &[
            (&THROUGHPUT, Band::percent(5.0)),
            (&RTT_P95, Band::percent(15.0)),
            (&RETRANSMITS, Band::absolute(0.5)),
            (&RCT_P50, Band::percent(10.0)),
        ],
    },
    Reference { name: "quic-virtual", alias: None, translate: as_noq, bands: &IN_VIRTUAL_TIME },
    Reference {
        name: "quic",
        alias: None,
        translate: as_noq,
        bands: &[
            (&THROUGHPUT, Band::percent(3.0)),
            (&QUEUE_DELAY, Band::percent(15.0).or(2.0)),
            (&LOSS, Band::percent(15.0).or(0.5)),
            (&RCT_P50, Band::percent(10.0)),
        ],
    },
    Reference {
        name: "s2n-virtual",
        alias: None,
        // Our adapter for s2n-quic paces by a bucket like noq's.
        translate: as_noq,
        bands: &IN_VIRTUAL_TIME,
    },
];

/// The bands of a QUIC stack in virtual time.
static IN_VIRTUAL_TIME: [(&Quantity, Band); 4] = [
    (&THROUGHPUT, Band::percent(2.0)),
    (&QUEUE_DELAY, Band::percent(15.0).or(2.0)),
    (&LOSS, Band::percent(15.0).or(0.5)),
    (&RCT_P50, Band::percent(5.0)),
];

/// The simulator paces as noq does; noq itself takes it for QUIC.
fn as_noq(scenario: &mut Scenario) {
    scenario.transport = TransportKind::Noq;
}

/// The reference of this name in records.
pub(super) fn find(datapath: &str) -> Option<&'static Reference> {
    REFERENCES.iter().find(|r| r.name == datapath || r.alias == Some(datapath))
}

/// The names of all, for a command line: `kernel|quic-virtual|quic|s2n-virtual`.
pub(super) fn names() -> String {
    REFERENCES.each_ref().map(|r| r.name).join("|")
}
