//! The rule of the VLC plugin for DASH (Müller and Timmerer, "A VLC media player plugin enabling
//! dynamic adaptive streaming over HTTP", ACM Multimedia 2011), which Mortise §5.1 evaluates with.
//!
//! We implement the rate-based logic of the plugin's published source, as of 2011 to 2014:
//!
//! 1. The estimate is the mean throughput of the whole session: all bytes of chunks over all time
//!    spent waiting for them. Until two chunks have been fetched it is 0.
//! 2. While the buffer is filled to less than 30 % of its size (30 s in the plugin), the estimate
//!    counts as 0.
//! 3. The choice is the highest bitrate below the estimate, or the lowest when there is none.
//!
//! Later versions of VLC have other rules; they are not meant here. The plugin also keeps to rungs of
//! the user's preferred frame size where the video has such; ours have no frame size, so all count.

use trimtab_units::Rate;

use super::State;

/// The highest bitrate below the session's mean throughput, and the lowest while the buffer is low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vlc {
    /// The share of its size below which the buffer is low, 0 to 1. Default: 0.3.
    pub low_buffer: f64,
}

impl Default for Vlc {
    fn default() -> Self {
        Self { low_buffer: 0.3 }
    }
}

/// Chunks to fetch before the estimate counts.
const CHUNKS_MIN: u32 = 2;

impl Vlc {
    pub(super) fn choose(&self, state: &State<'_>) -> usize {
        let low = state.buffer < state.buffer_max.mul_f64(self.low_buffer);
        let estimate = if low || state.history.chunks < CHUNKS_MIN {
            Rate::ZERO
        } else {
            state.history.bytes / state.history.time
        };
        state.ladder.iter().rposition(|&bitrate| bitrate < estimate).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trimtab_units::{Bytes, Duration};

    use super::super::{History, ladder};
    use super::*;

    fn rung(buffer_s: f64, mbps: f64, chunks: u32) -> usize {
        let time = Duration::from_secs(10);
        let history = History { chunks, bytes: Rate::from_mbps(mbps) * time, time, last: None };
        Vlc::default().choose(&State {
            ladder: &ladder(),
            buffer: Duration::from_secs_f64(buffer_s),
            buffer_max: Duration::from_secs(30),
            chunk_length: Duration::from_secs(4),
            previous: None,
            history,
        })
    }

    #[test]
    fn highest_bitrate_below_the_mean_throughput() {
        assert_eq!(rung(20.0, 2.9, 5), 2);
        assert_eq!(rung(20.0, 3.0, 5), 2, "strictly below");
        assert_eq!(rung(20.0, 3.1, 5), 3);
        assert_eq!(rung(20.0, 100.0, 5), 4);
        assert_eq!(rung(20.0, 0.1, 5), 0, "the lowest when none fits");
    }

    #[test]
    fn lowest_bitrate_while_little_is_known_or_buffered() {
        assert_eq!(rung(8.999, 100.0, 5), 0);
        assert_eq!(rung(9.0, 100.0, 5), 4, "30 % of 30 s");
        assert_eq!(rung(20.0, 100.0, 1), 0);
        assert_eq!(rung(20.0, 100.0, 2), 4);
    }

    #[test]
    fn the_mean_is_of_bytes_over_time_not_of_rates() {
        let mut history = History::default();
        history.add(Bytes::new(1_000_000), Duration::from_secs(1));
        history.add(Bytes::new(1_000_000), Duration::from_secs(7));
        // 2 MB in 8 s are 2 Mbit/s; the mean of 8 and 1.14 Mbit/s would be 4.6.
        let state = State {
            ladder: &ladder(),
            buffer: Duration::from_secs(20),
            buffer_max: Duration::from_secs(30),
            chunk_length: Duration::from_secs(4),
            previous: Some(4),
            history,
        };
        assert_eq!(Vlc::default().choose(&state), 2);
    }

    proptest! {
        #[test]
        fn more_throughput_or_buffer_never_lowers_the_choice(
            buffer in 0.0..30.0f64, more_buffer in 0.0..10.0f64,
            mbps in 0.01..10.0f64, factor in 1.0..5.0f64,
        ) {
            let base = rung(buffer, mbps, 5);
            prop_assert!(rung(buffer, mbps * factor, 5) >= base);
            prop_assert!(rung(buffer + more_buffer, mbps, 5) >= base);
        }
    }
}
