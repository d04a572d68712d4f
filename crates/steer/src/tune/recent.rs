//! The distributions of late, for a QoE model that goes by them (Mortise Eq. 4).

use trimtab_qoe::Samples;

use super::path::STEPS_MAX;
use crate::Report;

/// Samples of the last reports: at least of as many as are replayed, and at most of twice as many.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    before: Samples,
    now: Samples,
    /// Reports in `now`.
    reports: usize,
}

impl Recent {
    pub(super) fn on_report(&mut self, report: &Report) {
        if self.reports == STEPS_MAX {
            self.before = core::mem::take(&mut self.now);
            self.reports = 0;
        }
        self.reports += 1;
        report.add_to(&mut self.now);
    }

    pub(super) fn samples(&self) -> Samples {
        let mut all = self.before.clone();
        all.merge(&self.now);
        all
    }
}

#[cfg(test)]
mod tests {
    use trimtab_qoe::{Factors, Model, OperatingPoint};
    use trimtab_units::Time;

    use super::*;
    use crate::tune::tests::{Link, report, steady};

    /// The largest round-trip time of the samples, in milliseconds.
    fn longest_ms(recent: &Recent) -> f64 {
        let model = Model::parse("1000*p100(D)", &[]).unwrap();
        model.score_over(&OperatingPoint::default(), &recent.samples(), &Factors::new())
    }

    #[test]
    fn what_is_older_than_two_stretches_is_forgotten() {
        let mut recent = Recent::default();
        let waits = |queue_packets| Link { queue_packets, ..steady(1.0) };
        recent.on_report(&report(Time::ZERO, waits(80.0)));
        for k in 1..2 * STEPS_MAX {
            assert!((longest_ms(&recent) - 100.0).abs() < 1.0, "{k}: {}", longest_ms(&recent));
            recent.on_report(&report(Time::ZERO, waits(20.0)));
        }
        recent.on_report(&report(Time::ZERO, waits(20.0)));
        assert!((longest_ms(&recent) - 40.0).abs() < 0.5, "{}", longest_ms(&recent));
    }
}
