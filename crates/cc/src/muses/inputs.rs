//! What a tree may compare besides the seven signals: their differences and their changes.
//!
//! A tree compares one number with a threshold. Whether a window is too large is a matter of three
//! signals at once, the window over what the path carries in its least round-trip time, and a tree
//! of the seven alone spends its leaves on climbing along that line in steps. Signals are
//! logarithms, so the ratio is a difference, which costs two subtractions. And an LSTM knows what
//! was before; four moving averages tell a tree a part of it. Muses has neither: a model of the
//! seven signals alone (Table I) is still one ([`Trees::inputs`](super::Trees::inputs)).

use super::signals::{SIGNALS, State};

/// How many inputs there are.
pub const INPUTS: usize = 16;
/// Their names, in the order of [`Inputs`].
pub const INPUT_NAMES: [&str; INPUTS] = [
    "srtt", "qdelay", "min_rtt", "srate", "drate", "loss", "cwnd", "over", "growth", "rates",
    "drate_8", "drate_64", "cwnd_8", "qdelay_8", "over_8", "even",
];

/// What a tree is asked with: a [`State`], and what follows from it and from those before.
///
/// | input | what it is |
/// |---|---|
/// | 0 to 6 | the signals |
/// | over | cwnd − drate − `min_rtt`: the window over what the path carries in its least round-trip time |
/// | growth | cwnd − drate − srtt: over what it had in flight a round trip ago |
/// | rates | srate − drate |
/// | `drate_8`, `drate_64`, `cwnd_8`, `qdelay_8` | the signal, less its average over about so many intervals |
/// | `over_8` | over, with the average of drate over 8 intervals |
/// | even | qdelay + drate / 2, rounded down: flows that share a queue see it alike, so it is higher for one that has more of the link |
///
/// They are logarithms as the signals are: 256 for each doubling. Constants are left out, a threshold has them in it.
pub type Inputs = [i16; INPUTS];

/// Averages are kept 64-fold.
const PARTS_BITS: u32 = 6;
/// The signal and the weight of each, as a power of one half.
const AVERAGES: [(usize, u32); 4] = [(DRATE, 3), (DRATE, 6), (CWND, 3), (QDELAY, 3)];
const SRTT: usize = 0;
const QDELAY: usize = 1;
const MIN_RTT: usize = 2;
const SRATE: usize = 3;
const DRATE: usize = 4;
const CWND: usize = 6;

/// What a connection keeps of its states before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    averages: [i32; AVERAGES.len()],
    is_set: bool,
}

impl Past {
    /// Takes the next state; gives what a tree is asked with.
    pub fn see(&mut self, state: &State) -> Inputs {
        let signal = |number: usize| i32::from(state[number]);
        for (average, (number, shift)) in self.averages.iter_mut().zip(AVERAGES) {
            let here = signal(number) << PARTS_BITS;
            // The first is taken whole. Shifts round down, as the kernel's and the training's do.
            *average = if self.is_set { *average + ((here - *average) >> shift) } else { here };
        }
        self.is_set = true;
        let [drate_8, drate_64, cwnd_8, qdelay_8] =
            self.averages.map(|average| average >> PARTS_BITS);
        let mut inputs = [0; INPUTS];
        inputs[..SIGNALS].copy_from_slice(state);
        // Signals are 0 to 16384, or 1024 for loss: no difference of these leaves 16 bits.
        let derived = [
            signal(CWND) - signal(DRATE) - signal(MIN_RTT),
            signal(CWND) - signal(DRATE) - signal(SRTT),
            signal(SRATE) - signal(DRATE),
            signal(DRATE) - drate_8,
            signal(DRATE) - drate_64,
            signal(CWND) - cwnd_8,
            signal(QDELAY) - qdelay_8,
            signal(CWND) - drate_8 - signal(MIN_RTT),
            signal(QDELAY) + (signal(DRATE) >> 1),
        ];
        for (input, value) in inputs[SIGNALS..].iter_mut().zip(derived) {
            *input = value.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16;
        }
        inputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// python/tests/test_muses_inputs.py has the same numbers.
    #[test]
    fn differences_and_averages() {
        let mut past = Past::default();
        let first = past.see(&[4000, 100, 3900, 5100, 5000, 3, 3500]);
        assert_eq!(first[..SIGNALS], [4000, 100, 3900, 5100, 5000, 3, 3500]);
        assert_eq!(first[SIGNALS..], [-5400, -5500, 100, 0, 0, 0, 0, -5400, 2600]);
        // A doubling of the rate: an eighth of it, and a sixty-fourth, are in the averages at once.
        let second = past.see(&[4000, 60, 3900, 5100, 5256, 0, 3501]);
        assert_eq!(second[SIGNALS..], [-5655, -5755, -156, 224, 252, 1, -35, -5431, 2688]);
    }

    #[test]
    fn nothing_that_a_state_can_be_leaves_sixteen_bits() {
        let mut past = Past::default();
        for state in [[0; SIGNALS], [i16::MAX; SIGNALS], [i16::MIN; SIGNALS], [16_384; SIGNALS]] {
            past.see(&state);
            past.see(&[0, 0, i16::MAX, 0, i16::MAX, 0, i16::MIN]);
        }
    }
}
