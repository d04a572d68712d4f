//! A video conference, from one end to the other (Mortise App. C).

use crate::call::{Call, CallConfig, OneCall, Picture, Protection};
use crate::settings::{Form, Setting, Settings};
use crate::{AppInfo, Recipe};

/// What scores pictures.
pub(crate) const PICTURE: Setting = Setting {
    name: "picture",
    form: Form::Choice(&Picture::NAMES),
    default: "bunny",
    about: "what gives VMAF: a clip's measured curves, or Mortise's fit to the bitrate",
};
/// Feedback on packets.
pub(crate) const FEEDBACK: Setting = Setting {
    name: "feedback",
    form: Form::Choice(&["twcc", "rfc8888"]),
    default: "twcc",
    about: "how the receiver reports packets: transport-wide, or as RFC 8888 does",
};
/// Parity packets.
pub(crate) const PARITY: Setting = Setting {
    name: "fec",
    form: Form::Flag,
    default: "false",
    about: "whether parity packets protect frames",
};

/// What settings say of the transport.
pub(crate) fn protection(settings: &Settings) -> Protection {
    Protection {
        parity: settings.flag(PARITY.name).unwrap_or(false),
        rfc8888: settings.choice(FEEDBACK.name) == Some("rfc8888"),
    }
}

/// What settings say of pictures.
pub(crate) fn picture(settings: &Settings) -> Picture {
    settings.choice(PICTURE.name).and_then(Picture::named).unwrap_or_default()
}

/// A video conference.
#[derive(Clone, Debug)]
pub struct Conference {
    call: Call,
}

impl Conference {
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "conference",
        about: "A video conference: frames and sound as they are made",
        source: "Mortise, appendix C; RFC 8593",
        label: "video conference",
        users: "people in a video conference",
        experience: "People see and hear each other. A call scores half its picture (VMAF), \
                     three tenths for the delay of its frames and a fifth for frames that are not \
                     dropped (Mortise, eq. 13), 0 to 100: higher is better.",
        log: false,
        media: true,
        settings: &[
            PICTURE,
            Setting {
                name: "fps",
                form: Form::Number(5.0, 60.0),
                default: "30",
                about: "frames per second",
            },
            Setting {
                name: "resolution",
                form: Form::Choice(&["180p", "360p", "720p"]),
                default: "720p",
                about: "largest resolution: at most 0.3, 0.8 or 2.5 Mbit/s",
            },
            Setting {
                name: "audio",
                form: Form::Flag,
                default: "true",
                about: "whether there is audio, 32 kbit/s",
            },
            FEEDBACK,
            PARITY,
        ],
        models: &["conference", "conference-printed"],
        factors: &[],
        make: |settings| {
            let config = Self::configure(settings);
            Ok(Recipe::new(move |session| {
                let (length, seed) = (session.length, session.seed);
                Self::new(CallConfig { length, seed, ..config }).into()
            }))
        },
    };

    fn configure(settings: &Settings) -> CallConfig {
        let usual = CallConfig::conference();
        let rungs = match settings.choice("resolution") {
            Some("180p") => 1,
            Some("360p") => 2,
            _ => usual.ladder.len(),
        };
        CallConfig {
            fps: settings.number("fps").unwrap_or(usual.fps),
            ladder: &usual.ladder[..rungs],
            picture: picture(settings),
            audio: settings.flag("audio").unwrap_or(usual.audio),
            protection: protection(settings),
            ..usual
        }
    }

    /// A conference with these settings.
    pub fn new(config: CallConfig) -> Self {
        Self { call: Call::new(config) }
    }
}

impl OneCall for Conference {
    fn of(&self) -> &Call {
        &self.call
    }

    fn of_mut(&mut self) -> &mut Call {
        &mut self.call
    }
}
