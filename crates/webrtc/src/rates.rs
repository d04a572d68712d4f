//! What a call asks of its path, and its encoder of the target.

use std::time::Duration as StdDuration;

use trimtab_apps::CallConfig;
use trimtab_rtc::Bitrates;
use trimtab_rtc::units::{Bytes, Duration, Rate};

/// The payload of a full RTP packet, as in libwebrtc (`kDefaultMaxPacketSize`, less headers).
pub(crate) const PAYLOAD: u64 = 1200;
/// A header of RTP with the extension of transport-wide numbers (RFC 3550 §5.1, RFC 8285 §4.2).
const HEADER: u64 = 12 + 8;
/// Frames of audio (RFC 7587 §4.2).
const AUDIO: Duration = Duration::from_millis(20);
/// While the pacer needs longer than this for what waits, frames are left out. Ours: as the
/// simulator.
pub(crate) const BACKLOG_MAX: StdDuration = StdDuration::from_millis(250);

/// The range of a call's target: up to its largest resolution, with audio and headers.
pub(crate) fn bitrates(config: &CallConfig) -> Bitrates {
    let usual = Bitrates::default();
    let most = config.ladder.last().map_or(usual.most, |rung| rung.most);
    let most = most.mul_f64((PAYLOAD + HEADER) as f64 / PAYLOAD as f64);
    let audio = if config.audio { Bytes::new(80 + HEADER) / AUDIO } else { Rate::ZERO };
    Bitrates { most: most + audio, ..usual }
}

/// What of a target remains for video, after headers and audio of this rate.
pub(crate) fn video_rate(target: Rate, audio: Rate) -> Rate {
    let audio = if audio.is_zero() { audio } else { audio + Bytes::new(HEADER) / AUDIO };
    (target - audio).mul_f64(PAYLOAD as f64 / (PAYLOAD + HEADER) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_call_asks_for_lets_its_encoder_make_its_most() {
        let config = CallConfig::conference();
        let video = video_rate(bitrates(&config).most, Bytes::new(80) / AUDIO);
        let most = config.ladder.last().unwrap().most;
        assert!((video.mbps() - most.mbps()).abs() < 1e-3, "{video} of {most}");
    }
}
