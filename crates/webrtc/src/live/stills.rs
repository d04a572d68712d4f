//! Pictures of a call's worst moments: what was on the screen, and what had been captured by then.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::process::Stdio;

use trimtab_apps::{CallRecord, Moment, Still};
use trimtab_rtc::units::Time;

use super::studio::{Clip, Studio, finish};
use super::vmaf::black;
use crate::error::WebrtcError;

/// How wide the pictures are, and how coarse (2 to 31, ffmpeg's `-q:v`): some 10 kB each.
const SCALE: &str = "scale=320:-2";
const COARSE: &str = "6";
const TASK: &str = "make pictures of a call";

/// The frames of a moment, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shot {
    /// The end of the moment.
    pub(crate) at: Time,
    /// The frame on the screen just before it; `None` before the first one.
    pub(crate) seen: Option<usize>,
    /// The frame that had been captured last.
    pub(crate) captured: usize,
}

impl Shot {
    /// That of a moment of a call; `None` before its first frame.
    pub(crate) fn of(moment: &Moment, call: &CallRecord) -> Option<Self> {
        let at = moment.until;
        let on_screen = call.frames.iter().enumerate().filter_map(|(number, frame)| {
            frame.presented_at.filter(|shown| *shown < at).map(|shown| (shown, number))
        });
        let seen = on_screen.max().map(|(_, number)| number);
        let captured = call.frames.iter().rposition(|frame| frame.captured_at < at)?;
        Some(Self { at, seen, captured })
    }
}

/// Makes the pictures. `decoded` has those that were on the screen, by their frames.
pub(crate) fn develop(
    studio: &Studio,
    clip: &Clip,
    shots: &[Shot],
    decoded: &BTreeMap<usize, Vec<u8>>,
) -> Result<Vec<Still>, WebrtcError> {
    if shots.is_empty() {
        return Ok(Vec::new());
    }
    let system = WebrtcError::system::<io::Error>;
    let folder = tempfile::tempdir().map_err(system("make a folder for pictures"))?;
    let size = clip.size().text();
    let input = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-i", "-"];
    let mut command = studio.ffmpeg(&input);
    command.args(["-vf", SCALE, "-q:v", COARSE]).arg(folder.path().join("%d.jpg"));
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(system("run ffmpeg"))?;
    let mut pipe = child
        .stdin
        .take()
        .ok_or_else(|| WebrtcError::Ffmpeg { task: TASK, said: "it has no input".into() })?;
    let nothing = black(clip.size());
    let written = shots.iter().try_for_each(|shot| {
        let seen = shot.seen.and_then(|number| decoded.get(&number)).unwrap_or(&nothing);
        pipe.write_all(seen)?;
        pipe.write_all(clip.picture(shot.captured))
    });
    drop(pipe);
    finish(child, TASK)?;
    written.map_err(system("write pictures"))?;
    let jpeg = |number: usize| {
        fs::read(folder.path().join(format!("{number}.jpg"))).map_err(system("read a picture"))
    };
    let still = |(place, shot): (usize, &Shot)| {
        Ok(Still { at: shot.at, seen: jpeg(2 * place + 1)?, captured: jpeg(2 * place + 2)? })
    };
    shots.iter().enumerate().map(still).collect()
}

#[cfg(test)]
mod tests {
    use trimtab_apps::{FrameRecord, MomentKind, Picture};
    use trimtab_rtc::units::{Bytes, Duration, Rate};

    use super::*;

    #[test]
    fn the_frames_of_a_moment_are_the_last_ones_before_its_end() {
        let ms = Time::from_millis;
        let frame = |captured, presented: Option<u64>| FrameRecord {
            captured_at: ms(captured),
            bytes: Bytes::new(100),
            asked: Rate::from_mbps(1.0),
            height: 360,
            key: false,
            presented_at: presented.map(ms),
        };
        let call = CallRecord {
            start: Time::ZERO,
            end: ms(400),
            interval: Duration::from_millis(40),
            // The second one overtakes the first, and the third is on the screen at the end.
            frames: vec![
                frame(0, Some(130)),
                frame(40, Some(120)),
                frame(80, None),
                frame(120, Some(300)),
            ],
            audio: Vec::new(),
            pause: None,
            picture: Picture::default(),
            measured_vmaf: None,
            stills: Vec::new(),
        };
        let moment =
            |until| Moment { from: Time::ZERO, until: ms(until), kind: MomentKind::Frozen };
        let shot = |until| Shot::of(&moment(until), &call);
        assert_eq!(shot(300), Some(Shot { at: ms(300), seen: Some(0), captured: 3 }));
        assert_eq!(shot(110), Some(Shot { at: ms(110), seen: None, captured: 2 }));
        assert_eq!(shot(0), None);
    }
}
