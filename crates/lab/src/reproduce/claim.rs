//! What the paper claims, as a quantity of runs and a band for it.

use serde::{Deserialize, Serialize};

use super::verdict::Band;
use crate::result::RunRecord;
use crate::stats::Sums;

/// One claim of a figure: the value of a quantity, or by how much a scheme is better than another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What is compared.
    pub quantity: Quantity,
    /// The scheme whose quantity it is.
    pub scheme: String,
    /// The scheme that it is compared with, or `best fixed`: the best that is not steered. With one, or
    /// with `versus_at`, ours is by how many percent the scheme is better. Without, it is the quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<String>,
    /// The application whose runs count, by its name in the results [default: the first].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// The runs that count [default: all].
    #[serde(default, skip_serializing_if = "Where::is_everywhere")]
    pub at: Where,
    /// The runs that they are compared with, where these are others [default: the same].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_at: Option<Where>,
    /// What agrees with the paper.
    pub band: Band,
}

impl Claim {
    /// Whether it is by how many percent something is better.
    pub fn is_change(&self) -> bool {
        self.versus.is_some() || self.versus_at.is_some()
    }

    /// What is compared, in words.
    pub fn subject(&self) -> String {
        let rows = self.rows.as_ref().map_or(String::new(), |rows| format!(" ({rows})"));
        let place = self.at.words();
        let mut text = format!("{} of {}{rows}{place}", self.quantity.name(), self.scheme);
        if self.is_change() {
            let rival = self.versus.as_deref().unwrap_or_default();
            let place = self.versus_at.as_ref().map_or(String::new(), Where::words);
            text += &format!(" vs. {}", format!("{rival}{place}").trim_start());
        }
        text
    }
}

/// Some of the runs of a comparison: those for which all that is given holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// The trace's name contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The base round-trip time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// The loss in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The buffer in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<u64>,
    /// The flows that share the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// The set of competitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rivals: Option<String>,
}

impl Where {
    fn is_everywhere(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the run is one of them.
    pub(super) fn has(&self, run: &RunRecord) -> bool {
        fn is<T: PartialEq>(wanted: &Option<T>, own: &T) -> bool {
            wanted.as_ref().is_none_or(|wanted| wanted == own)
        }
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let cell = &run.cell;
        self.trace.as_ref().is_none_or(|part| run.trace.contains(part))
            && self.rtt_ms.is_none_or(|rtt| near(rtt, cell.rtt_ms))
            && self.loss.is_none_or(|loss| near(loss / 100.0, cell.loss))
            && is(&self.buffer, &cell.buffer_bytes)
            && is(&self.flows, &cell.flows)
            && is(&self.rivals, &cell.rivals)
    }

    fn words(&self) -> String {
        let parts = [
            self.trace.clone(),
            self.rtt_ms.map(|rtt| format!("{rtt} ms")),
            self.loss.map(|loss| format!("{loss}% loss")),
            self.buffer.map(|bytes| format!("a buffer of {bytes} B")),
            self.flows.map(|flows| format!("{flows} flows")),
            self.rivals.clone(),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!(" at {}", parts.join(", ")) }
    }
}

/// Declares the quantities: the name in the catalogue is the variant's in lower case with hyphens.
macro_rules! quantities {
    ($($Name:ident $words:literal $cost:literal |$run:ident| $value:expr;)*) => {
        /// What of a result is compared with the paper.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quantity {
            $(#[doc = $words] $Name,)*
        }

        impl Quantity {
            /// As people read it, with its unit.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Name => $words,)*
                }
            }

            /// Whether less is better.
            pub(super) fn is_cost(self) -> bool {
                match self {
                    $(Self::$Name => $cost,)*
                }
            }

            /// That of a run; nothing where it has none.
            pub(super) fn of(self, run: &RunRecord) -> Option<f64> {
                match self {
                    $(Self::$Name => { let $run = run; $value })*
                }
            }
        }
    };
}

quantities! {
    Qoe "QoE" false |run| Some(run.users.mean);
    Throughput "throughput in Mbit/s" false |run| Some(run.throughput_mbps);
    Utilization "utilization in percent" false |run| Some(100.0 * run.utilization);
    RttMean "mean RTT in ms" true |run| Some(run.rtt_ms.mean);
    RttP95 "95th percentile of RTT in ms" true |run| Some(run.rtt_ms.p95);
    QueueMean "mean queueing delay in ms" true |run| Some(run.queue_delay_ms.mean);
    QueueP95 "95th percentile of queueing delay in ms" true |run| Some(run.queue_delay_ms.p95);
    Loss "loss in percent" true |run| Some(100.0 * run.loss_ratio);
    Retransmission "retransmissions in percent" true |run| Some(100.0 * run.retransmit_ratio);
    RctMean "mean completion time in ms" true |run| Some(run.rct_ms?.mean);
    RctP50 "median completion time in ms" true |run| Some(run.rct_ms?.p50);
    RctP90 "90th percentile of completion times in ms" true |run| Some(run.rct_ms?.p90);
    Bitrate "bitrate in kbit/s" false |run| run.bitrate_kbps_mean;
    Stall "time stalled in percent" true |run| Some(100.0 * run.stall_ratio?);
    Vmaf "VMAF" false |run| run.vmaf;
    FrameDelay "mean frame delay in ms" true |run| Some(run.frame_delay_ms?.mean);
    FramesDropped "frames dropped in percent" true |run| Some(100.0 * run.drop_ratio?);
    Jain "Jain's index" false |run| run.jain;
    Friendliness "friendliness" false |run| run.friendliness;
    SwitchLoss "packets lost in the second after a switch, in percent" true |run| {
        mean(run.switches.iter().map(|switch| 100.0 * switch.loss_ratio))
    };
    SwitchSettled "time from a switch until the flow settled, in ms" true |run| {
        let told = run.switches.iter().filter(|switch| switch.settles.is_some());
        mean(told.map(|switch| switch.settled_ms.unwrap_or(switch.turn_ms)))
    };
    Changed "selections that changed the algorithm, in percent" true |run| {
        let selections = run.selections.as_ref().filter(|s| s.made > 0)?;
        Some(100.0 * selections.changed as f64 / selections.made as f64)
    };
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

impl Quantity {
    /// By how many percent the first mean is better than the second: the papers compare means.
    pub(super) fn gain_percent(self, sums: &Sums) -> f64 {
        let change = 100.0 * (sums.a / sums.b - 1.0);
        if self.is_cost() { -change } else { change }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[test]
    fn gains_are_of_means_and_less_time_is_better() {
        let sums = Sums::of(80.0, 100.0) + Sums::of(120.0, 300.0);
        assert_eq!(Quantity::RctMean.gain_percent(&sums), 50.0);
        assert_eq!(Quantity::Qoe.gain_percent(&sums), -50.0);
    }

    #[test]
    fn a_place_is_where_all_that_it_names_holds() {
        let claim: Claim = toml::from_str(
            "quantity = \"loss\"\nscheme = \"a\"\nat = { rtt_ms = 20, loss = 1, flows = 2 }\n\
             versus_at = { flows = 1 }\nband = { at_least = 0 }\n",
        )
        .unwrap();
        assert_eq!(
            claim.subject(),
            "loss in percent of a at 20 ms, 1% loss, 2 flows vs. at 1 flows"
        );
        let mut own = run("a", "t", 0, 1.0);
        (own.cell.rtt_ms, own.cell.loss, own.cell.flows) = (20.0, 0.01, 2);
        assert!(claim.at.has(&own));
        own.cell.flows = 1;
        assert!(!claim.at.has(&own) && claim.versus_at.unwrap().has(&own));
    }
}
