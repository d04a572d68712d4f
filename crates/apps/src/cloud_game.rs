//! Cloud gaming: a server renders frames that answer the player's inputs.
//!
//! The player's inputs go to the server with every refresh of the screen. A frame shows the newest
//! input that had reached the server when it was rendered, and its delay counts from that input.

use trimtab_units::Duration;

use crate::call::{Call, CallConfig, CallRecord, OneCall};
use crate::conference::{FEEDBACK, PARITY, PICTURE, picture, protection};
use crate::{AppInfo, Form, Recipe, Setting};

/// The delay from input to display that players do not feel, and the one at which they cannot play.
/// Ours, after Vlahovic et al. (QoMEX 2019): a shooter suffers from some 50 ms on.
const DELAY_FREE: Duration = Duration::from_millis(50);
const DELAY_WORST: Duration = Duration::from_millis(250);
/// Weights of picture, delay and drops. Ours: Mortise Eq. 13 with picture and delay changed over.
const WEIGHTS: [f64; 3] = [0.3, 0.5, 0.2];

/// A game that a server renders.
#[derive(Clone, Debug)]
pub struct CloudGame {
    call: Call,
}

impl CloudGame {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "cloud-game",
        about: "A game that a server renders: frames that answer inputs",
        source: "our own; delays after Vlahovic et al., QoMEX 2019",
        label: "cloud game",
        users: "players of a game",
        experience: "Players act on what a distant server draws. A session scores half the delay \
                     from an input to the picture that shows it (full up to 50 ms, nothing from \
                     250 ms), three tenths its picture (VMAF) and a fifth frames that are not \
                     dropped, 0 to 100: higher is better.",
        log: false,
        media: true,
        settings: &[
            PICTURE,
            Setting {
                name: "fps",
                form: Form::Number(5.0, 120.0),
                default: "60",
                about: "frames per second",
            },
            FEEDBACK,
            PARITY,
        ],
        models: &["conference", "conference-printed"],
        factors: &[],
        make: |settings| {
            let usual = CallConfig::game();
            let config = CallConfig {
                fps: settings.number("fps").unwrap_or(usual.fps),
                picture: picture(settings),
                protection: protection(settings),
                ..usual
            };
            Ok(Recipe::new(move |session| {
                let (length, seed) = (session.length, session.seed);
                Self::new(CallConfig { length, seed, ..config }).into()
            }))
        },
    };

    /// A session with these settings.
    pub fn new(config: CallConfig) -> Self {
        Self { call: Call::new(config) }
    }

    /// The QoE of a session, 0 to 100. One without a presented frame scores 0.
    pub fn qoe(record: &CallRecord) -> f64 {
        let Some(delay) = record.mean_delay() else { return 0.0 };
        let spoilt = delay.max(DELAY_FREE) - DELAY_FREE;
        let delay = 1.0 - spoilt.ratio(DELAY_WORST - DELAY_FREE).min(1.0);
        let parts = [record.vmaf(), 100.0 * delay, 100.0 * (1.0 - record.drop_ratio())];
        WEIGHTS.iter().zip(parts).map(|(weight, part)| weight * part).sum()
    }
}

impl OneCall for CloudGame {
    fn of(&self) -> &Call {
        &self.call
    }

    fn of_mut(&mut self) -> &mut Call {
        &mut self.call
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameRecord, Picture};
    use trimtab_units::{Bytes, Rate, Time};

    fn session(delay: u64, dropped: u64) -> CallRecord {
        let frame = |i: u64| {
            let captured_at = Time::from_millis(20 * i);
            FrameRecord {
                captured_at,
                bytes: Bytes::new(9000),
                asked: Rate::from_mbps(3.6),
                height: 720,
                key: false,
                presented_at: (i >= dropped).then(|| captured_at + Duration::from_millis(delay)),
            }
        };
        CallRecord {
            start: Time::ZERO,
            end: Time::from_secs(2),
            interval: Duration::from_millis(20),
            pause: None,
            frames: (0..100).map(frame).collect(),
            audio: Vec::new(),
            picture: Picture::default(),
            measured_vmaf: Some(90.0),
            stills: Vec::new(),
        }
    }

    #[test]
    fn what_an_input_waits_for_its_picture_counts_most() {
        assert_eq!(CloudGame::qoe(&session(40, 0)), 27.0 + 50.0 + 20.0);
        assert_eq!(CloudGame::qoe(&session(150, 0)), 27.0 + 25.0 + 20.0);
        assert_eq!(CloudGame::qoe(&session(400, 0)), 27.0 + 20.0);
        assert!((CloudGame::qoe(&session(40, 10)) - (27.0 + 50.0 + 18.0)).abs() < 1e-9);
        assert_eq!(CloudGame::qoe(&session(40, 100)), 0.0);
    }
}
