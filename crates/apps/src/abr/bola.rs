//! BOLA (Spiteri, Urgaonkar and Sitaraman, "BOLA: Near-Optimal Bitrate Adaptation for Online
//! Videos", INFOCOM 2016): the buffer alone decides, by a rule that Lyapunov optimisation gives.
//!
//! With `S_m` the size of a chunk at rung m, `v_m = ln(S_m / S_1)` its utility and Q the buffer in
//! chunks, the choice is the m with the largest
//!
//! ```text
//! ( V (v_m + γp) − Q ) / S_m            (BOLA-BASIC)
//! ```
//!
//! where γp weighs smoothness against quality, and `V = (Q_max − 1) / (v_M + γp)` is the largest V
//! that keeps the buffer within its size. The paper has the rule wait when every score is negative;
//! with this V that happens exactly when the buffer has no room, when the player does not ask.
//!
//! BOLA-O also damps oscillation: where the rule would go up from the rung before, it goes no higher
//! than the throughput of the last chunk sustains, and not below the rung before.

use super::State;

/// The buffer-based rule BOLA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bola {
    /// γp, the utility of playing without a stall, above 0. Default: 5, as in the paper's evaluation.
    pub gamma_p: f64,
    /// Whether the throughput of the last chunk caps steps up (BOLA-O). Default: true.
    pub cap_steps_up: bool,
}

impl Default for Bola {
    fn default() -> Self {
        Self { gamma_p: 5.0, cap_steps_up: true }
    }
}

impl Bola {
    pub(super) fn choose(&self, state: &State<'_>) -> usize {
        let best = self.best_score(state);
        match (state.previous, state.history.last) {
            (Some(previous), Some(last)) if self.cap_steps_up && best > previous => {
                let sustained = state.ladder.iter().rposition(|&b| b <= last).unwrap_or(0);
                best.min(sustained.max(previous))
            }
            _ => best,
        }
    }

    /// The rung that BOLA-BASIC chooses.
    fn best_score(&self, state: &State<'_>) -> usize {
        // Sizes and bitrates differ by a factor that is the same for every rung, so bitrates do.
        let bitrate = |rung: usize| state.ladder[rung].bits_per_sec().max(1.0);
        let utility = |rung: usize| libm::log(bitrate(rung) / bitrate(0));
        let q = state.buffer.ratio(state.chunk_length);
        let q_max = state.buffer_max.ratio(state.chunk_length);
        let top = state.ladder.len() - 1;
        let v = (q_max - 1.0).max(0.0) / (utility(top) + self.gamma_p);
        let score = |rung: usize| (v * (utility(rung) + self.gamma_p) - q) / bitrate(rung);
        // The first of equals: the lower rung.
        (1..=top).fold(0, |best, rung| if score(rung) > score(best) { rung } else { best })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trimtab_units::{Duration, Rate};

    use super::super::{History, ladder};
    use super::*;

    fn rung(rule: Bola, buffer_s: f64, previous: Option<usize>, last_mbps: f64) -> usize {
        rule.choose(&State {
            ladder: &ladder(),
            buffer: Duration::from_secs_f64(buffer_s),
            buffer_max: Duration::from_secs(30),
            chunk_length: Duration::from_secs(4),
            previous,
            history: History { last: Some(Rate::from_mbps(last_mbps)), ..History::default() },
        })
    }

    const BASIC: Bola = Bola { gamma_p: 5.0, cap_steps_up: false };

    /// Where two neighbouring rungs a < b score the same:
    /// Q = V (γp + (S_b v_a − S_a v_b) / (S_b − S_a)). With Q_max = 7.5 chunks, γp = 5 and a ladder
    /// that spans a factor of 15, V = 6.5 / (ln 15 + 5) = 0.8433; the steps lie at 14.53, 16.78,
    /// 18.99 and 21.32 s.
    #[test]
    fn steps_lie_where_neighbouring_rungs_score_the_same() {
        for (buffer, below) in [(14.53, 0), (16.78, 1), (18.99, 2), (21.32, 3)] {
            assert_eq!(rung(BASIC, buffer - 0.02, None, 0.0), below);
            assert_eq!(rung(BASIC, buffer + 0.02, None, 0.0), below + 1);
        }
        assert_eq!(rung(BASIC, 26.0, None, 0.0), 4, "where the top rung scores 0");
    }

    #[test]
    fn steps_up_stop_at_the_last_throughput() {
        let rule = Bola::default();
        assert_eq!(rung(rule, 25.0, Some(1), 2.0), 2, "1.5 Mbit/s is sustained by 2");
        assert_eq!(rung(rule, 25.0, Some(1), 0.5), 1, "not below the rung before");
        assert_eq!(rung(rule, 25.0, Some(1), 50.0), 4);
        assert_eq!(rung(rule, 5.0, Some(3), 50.0), 0, "steps down are free");
        assert_eq!(rung(BASIC, 25.0, Some(1), 2.0), 4);
    }

    #[test]
    fn a_buffer_of_one_chunk_leaves_the_lowest_rung() {
        let state = State {
            ladder: &ladder(),
            buffer: Duration::ZERO,
            buffer_max: Duration::from_secs(4),
            chunk_length: Duration::from_secs(4),
            previous: None,
            history: History::default(),
        };
        assert_eq!(BASIC.choose(&state), 0);
    }

    proptest! {
        #[test]
        fn more_buffer_never_lowers_the_choice(
            buffer in 0.0..26.0f64, more in 0.0..4.0f64, gamma_p in 0.1..20.0f64,
        ) {
            let rule = Bola { gamma_p, ..BASIC };
            let higher = rung(rule, (buffer + more).min(26.0), None, 0.0);
            prop_assert!(higher >= rung(rule, buffer, None, 0.0));
        }
    }
}
