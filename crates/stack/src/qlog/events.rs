//! The records of a log. Times are in milliseconds, sizes in bytes, rates in bit/s, as qlog has them.

use serde::{Serialize, Serializer};
use trimtab_qoe::Factors;
use trimtab_steer::KnobValues;
use trimtab_units::Duration;

/// Milliseconds, to the microsecond.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// The first record of a file (main schema §3.2, §5).
#[derive(Debug, Serialize)]
pub(super) struct Header<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'a str,
    description: &'static str,
    trace: TraceHeader<'a>,
}

/// What all events have in common.
#[derive(Debug, Serialize)]
struct TraceHeader<'a> {
    title: &'a str,
    vantage_point: VantagePointHeader,
    common_fields: CommonFields<'a>,
}

#[derive(Debug, Serialize)]
struct VantagePointHeader {
    name: &'static str,
    #[serde(rename = "type")]
    of: VantagePoint,
}

/// The end of the connection that logs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VantagePoint {
    Client,
    Server,
    Unknown,
}

#[derive(Debug, Serialize)]
struct CommonFields<'a> {
    group_id: &'a str,
    protocol_type: [&'static str; 1],
    time_format: &'static str,
    reference_time: f64,
}

impl<'a> Header<'a> {
    /// Of a log that begins when the clock has come so far since 1970, or since another zero.
    pub(super) fn new(
        title: &'a str,
        group_id: &'a str,
        vantage: VantagePoint,
        clock: Duration,
    ) -> Self {
        let common_fields = CommonFields {
            group_id,
            protocol_type: ["QUIC"],
            time_format: "relative",
            reference_time: millis(clock),
        };
        let vantage_point = VantagePointHeader { name: "trimtab", of: vantage };
        Self {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            description: "congestion control of one path, and its steering",
            trace: TraceHeader { title, vantage_point, common_fields },
        }
    }
}

/// Any other record.
#[derive(Debug, Serialize)]
pub(super) struct Record<T> {
    pub(super) time: f64,
    pub(super) name: &'static str,
    pub(super) data: T,
}

/// `recovery:parameters_set` (quic-events §7.2). The scheme is a field of our own.
#[derive(Debug, Default, Serialize)]
pub(super) struct Parameters<'a> {
    pub(super) max_datagram_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) initial_congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum_congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheme: Option<&'a str>,
}

/// `recovery:metrics_updated` (quic-events §7.3). What is absent has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rtt_variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pacing_rate: Option<u64>,
}

impl Metrics {
    /// Those that differ from these.
    pub(super) fn changed_since(&self, before: &Self) -> Self {
        fn changed<T: PartialEq + Copy>(now: Option<T>, before: Option<T>) -> Option<T> {
            if now == before { None } else { now }
        }
        Self {
            min_rtt: changed(self.min_rtt, before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, before.smoothed_rtt),
            latest_rtt: changed(self.latest_rtt, before.latest_rtt),
            rtt_variance: changed(self.rtt_variance, before.rtt_variance),
            congestion_window: changed(self.congestion_window, before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, before.ssthresh),
            pacing_rate: changed(self.pacing_rate, before.pacing_rate),
        }
    }
}

/// `recovery:congestion_state_updated` (quic-events §7.4).
#[derive(Debug, Serialize)]
pub(super) struct CongestionState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<&'static str>,
    pub(super) new: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trigger: Option<&'static str>,
}

/// `recovery:packet_lost` (quic-events §7.6). Controllers get no number space.
#[derive(Debug, Serialize)]
pub(super) struct PacketLost {
    pub(super) header: PacketHeader,
}

#[derive(Debug, Serialize)]
pub(super) struct PacketHeader {
    pub(super) packet_type: &'static str,
    pub(super) packet_number: u64,
    pub(super) length: u64,
}

/// `trimtab:scheme_set`: what runs, or takes over, and who has set it.
#[derive(Debug, Serialize)]
pub(super) struct SchemeSet<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<&'a str>,
    pub(super) new: &'a str,
    pub(super) trigger: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) harm: Option<&'static str>,
    pub(super) algorithm: &'static str,
    #[serde(serialize_with = "knobs")]
    pub(super) knobs: KnobValues,
}

/// `trimtab:steered`: an action of the steering, and what it went by.
#[derive(Debug, Serialize)]
pub(super) struct Steered<'a> {
    pub(super) algorithm: &'static str,
    /// Knobs that it turns.
    #[serde(serialize_with = "knobs", skip_serializing_if = "KnobValues::is_empty")]
    pub(super) knobs: KnobValues,
    /// The algorithm that takes over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) switch_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lambda: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tradeoff: Option<f64>,
    pub(super) report: Measured<'a>,
}

/// The report by which it was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Measured<'a> {
    pub(super) interval: f64,
    pub(super) acked: u64,
    pub(super) lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rtt_mean: Option<f64>,
    #[serde(serialize_with = "factors")]
    pub(super) factors: &'a Factors,
}

/// `trimtab:knob_set`: the application turned a knob.
#[derive(Debug, Serialize)]
pub(super) struct KnobSet<'a> {
    pub(super) knob: &'a str,
    pub(super) value: f64,
}

/// `trimtab:algorithm_switched`: another algorithm took over.
#[derive(Debug, Serialize)]
pub(super) struct AlgorithmSwitched {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
    pub(super) congestion_window: u64,
}

/// `trimtab:bytes_lost`: a sum, from a stack that tells no packets.
#[derive(Debug, Serialize)]
pub(super) struct BytesLost {
    pub(super) bytes: u64,
}

/// An event that says all by its name.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {}

fn knobs<S: Serializer>(values: &KnobValues, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(values.iter())
}

fn factors<S: Serializer>(values: &Factors, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(values.iter())
}
