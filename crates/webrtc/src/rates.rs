//! What a call asks of its path, and its encoder of the target.

use std::time::Duration as StdDuration;

use trimtab_apps::CallConfig;
use trimtab_rtc::Bitrates;
use trimtab_rtc::units::{Bytes, Duration, Rate};

/// The payload of a full RTP packet, as in libwebrtc (`kDefaultMaxPacketSize`, less headers).
pub(crate) const PAYLOAD: u64 = 1200;
/// What is around it: IPv4 20, UDP 8, RTP 12, its extension with the transport-wide number 8
/// (RFC 8285 §4.2), SRTP's tag 10.
const HEADER: Bytes = Bytes::new(58);
/// Frames of audio (RFC 7587 §4.2).
const AUDIO: Duration = Duration::from_millis(20);
/// While the pacer needs longer than this for what waits, frames are left out. Ours: as the
/// simulator.
pub(crate) const BACKLOG_MAX: StdDuration = StdDuration::from_millis(250);

/// The range of a call's target: up to its largest resolution, with audio and headers.
pub(crate) fn bitrates(config: &CallConfig) -> Bitrates {
    Bitrates { most: config.most(Bytes::new(PAYLOAD), HEADER), ..Bitrates::default() }
}

/// What of a target remains for video, a frame in so long, after headers and audio of this rate.
pub(crate) fn video_rate(target: Rate, audio: Rate, interval: Duration) -> Rate {
    let audio = if audio.is_zero() { audio } else { audio + HEADER / AUDIO };
    let frame = (target.max(audio) - audio) * interval;
    let headers = HEADER * frame.get().div_ceil(PAYLOAD + HEADER.get());
    (frame.max(headers) - headers) / interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_call_asks_for_lets_its_encoder_make_its_most() {
        let config = CallConfig::conference();
        let interval = Duration::from_secs(1) / 30;
        let video = video_rate(bitrates(&config).most, Bytes::new(80) / AUDIO, interval);
        let most = config.ladder.last().unwrap().most;
        assert!(video >= most && video.mbps() < most.mbps() * 1.01, "{video} of {most}");
    }

    /// 300 kbit/s is 1250 bytes a frame, in one packet.
    #[test]
    fn headers_count_by_packet() {
        let interval = Duration::from_secs(1) / 30;
        let video = video_rate(Rate::from_mbps(0.3), Rate::ZERO, interval);
        assert!((video.mbps() - 0.3 * (1250.0 - 58.0) / 1250.0).abs() < 1e-3, "{video}");
    }
}
