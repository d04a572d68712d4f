//! How full the flows on a path keep its buffer.
//!
//! All flows through one queue wait equally long in it and lose packets at the same length of it, whatever
//! their shares. (They do not lose equally often: on a full drop-tail buffer the flow that has least of it may
//! lose most.) So what flows have to agree on without talking is taken from
//! the delay in the queue, and the losses only tell at what delay it is full.

/// Weights of a new report in the delay of the queue, and in the delay at which it is full when packets were
/// dropped, or when none were though the queue is longer than that.
const STANDING_WEIGHT: f64 = 0.01;
const FULL_WEIGHT: f64 = 0.1;
/// A queue of which this share comes and goes is all of flows like this one.
const MOVING: f64 = 0.65;
/// How fast the lowest delay is forgotten, per report.
const VALLEY_WEIGHT: f64 = 1.0 / 32.0;
/// Where less than this share of the losses is the buffer's, they say nothing of it.
const MOSTLY: f64 = 0.5;
/// Where that is so again and again, what was taken for the buffer's losses was the link's: the weight of a
/// report with losses, and the mean share that is too little.
const BELIEF_WEIGHT: f64 = 0.02;
const BELIEF_MIN: f64 = 0.2;

/// The buffer of one path, as delays in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    /// In the queue, on the mean, while the flow is busy.
    standing: f64,
    /// The lowest of late. Flows of Copa nearly empty the queue every five round trips (NSDI 2018 §2.2); what
    /// never goes is not theirs, and would not go if they kept less.
    valley: f64,
    /// In the queue when it dropped packets; zero while none were dropped.
    full: f64,
    /// What share of the losses was the buffer's since `full` is known, fading.
    belief: f64,
    /// In the queue at the last report.
    last: f64,
}

impl Buffer {
    /// Takes in the mean and the lowest queueing delay of one report, whether the flow was busy,
    /// and, where packets were lost, what share of the losses is the buffer's. (The longest delay
    /// of a report would be nearer to the full queue, but a delayed acknowledgement makes a flow
    /// believe in a buffer that is not there, and take the others' share of the one that is.)
    pub(super) fn on_report(&mut self, delay: f64, low: f64, busy: bool, dropped: Option<f64>) {
        if busy {
            self.standing += STANDING_WEIGHT * (delay - self.standing);
            self.valley = low.min(self.valley + VALLEY_WEIGHT * (low - self.valley));
        }
        match dropped {
            Some(share) => {
                self.belief += BELIEF_WEIGHT * (share - self.belief);
                // A loss shows a round trip after the drop.
                let seen = delay.max(self.last);
                if share >= MOSTLY && self.full == 0.0 {
                    (self.full, self.belief) = (seen, 1.0);
                } else if share >= MOSTLY {
                    self.full += FULL_WEIGHT * share * (seen - self.full);
                } else if self.belief < BELIEF_MIN {
                    self.full = 0.0;
                }
            }
            None if self.full > 0.0 && delay > self.full => {
                self.full += FULL_WEIGHT * (delay - self.full);
            }
            None => {}
        }
        self.last = delay;
    }

    /// Share of the buffer that flows like this one keep filled; zero where it was never seen to be full.
    pub(super) fn fullness(&self) -> f64 {
        if self.full <= 0.0 || self.standing <= 0.0 {
            return 0.0;
        }
        let ours = ((1.0 - self.valley / self.standing) / MOVING).clamp(0.0, 1.0);
        ours * self.standing / self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_as_full_as_its_queue_whichever_flow_loses() {
        let mut few = Buffer::default();
        let mut many = few;
        for i in 0..2000 {
            few.on_report(
                if i % 100 == 0 { 0.012 } else { 0.010 },
                0.0,
                true,
                (i % 100 == 0).then_some(1.0),
            );
            many.on_report(
                if i % 100 == 0 { 0.012 } else { 0.010 },
                0.0,
                true,
                (i % 100 < 2).then_some(1.0),
            );
        }
        assert!((few.fullness() - 0.010 / 0.012).abs() < 0.01, "{few:?}");
        assert!((many.fullness() - few.fullness()).abs() < 0.01, "{many:?}");
    }

    #[test]
    fn what_the_link_loses_says_nothing_of_the_buffer() {
        let mut buffer = Buffer::default();
        for _ in 0..500 {
            buffer.on_report(0.010, 0.0, true, Some(0.0));
        }
        assert_eq!(buffer.fullness(), 0.0);
        // Not for long, either, where it was taken for the buffer's at first.
        buffer.on_report(0.010, 0.0, true, Some(1.0));
        assert!(buffer.fullness() > 0.5, "{buffer:?}");
        for _ in 0..100 {
            buffer.on_report(0.010, 0.0, true, Some(0.0));
        }
        assert_eq!(buffer.fullness(), 0.0);
    }

    #[test]
    fn a_longer_queue_without_loss_proves_a_larger_buffer() {
        let mut buffer = Buffer::default();
        buffer.on_report(0.010, 0.0, true, Some(1.0));
        for _ in 0..500 {
            buffer.on_report(0.030, 0.0, true, None);
        }
        assert!((buffer.full - 0.030).abs() < 0.001, "{buffer:?}");
        for _ in 0..500 {
            buffer.on_report(0.0, 0.0, false, None);
        }
        assert!(buffer.standing > 0.02, "an idle flow sees no queue: {buffer:?}");
    }

    #[test]
    fn what_others_keep_in_it_is_not_counted() {
        let mut next_to_cubic = Buffer::default();
        for i in 0..2000 {
            next_to_cubic.on_report(0.016, 0.014, true, (i % 100 == 0).then_some(1.0));
        }
        assert!(next_to_cubic.fullness() < 0.3, "{next_to_cubic:?}");
    }

    /// A buffer that dropped packets of its own, with this delay in its queue.
    fn full_at(delay: f64) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.on_report(delay, 0.0, true, Some(1.0));
        buffer
    }

    #[test]
    fn a_few_losses_of_the_link_do_not_disprove_the_buffer() {
        let mut buffer = full_at(0.010);
        for _ in 0..40 {
            buffer.on_report(0.010, 0.0, true, Some(0.0));
        }
        assert_eq!(buffer.full, 0.010);
    }

    #[test]
    fn a_link_that_loses_between_drops_of_the_buffer_does_not_disprove_it() {
        let mut buffer = full_at(0.010);
        for i in 0..1000 {
            buffer.on_report(0.010, 0.0, true, Some(if i % 3 == 0 { 1.0 } else { 0.0 }));
        }
        assert!((buffer.full - 0.010).abs() < 1e-9, "{buffer:?}");
    }

    #[test]
    fn later_drops_move_the_full_queue_to_where_they_are_seen() {
        for seen in [0.020, 0.004] {
            let mut buffer = full_at(0.010);
            let between = |buffer: &Buffer| (buffer.full - 0.010) / (seen - 0.010);
            for _ in 0..3 {
                buffer.on_report(seen, 0.0, true, Some(1.0));
            }
            assert!((0.15..0.35).contains(&between(&buffer)), "not at once: {buffer:?}");
            for _ in 0..100 {
                buffer.on_report(seen, 0.0, true, Some(1.0));
            }
            assert!((between(&buffer) - 1.0).abs() < 0.01, "{buffer:?}");
        }
    }

    /// The more of the losses is the buffer's, the more they say of it.
    #[test]
    fn losses_that_are_the_link_s_in_part_say_less() {
        let moved = |share: f64| {
            let mut buffer = full_at(0.010);
            buffer.on_report(0.020, 0.0, true, Some(share));
            buffer.full - 0.010
        };
        assert!(moved(1.0) > 0.0 && (moved(0.5) / moved(1.0) - 0.5).abs() < 1e-9);
        assert_eq!(moved(0.49), 0.0);
    }

    /// A loss is seen a round trip after the drop, when the queue may be gone.
    #[test]
    fn the_queue_before_a_loss_counts() {
        let mut buffer = Buffer::default();
        buffer.on_report(0.020, 0.0, true, None);
        buffer.on_report(0.001, 0.0, true, Some(1.0));
        assert_eq!(buffer.full, 0.020);
    }

    #[test]
    fn the_lowest_queue_is_seen_at_once_and_forgotten_slowly() {
        let mut buffer = Buffer::default();
        let mut pass = |lows: &[f64]| {
            lows.iter().for_each(|&low| buffer.on_report(0.010, low, true, None));
            buffer.valley
        };
        assert!((pass(&[0.008; 300]) - 0.008).abs() < 1e-5);
        assert_eq!(pass(&[0.001]), 0.001);
        let soon = pass(&[0.008; 10]);
        assert!(soon > 0.002 && soon < 0.004, "{soon}");
        assert!((pass(&[0.008; 300]) - 0.008).abs() < 1e-5);
    }

    /// Copa's own flows let all but a third of the queue go. What stays beyond that is of others.
    #[test]
    fn the_part_of_the_queue_that_comes_and_goes_is_ours() {
        let fullness = |valley: f64| {
            let buffer = Buffer { standing: 0.010, valley, full: 0.020, ..Buffer::default() };
            buffer.fullness()
        };
        for valley in [0.0, 0.002, 0.0035] {
            assert!((fullness(valley) - 0.5).abs() < 1e-9, "all of it is ours");
        }
        assert!((fullness(0.00675) - 0.25).abs() < 1e-9, "half of it is ours");
        assert_eq!(fullness(0.010), 0.0);
    }
}
