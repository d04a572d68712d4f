//! Other futures of the same path, to tell what is known of it from what nobody can foresee.

use trimtab_units::{Bytes, Duration};

use crate::course::Course;
use crate::episode::Episode;
use crate::fixed::Fixed;

/// What a connection came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The completion time of each request.
    pub times: Vec<Duration>,
    /// Share of its packets that were declared lost, 0 to 1.
    pub lost: f64,
    /// What rivals received.
    pub rivals: Bytes,
}

impl Course {
    /// What a [`visit`](Self::visit) comes to under a fixed setting from beginning to end; what is
    /// open at the end may take `grace` longer.
    pub fn under(&self, seed: u64, visit: u64, fixed: &Fixed, grace: Duration) -> Ran {
        let draw = self.visit(seed, visit);
        let mut episode = Episode::governed(self.shared(), &draw, &fixed.control(draw.traffic));
        while !episode.is_done() {
            episode.run();
        }
        episode.ran(grace)
    }
}

impl Episode {
    /// What it came to so far; what is open may take `grace` longer.
    pub fn ran(&self, grace: Duration) -> Ran {
        let (lost, rivals) = self.so_far();
        Ran { times: self.clone().finish(grace), lost, rivals }
    }

    /// A copy with another future, drawn by `seed` ([`redraw`](Self::redraw)).
    #[must_use]
    pub fn redrawn(&self, seed: u64) -> Self {
        let mut fork = self.clone();
        fork.redraw(seed);
        fork
    }
}

/// A seed of its own for number `n` of a seed.
pub fn mixed(seed: u64, n: u64) -> u64 {
    // An odd multiplier keeps different numbers different; generators then mix all bits.
    seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trimtab_cc::migrate::Switch;
    use trimtab_net::{Capacity, Trace};
    use trimtab_units::Time;

    use super::*;
    use crate::Draw;
    use crate::condition::Condition;
    use crate::{CourseConfig, Objective, Part, Rival, RivalKind, RivalsConfig, Rules, Traffic};

    fn rules() -> Rules {
        Rules {
            algorithms: ["cubic", "bbr"].map(|name| name.parse().unwrap()).into(),
            period: Duration::from_secs(3),
            periods: 6,
            switch: Switch::Full,
            objective: Objective::Mean,
        }
    }

    fn course(generated: usize) -> Course {
        Course::new(CourseConfig {
            rules: rules(),
            part: Part::Train,
            conditions: 2,
            generated,
            wifi: 0,
            recorded: None,
            traffic: vec![Traffic::WebBurst],
            flows: vec![1],
            rivals: RivalsConfig { counts: vec![1], ..RivalsConfig::default() },
            start: None,
        })
        .unwrap()
    }

    /// Two connections next to a rival over a link whose rate falls to a tenth and rises again, with losses.
    fn episode(traffic: Traffic) -> Episode {
        let fast = |ms: &u32| (ms / 5_000).is_multiple_of(2) || ms.is_multiple_of(10);
        let trace = Trace::from_opportunities((1..=240_000).filter(fast).collect()).unwrap();
        let condition = Condition {
            rtt: Duration::from_millis(40),
            jitter: Duration::from_millis(4),
            loss: 0.01,
            buffer_bdp: 1.0,
        };
        let link = Capacity::trace(trace);
        let (start, stop) = (Time::from_secs(1), Time::from_secs(15));
        let rival = Rival { kind: RivalKind::Web, start, stop, seed: 8 };
        let mut episode = Episode::new(
            Arc::new(rules()),
            &Draw {
                link,
                condition,
                traffic,
                flows: 2,
                rivals: vec![rival],
                start: 0,
                seed: 5,
                luck: 5,
            },
        );
        episode.step(1);
        episode
    }

    #[test]
    fn a_future_drawn_anew_has_the_same_past() {
        for traffic in Traffic::ALL {
            let episode = episode(traffic);
            let redrawn = |seed| {
                let mut fork = episode.redrawn(seed);
                assert_eq!(fork.state(), episode.state());
                assert!(fork.requests().eq(episode.requests()));
                (fork.step(1).waited, fork.step(0).waited, fork.state().map(f32::to_bits))
            };
            let mut own = episode.clone();
            let own = (own.step(1).waited, own.step(0).waited, own.state().map(f32::to_bits));
            assert_eq!(redrawn(1), redrawn(1), "a seed has one future");
            assert_ne!(redrawn(1), redrawn(2));
            assert_ne!(redrawn(1), own);
            let rivals = |seed| episode.redrawn(seed).outcome(1, 2).rivals;
            assert_ne!(rivals(1), rivals(2), "rivals, too, have another future");
        }
    }

    #[test]
    fn a_fixed_setting_from_beginning_to_end() {
        let course = course(4);
        let grace = Duration::from_secs(60);
        let [cubic, bbr]: [Fixed; 2] = ["cubic", "bbr"].map(|name| name.parse().unwrap());
        let ran = course.under(3, 0, &bbr, grace);
        let mut by_hand = Episode::new(Arc::new(rules()), &Draw { start: 1, ..course.draw(3).0 });
        while !by_hand.is_done() {
            by_hand.step(1);
        }
        assert_eq!(ran, by_hand.ran(grace));
        assert!(ran.rivals > Bytes::ZERO && ran.lost > 0.0 && ran.lost < 0.5, "{ran:?}");
        assert_ne!(ran, course.under(3, 1, &bbr, grace), "another visit");
        assert_ne!(ran, course.under(3, 0, &cubic, grace), "another algorithm");
    }
}
