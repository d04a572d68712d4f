//! What two datapaths are compared by, and how far they may be apart.

use serde::Serialize;

use crate::result::RunRecord;

/// A quantity of a run.
#[derive(Debug)]
pub(super) struct Quantity {
    /// Its name in the JSON.
    pub(super) name: &'static str,
    /// The head of its column.
    pub(super) head: &'static str,
    /// Its name in a sentence.
    pub(super) label: &'static str,
    /// The unit of a difference.
    pub(super) unit: &'static str,
    /// Its value; `None` where the run has none.
    pub(super) of: fn(&RunRecord) -> Option<f64>,
}

/// Payload that reached the application.
pub(super) static THROUGHPUT: Quantity = Quantity {
    name: "throughput",
    head: "Mbit/s",
    label: "throughput",
    unit: " Mbit/s",
    of: |run| Some(run.throughput_mbps),
};

/// Mean wait in the bottleneck's queue.
pub(super) static QUEUE_DELAY: Quantity = Quantity {
    name: "queue_delay",
    head: "queue ms",
    label: "mean queueing delay",
    unit: " ms",
    of: |run| Some(run.queue_delay_ms.mean),
};

/// 95th percentile of the packets' round-trip times.
pub(super) static RTT_P95: Quantity = Quantity {
    name: "rtt_p95",
    head: "p95 RTT ms",
    label: "p95 RTT",
    unit: " ms",
    of: |run| Some(run.rtt_ms.p95),
};

/// Packets lost on the path over sent ones.
pub(super) static LOSS: Quantity = Quantity {
    name: "loss",
    head: "lost %",
    label: "lost",
    unit: " points",
    of: |run| Some(100.0 * run.loss_ratio),
};

/// Retransmitted packets over sent ones.
pub(super) static RETRANSMITS: Quantity = Quantity {
    name: "retransmits",
    head: "retransmitted %",
    label: "retransmitted",
    unit: " points",
    of: |run| Some(100.0 * run.retransmit_ratio),
};

/// Median request completion time; requests only.
pub(super) static RCT_P50: Quantity = Quantity {
    name: "rct_p50",
    head: "median RCT ms",
    label: "median RCT",
    unit: " ms",
    of: |run| Some(run.rct_ms?.p50),
};

/// Mean bitrate that an encoder was asked for; calls only.
pub(super) static TARGET: Quantity = Quantity {
    name: "target",
    head: "target kbit/s",
    label: "mean target",
    unit: " kbit/s",
    of: |run| run.target_kbps_mean,
};

/// 95th percentile of frame delays; calls only.
pub(super) static FRAME_DELAY_P95: Quantity = Quantity {
    name: "frame_delay_p95",
    head: "p95 frame delay ms",
    label: "p95 frame delay",
    unit: " ms",
    of: |run| Some(run.frame_delay_ms?.p95),
};

/// How often the picture stood still; calls only.
pub(super) static FREEZES: Quantity = Quantity {
    name: "freezes",
    head: "freezes",
    label: "freezes",
    unit: "",
    of: |run| run.freezes,
};

/// How many cells have to be within a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// Half of them: the median is.
    Median,
    /// Nine in ten.
    NineInTen,
}

/// How far two sides may be apart in a cell: by a share of the reference, or by a difference in the
/// quantity's unit, whichever is more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// In percent of the reference; 0: no such share.
    pub percent: f64,
    /// In the unit of the quantity; 0: no such difference.
    pub absolute: f64,
}

impl Band {
    /// A share of the reference, in percent.
    pub(super) const fn percent(percent: f64) -> Self {
        Self { percent, absolute: 0.0 }
    }

    /// A difference in the unit of the quantity.
    pub(super) const fn absolute(absolute: f64) -> Self {
        Self { percent: 0.0, absolute }
    }

    /// The same band, and at least this difference.
    pub(super) const fn or(self, absolute: f64) -> Self {
        Self { absolute, ..self }
    }

    /// A difference as it is shown: in percent of the reference where the band is nothing but a
    /// share, else in the unit of the quantity.
    pub(super) fn measure(self, reference: f64, model: f64) -> f64 {
        let difference = model - reference;
        if self.is_share() { 100.0 * difference / positive(reference) } else { difference }
    }

    /// How far apart the sides are, in bands: 1 is at the edge.
    pub(super) fn bands(self, reference: f64, model: f64) -> f64 {
        let tolerance = (0.01 * self.percent * reference).max(self.absolute);
        (model - reference).abs() / positive(tolerance)
    }

    pub(super) fn is_share(self) -> bool {
        self.absolute == 0.0
    }

    /// The band as text, with the unit of the quantity.
    pub(super) fn text(self, unit: &str) -> String {
        let Self { percent, absolute } = self;
        match (percent > 0.0, absolute > 0.0) {
            (true, true) => format!("{percent}% or {absolute}{unit}"),
            (false, true) => format!("{absolute}{unit}"),
            _ => format!("{percent}%"),
        }
    }
}

/// What one can divide by.
fn positive(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    #[test]
    fn a_band_is_the_wider_of_its_two_parts() {
        let both = Band::percent(15.0).or(2.0);
        close(both.bands(4.0, 2.0), 1.0);
        close(both.bands(100.0, 115.0), 1.0);
        close(both.measure(100.0, 115.0), 15.0);
        close(Band::percent(5.0).bands(10.0, 10.5), 1.0);
        close(Band::percent(5.0).measure(200.0, 190.0), -5.0);
        close(Band::absolute(0.5).bands(0.0, 0.25), 0.5);
    }

    #[test]
    fn nothing_on_both_sides_is_no_difference() {
        close(Band::percent(5.0).bands(0.0, 0.0), 0.0);
        close(Band::percent(5.0).measure(0.0, 0.0), 0.0);
    }

    #[test]
    fn a_band_reads_as_one_would_write_it() {
        assert_eq!(Band::percent(15.0).or(2.0).text(" ms"), "15% or 2 ms");
        assert_eq!(Band::absolute(0.5).text(" points"), "0.5 points");
        assert_eq!(Band::percent(5.0).text(" Mbit/s"), "5%");
    }
}
