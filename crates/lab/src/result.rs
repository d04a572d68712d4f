//! What a comparison leaves behind: one record per run, one summary row per scheme.
//!
//! This is the JSON of `trimtab compare --json`, schema `trimtab.compare/2`. Field names end in their
//! unit; ratios and shares are 0 to 1; rates are in Mbit/s (10^6 bits per second). The record holds
//! the command, the version and the whole scenario, so that anybody can repeat it.

use serde::{Deserialize, Serialize};
use trimtab_apps::CallRecord;

use crate::scenario::TransportKind;
use crate::stats::Sorted;
pub use crate::stats::harm::HarmRecord;
pub use crate::stats::overload::Served;
pub use crate::stats::{Estimate, UsersRecord};

/// What carried out runs in records that do not name it.
fn simulator() -> String {
    "sim".to_owned()
}

/// The schema that [`Comparison::schema`] names.
pub const SCHEMA: &str = "trimtab.compare/2";

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// `trimtab.compare/2`.
    pub schema: String,
    /// How to repeat it.
    pub provenance: Provenance,
    /// Every run, in the order of the scenario: application, trace, cell, seed, scheme.
    pub runs: Vec<RunRecord>,
    /// One row per application and scheme, in the order in which the scenario names them.
    pub summary: Vec<SummaryRow>,
    /// One row per application and point of the grid, in the order of the runs: how far steering is
    /// from the best algorithm there. Points where no rule-based algorithm took part have none.
    #[serde(default)]
    pub cells: Vec<CellSummary>,
    /// The summary without the cells that no scheme can serve; where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
}

/// Everything that it takes to get the same bytes again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command line as it was typed.
    pub command: String,
    /// The version of Trimtab.
    pub version: String,
    /// The kernel that carried out the runs; nothing where the simulator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The scenario with every default written out, as TOML.
    pub scenario: String,
    /// The SHA-256 of every trace file, by the name that the runs use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceOrigin>,
}

/// A trace and the checksum of what was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceOrigin {
    /// The name in the runs.
    pub trace: String,
    /// The SHA-256 of the file, in hexadecimal; of generated traces, of their delivery times.
    pub sha256: String,
}

/// The point of the scenario's grid that a run belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Base round-trip time, without any queue; of one that steps the longest.
    pub rtt_ms: f64,
    /// The steps of a base round-trip time that has some, as the scenario writes them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rtt_steps: String,
    /// Size of the bottleneck's buffer.
    pub buffer_bytes: u64,
    /// Probability of random loss, 0 to 1.
    pub loss: f64,
    /// The most that a data packet is late beyond the round-trip time; 0 is left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: f64,
    /// Flows of the scheme that share the link.
    pub flows: u32,
    /// The name of the set of competitors, where the grid has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rivals: String,
}

impl CellRecord {
    /// The base round-trip time as people read it, with its steps.
    pub(crate) fn rtt_text(&self) -> String {
        match self.rtt_steps.as_str() {
            "" => format!("{}ms", self.rtt_ms),
            steps => steps.to_owned(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// One run of one scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The scheme, as on the command line.
    pub cc: String,
    /// The application.
    pub app: String,
    /// The datapath that carried it out: `sim`, the simulator, `kernel`, `quic-virtual`, `quic` or
    /// `s2n-virtual`.
    #[serde(default = "simulator")]
    pub datapath: String,
    /// The transport protocol, `quic`, `noq` or `tcp`.
    #[serde(default)]
    pub transport: TransportKind,
    /// The trace of the bottleneck.
    pub trace: String,
    /// The seed of all randomness of the run. Runs with the same application, trace, cell and seed
    /// saw the same link, the same losses and the same requests.
    pub seed: u64,
    /// Where in the grid.
    pub cell: CellRecord,
    /// Experience per request (download, web) or chunk (vod), in the unit of the QoE model.
    pub qoe: QoeRecord,
    /// Experience per user, each flow of the scheme being one, then across users: what runs are
    /// judged by.
    #[serde(default)]
    pub users: UsersRecord,
    /// Payload that reached the application, over the whole run, all flows of the scheme.
    pub throughput_mbps: f64,
    /// Bytes that the link delivered over the bytes that it could have delivered.
    pub utilization: f64,
    /// Round-trip time of the packets.
    pub rtt_ms: RttRecord,
    /// Time that packets waited in the bottleneck's queue.
    pub queue_delay_ms: DelayRecord,
    /// Packets lost on the path (queue and random loss) over packets sent.
    pub loss_ratio: f64,
    /// Bytes sent again over bytes sent.
    pub retransmit_ratio: f64,
    /// Requests (download, web) or chunks (vod) that finished.
    pub requests: u64,
    /// Requests (download, web) that had not finished when the run was over, a minute after its end
    /// at the latest. Video ends with the run: 0.
    #[serde(default)]
    pub unfinished: u64,
    /// Request completion times, of unfinished ones the wait so far; download and web only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rct_ms: Option<RctRecord>,
    /// Mean bitrate of the chunks that played, or of the frames that were presented; video and calls
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitrate_kbps_mean: Option<f64>,
    /// Time stalled over time watched; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ratio: Option<f64>,
    /// How often playback stalled; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<u64>,
    /// From the first request to the first picture; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<f64>,
    /// Mean time behind the live edge, segment by segment; live video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// VMAF of what the viewer saw, 0 to 100; calls only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmaf: Option<f64>,
    /// From the capture of a frame, of games from the input that it answers, to the screen; calls
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_delay_ms: Option<DelayRecord>,
    /// Mean bitrate that the encoder was asked for, frame by frame; calls only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_kbps_mean: Option<f64>,
    /// How often the picture stood still, the mean over the flows; calls only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freezes: Option<f64>,
    /// Time for which the picture stood still over the call's length; calls only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_ratio: Option<f64>,
    /// Frames that were never presented over those captured; calls only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_ratio: Option<f64>,
    /// Throughput of each flow while all are active, competitors last; runs with several flows only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_throughput_mbps: Vec<f64>,
    /// Jain's index over the scheme's flows; runs with several of them only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Rate of a flow of the scheme over that of a competing flow (Mortise §5.5); runs with
    /// competitors only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friendliness: Option<f64>,
    /// What competing flows got next to the scheme; runs with competitors only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rivals: Option<RivalsRecord>,
    /// Each change of algorithm; the first flow of schemes that switch only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchRecord>,
    /// How often the algorithm was chosen; schemes that choose only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selections: Option<SelectionsRecord>,
    /// What was requested, one by one; not part of the JSON.
    #[serde(skip)]
    pub units: Vec<UnitRecord>,
    /// How the run went over time; not part of the JSON.
    #[serde(skip)]
    pub series: Option<Series>,
    /// What the first flow's viewer saw, frame by frame; calls only, and not part of the JSON.
    #[serde(skip)]
    pub call: Option<CallRecord>,
}

/// What competing flows got, each value the mean over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RivalsRecord {
    /// Their algorithm; `null` where they have several.
    pub cc: Option<String>,
    /// Payload that reached the application, per flow.
    pub throughput_mbps: f64,
    /// Mean round-trip time.
    pub rtt_ms: f64,
    /// Packets lost on the path over packets sent.
    pub loss_ratio: f64,
}

/// What a scheme chose, all its flows together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionsRecord {
    /// Selections.
    pub made: u64,
    /// Those that chose another algorithm than the one before.
    pub changed: u64,
    /// Those for which the policy had no answer, so that the safe algorithm was asked for.
    pub fallbacks: u64,
    /// Switches that were taken back, since the connection got clearly less.
    #[serde(default)]
    pub reverts: u64,
    /// Why, the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distrust: Option<String>,
}

/// Experience per unit of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QoeRecord {
    /// Arithmetic mean.
    pub mean: f64,
    /// The 5th percentile: the users who were served worst.
    pub p5: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
}

impl RunRecord {
    /// What the run is judged by on this scale: the users' log mean, or their mean. In the unit of
    /// the QoE model.
    pub fn score(&self, scale: Scale) -> f64 {
        match scale {
            Scale::Ratio => self.users.score(),
            Scale::Difference => self.users.mean,
        }
    }
}

impl QoeRecord {
    /// Of the experience of each unit; zero throughout when there is none, as nothing was delivered.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let v = Sorted::new(values);
        let at = |p| v.percentile(p).unwrap_or(0.0);
        Self { mean: v.mean().unwrap_or(0.0), p5: at(5.0), p50: at(50.0), p95: at(95.0) }
    }
}

/// Round-trip times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RttRecord {
    /// Arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
}

/// Queueing delays, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayRecord {
    /// Arithmetic mean.
    pub mean: f64,
    /// The 95th percentile.
    pub p95: f64,
}

/// Request completion times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RctRecord {
    /// Arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl RctRecord {
    /// Of completion times in milliseconds; `None` when no request finished.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let v = Sorted::new(values);
        Some(Self {
            mean: v.mean()?,
            p50: v.percentile(50.0)?,
            p90: v.percentile(90.0)?,
            p95: v.percentile(95.0)?,
            p99: v.percentile(99.0)?,
        })
    }
}

/// One algorithm took over from another on a running flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchRecord {
    /// When, from the start of the run.
    pub at_ms: f64,
    /// The algorithm that gave way.
    pub from: String,
    /// The algorithm that took over.
    pub to: String,
    /// How long after it was asked for.
    pub waited_ms: f64,
    /// Packets lost on the path over packets sent, in the second after it.
    pub loss_ratio: f64,
    /// How long the algorithm ran until the next one was asked for.
    pub turn_ms: f64,
    /// How long after it the flow had settled, as [`crate::run::switches`] has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_ms: Option<f64>,
    /// Whether it settled before the second half of the turn. `None` where that cannot be told: turns
    /// below 6 s, and flows that do not always have data to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<bool>,
    /// Mean over the turn of what the link's queue delayed.
    pub queue_delay_ms: f64,
}

/// One request, or one chunk of a video.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnitRecord {
    /// Which flow of the scheme, from 0.
    pub flow: u32,
    /// When it was requested, from the start of the run.
    pub start_ms: f64,
    /// Size of the response.
    pub bytes: u64,
    /// From the request to the last byte, or to the end of the run where that did not come.
    pub duration_ms: f64,
    /// Whether the last byte came.
    pub finished: bool,
    /// Its experience, in the unit of the QoE model.
    pub qoe: f64,
    /// The bitrate of the chunk; video only.
    pub bitrate_kbps: Option<f64>,
    /// How long playback stalled for it; video only.
    pub stall_ms: Option<f64>,
    /// How far the picture was behind the live edge when it arrived; live video only.
    pub latency_ms: Option<f64>,
}

/// How a run went, in bins of the same length. A value that is missing in a bin is NaN: nothing was
/// measured, or the scheme has no such quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Length of a bin.
    pub bin_ms: f64,
    /// What the link could have carried.
    pub capacity_mbps: Vec<f64>,
    /// What the scheme's flows delivered.
    pub throughput_mbps: Vec<f64>,
    /// Mean wait in the bottleneck's queue.
    pub queue_delay_ms: Vec<f64>,
    /// Mean round-trip time.
    pub rtt_ms: Vec<f64>,
    /// Congestion window of the first flow at the end of the bin.
    pub cwnd_bytes: Vec<f64>,
    /// The knob δ of the first flow, where it has one.
    pub delta: Vec<f64>,
    /// The application's preference λ: the least throughput that a unit of delay must buy.
    pub lambda: Vec<f64>,
    /// The tradeoff τ that the path was measured to give.
    pub tau: Vec<f64>,
    /// The rate that the scheme gives the first flow's encoder, headers included; calls only.
    pub target_mbps: Vec<f64>,
}

/// A scheme over all its runs with one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// The scheme.
    pub cc: String,
    /// The application.
    pub app: String,
    /// How many runs.
    pub runs: u64,
    /// How experience with this application is compared.
    pub scale: Scale,
    /// What schemes are ranked by. Where the scale is a ratio, the geometric mean over runs of the
    /// users' log mean; else the mean over runs of the users' mean.
    #[serde(default)]
    pub score: f64,
    /// Its 95% confidence interval.
    #[serde(default)]
    pub score_ci95: Option<[f64; 2]>,
    /// The score as a share of what `omniscient` reached, the geometric mean over pairs of runs;
    /// where it ran too, and the scale is a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_of_omniscient: Option<Estimate>,
    /// Mean over runs of the users' mean.
    #[serde(default)]
    pub users_mean: f64,
    /// Mean over runs of the users' 5th percentile.
    #[serde(default)]
    pub users_p5: f64,
    /// Mean over runs of Jain's index of the users' scores; where the scale is a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_jain: Option<f64>,
    /// Mean over runs of the mean experience, all requests of a run alike.
    pub qoe_mean: f64,
    /// Its 95% confidence interval.
    pub qoe_ci95: Option<[f64; 2]>,
    /// What was resampled for the intervals: whole `trace`s, or single `run`s where there are fewer
    /// than five traces.
    pub resampled: String,
    /// Mean over runs of the experience as a share of what `omniscient` reached in the same run; where
    /// it ran too, and the scale is a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_omniscient: Option<Estimate>,
    /// Mean throughput over runs.
    pub throughput_mbps: f64,
    /// Mean over runs of the mean queueing delay.
    pub queue_delay_ms: f64,
    /// Mean over runs of the retransmitted share.
    pub retransmit_ratio: f64,
    /// Against each other scheme of the comparison.
    pub versus: Vec<Versus>,
    /// What the scheme does to competing flows, over all cells whose competitors have one algorithm
    /// that is among the schemes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<HarmRecord>,
}

/// The schemes of one application at one point of the grid, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The application.
    pub app: String,
    /// The trace of the bottleneck.
    pub trace: String,
    /// Where in the grid.
    pub cell: CellRecord,
    /// How experience with this application is compared, as in its summary rows.
    pub scale: Scale,
    /// Whether even the scheme that finishes most leaves more than a tenth of its requests
    /// unfinished.
    #[serde(default)]
    pub overloaded: bool,
    /// The rule-based algorithm, neither bound nor steered, with the highest score.
    pub best: String,
    /// Its score over the seeds, as in a summary row.
    #[serde(default)]
    pub best_score: f64,
    /// Its mean experience over the seeds.
    pub best_qoe_mean: f64,
    /// Every steered scheme.
    pub steered: Vec<SteeredInCell>,
}

/// A steered scheme at one point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteeredInCell {
    /// The scheme.
    pub cc: String,
    /// Its score over the seeds, as in a summary row.
    #[serde(default)]
    pub score: f64,
    /// Its mean experience over the seeds.
    pub qoe_mean: f64,
    /// Against the best rule-based algorithm of the cell; `null` when they have no seed in common.
    pub versus_best: Option<CellGap>,
    /// Against the best constant knob of each run, `oracle:copa`; where that took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_oracle: Option<CellGap>,
}

/// The paired change against another scheme at one point of the grid: each run against the
/// other's with the same seed. Above zero, the scheme gives the better experience.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellGap {
    /// How many pairs of runs.
    pub pairs: u64,
    /// Geometric mean over pairs of this / other, both by their score, less one, in percent; `null`
    /// where the scale is a difference.
    pub change_percent: Option<f64>,
    /// Mean over pairs of this − other, both by their score, in the unit of the QoE model.
    pub difference: f64,
}

/// How experience is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Twice as much means something: experience cannot be negative and is no logarithm.
    Ratio,
    /// Only differences mean something: video, whose experience is a logarithm less stalls, and every
    /// model that can give zero or less.
    Difference,
}

/// The paired change against another scheme: each run against the other's run with the same
/// trace, cell and seed. Above zero, this scheme gives the better experience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The other scheme.
    pub cc: String,
    /// How many pairs of runs.
    pub pairs: u64,
    /// Geometric mean over pairs of this / other, both by the users' log mean, less one, in
    /// percent. `null` where the scale is a difference.
    #[serde(default)]
    pub score_percent: Option<f64>,
    /// Its 95% confidence interval.
    #[serde(default)]
    pub score_ci95: Option<[f64; 2]>,
    /// Mean over pairs of this − other, both by their score, in the unit of the QoE model.
    #[serde(default)]
    pub score_difference: f64,
    /// Its 95% confidence interval.
    #[serde(default)]
    pub score_difference_ci95: Option<[f64; 2]>,
    /// By the mean over all requests, arithmetic: mean over pairs of (this − other) / other, in
    /// percent. It flatters: +100% and −50% come to +25%. `null` where the other's experience is
    /// zero or below in any pair, as for video: then only the difference has a meaning.
    pub change_percent: Option<f64>,
    /// Its 95% confidence interval.
    pub change_ci95: Option<[f64; 2]>,
    /// Ratio of the two means, less one, in percent: dominated by fast links, where experience is
    /// counted in Mbit/s. `null` as above.
    pub ratio_of_means_percent: Option<f64>,
    /// Its 95% confidence interval.
    pub ratio_of_means_ci95: Option<[f64; 2]>,
    /// By the mean over all requests: mean over pairs of this − other, in the unit of the QoE
    /// model.
    pub difference: f64,
    /// Its 95% confidence interval.
    pub difference_ci95: Option<[f64; 2]>,
    /// Share of the pairs in which this scheme has the better score; ties count half.
    pub better_share: f64,
}

/// The change that suits the scale, for people to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change.
    pub value: f64,
    /// Its 95% confidence interval; none where it would mean nothing.
    pub ci95: Option<[f64; 2]>,
    /// Whether it is in percent, or in the unit of the QoE model.
    pub percent: bool,
}

impl Versus {
    /// The change of the score: in percent where that has a meaning, else the difference.
    pub fn shown(&self, scale: Scale) -> Change {
        match (scale, self.score_percent) {
            (Scale::Ratio, Some(value)) => Change { value, ci95: self.score_ci95, percent: true },
            _ => Change {
                value: self.score_difference,
                ci95: self.score_difference_ci95,
                percent: false,
            },
        }
    }
}

impl Change {
    /// One of its numbers with its sign and unit.
    pub fn text(&self, value: f64) -> String {
        if self.percent { format!("{value:+.1}%") } else { format!("{value:+.3}") }
    }
}

#[cfg(test)]
mod tests;
