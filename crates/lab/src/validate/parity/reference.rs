//! The datapaths that a model is compared with: a new one is an entry here.

use crate::scenario::{Scenario, TransportKind};

use super::quantity::{
    Band, Bar, FRAME_DELAY_P95, FREEZES, LOSS, QUEUE_DELAY, Quantity, RCT_P50, RETRANSMITS,
    RTT_P95, TARGET, THROUGHPUT,
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
    /// What is compared, and the bands.
    pub(super) bands: &'static [(&'static Quantity, Band)],
    /// How many cells have to keep them.
    pub(super) bar: Bar,
}

pub(super) static REFERENCES: [Reference; 6] = [
    Reference {
        name: "kernel",
        // In schema 1 of comparisons.
        alias: Some("tcp"),
        translate: |scenario| {
            scenario.transport = TransportKind::Tcp;
            scenario.schemes_mut().for_each(|cc| *cc = cc.as_in_linux());
        },
        bands: &[
            (&THROUGHPUT, Band::percent(5.0)),
            (&RTT_P95, Band::percent(15.0)),
            (&RETRANSMITS, Band::absolute(0.5)),
            (&RCT_P50, Band::percent(10.0)),
        ],
        bar: Bar::Median,
    },
    Reference {
        name: "quic-virtual",
        alias: None,
        translate: as_noq,
        bands: &IN_VIRTUAL_TIME,
        bar: Bar::Median,
    },
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
        bar: Bar::Median,
    },
    Reference {
        name: "s2n-virtual",
        alias: None,
        // Our adapter for s2n-quic paces by a bucket like noq's.
        translate: as_noq,
        bands: &IN_VIRTUAL_TIME,
        bar: Bar::Median,
    },
    Reference {
        name: "webrtc-virtual",
        alias: None,
        translate: |_| {},
        bands: &OF_CALLS,
        bar: Bar::NineInTen,
    },
    Reference {
        name: "webrtc",
        alias: None,
        translate: |_| {},
        bands: &OF_CALLS,
        bar: Bar::NineInTen,
    },
];

/// The bands of calls. Frames come with a refresh of the screen, so delays differ by 16.7 ms or not at
/// all.
static OF_CALLS: [(&Quantity, Band); 3] = [
    (&TARGET, Band::percent(5.0)),
    (&FRAME_DELAY_P95, Band::percent(15.0).or(17.0)),
    (&FREEZES, Band::absolute(1.0)),
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

/// The names of all, for a command line: `kernel|quic-virtual|…`.
pub(super) fn names() -> String {
    REFERENCES.each_ref().map(|r| r.name).join("|")
}
