//! VMAF of what the viewer saw, measured against what was captured.
//!
//! A receiver that presents a frame has decoded it as any decoder would, so the pictures come from
//! decoding what was sent. In the place of a frame that was never presented the viewer saw the last
//! one that was, and before the first one nothing. Every captured frame counts, so a freeze does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::process::Stdio;

use serde_json::Value;

use super::studio::{Clip, Pictures, Size, Studio, finish};
use crate::error::WebrtcError;

/// A captured frame, for the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a> {
    /// The picture of the clip.
    pub(crate) picture: usize,
    /// As encoded; `None` where the encoder skipped it.
    pub(crate) data: Option<&'a [u8]>,
    /// Whether the viewer saw it.
    pub(crate) is_presented: bool,
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The mean over all captured frames, 0 to 100; `None` without a frame.
    pub(crate) vmaf: Option<f64>,
    /// Pictures as decoded, by the places of their slots.
    pub(crate) kept: BTreeMap<usize, Vec<u8>>,
}

/// Measures what the viewer saw, and keeps the pictures of these slots.
pub(crate) fn measure(
    studio: &Studio,
    clip: &Clip,
    slots: &[Slot<'_>],
    keep: &BTreeSet<usize>,
) -> Result<Measured, WebrtcError> {
    let mut kept = BTreeMap::new();
    if slots.is_empty() {
        return Ok(Measured::default());
    }
    let system = WebrtcError::system::<io::Error>;
    let folder = tempfile::tempdir().map_err(system("make a folder for a video"))?;
    let (sent, log) = (folder.path().join("sent.h264"), folder.path().join("vmaf.json"));
    let stream: Vec<u8> = slots.iter().filter_map(|slot| slot.data).flatten().copied().collect();
    fs::write(&sent, stream).map_err(system("write a video"))?;
    let size = clip.size();
    let mut pictures = studio.pictures(&sent, size, &[])?;

    // Both pictures of a pair in one, the seen one above: so there is one pipe, and no order of two.
    let height = size.height;
    let graph = format!(
        "[0:v]split[a][b];[a]crop=iw:{height}:0:0[seen];[b]crop=iw:{height}:0:{height}[captured];\
         [seen][captured]libvmaf=log_fmt=json:n_threads=1:log_path={}",
        log.display()
    );
    let stacked = Size { height: height * 2, ..size }.text();
    let input = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &stacked, "-r", "25", "-i", "-"];
    let mut command = studio.ffmpeg(&input);
    command.args(["-lavfi", &graph, "-f", "null", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(system("run ffmpeg"))?;
    let mut pipe = child.stdin.take().ok_or_else(|| WebrtcError::Ffmpeg {
        task: "measure a video",
        said: "it has no input".into(),
    })?;
    let mut look = |place, picture: &[u8]| {
        if keep.contains(&place) {
            kept.insert(place, picture.to_vec());
        }
    };
    let written = write_pairs(clip, slots, &mut pictures, &mut look, &mut pipe);
    drop(pipe);
    finish(child, "measure a video")?;
    written?;
    pictures.finish()?;
    let text = fs::read_to_string(&log).map_err(system("read a measurement"))?;
    let mean = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|log| log["pooled_metrics"]["vmaf"]["mean"].as_f64());
    let vmaf = mean.ok_or_else(|| WebrtcError::Ffmpeg {
        task: "measure a video",
        said: "its log has no mean of VMAF; install ffmpeg again with ./dev quality".into(),
    })?;
    Ok(Measured { vmaf: Some(vmaf), kept })
}

fn write_pairs(
    clip: &Clip,
    slots: &[Slot<'_>],
    pictures: &mut Pictures,
    look: &mut impl FnMut(usize, &[u8]),
    pipe: &mut impl io::Write,
) -> Result<(), WebrtcError> {
    let luma = clip.size().width * clip.size().height;
    let mut seen = black(clip.size());
    for (place, slot) in slots.iter().enumerate() {
        if slot.data.is_some()
            && let Some(picture) = pictures.next()?
            && slot.is_presented
        {
            look(place, &picture);
            seen = picture;
        }
        let captured = clip.picture(slot.picture);
        // The planes of luma and of both chromas, each of one picture above the other.
        let planes = [0..luma, luma..luma * 5 / 4, luma * 5 / 4..luma * 3 / 2];
        let pair: Vec<u8> =
            planes.into_iter().flat_map(|at| [&seen[at.clone()], &captured[at]].concat()).collect();
        match pipe.write_all(&pair) {
            Ok(()) => {}
            // ffmpeg has ended, and tells why.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(e) => return Err(WebrtcError::system("write pictures")(e)),
        }
    }
    Ok(())
}

/// A black picture (BT.601: black is 16, no colour 128).
pub(super) fn black(size: Size) -> Vec<u8> {
    let mut picture = vec![128; size.bytes()];
    picture[..size.width * size.height].fill(16);
    picture
}
