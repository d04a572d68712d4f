//! The tools that make and measure pictures: ffmpeg with libvmaf, and a clip.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use openh264::formats::YUVSlices;

use crate::error::WebrtcError;

/// Where the tools are.
const FOLDER: &str = "TRIMTAB_QUALITY";
/// … by default.
const DEFAULT: &str = "target/quality";

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// In pixels, even.
    pub width: usize,
    /// In pixels, even.
    pub height: usize,
}

impl Size {
    /// The bytes of a picture in YUV 4:2:0.
    pub(crate) fn bytes(self) -> usize {
        self.width * self.height * 3 / 2
    }

    pub(crate) fn text(self) -> String {
        format!("{}x{}", self.width, self.height)
    }
}

/// ffmpeg and the clips.
#[derive(Clone, Debug)]
pub struct Studio {
    folder: PathBuf,
}

impl Studio {
    /// Those of the folder that `TRIMTAB_QUALITY` names, or `target/quality`; `./dev quality` makes it.
    ///
    /// # Errors
    /// There is no such folder, or no ffmpeg in it.
    pub fn from_env() -> Result<Self, WebrtcError> {
        let folder = std::env::var_os(FOLDER).map_or_else(|| DEFAULT.into(), PathBuf::from);
        let studio = Self { folder };
        File::open(studio.ffmpeg_path())
            .map_err(|cause| WebrtcError::Quality { path: studio.ffmpeg_path(), cause })?;
        Ok(studio)
    }

    fn ffmpeg_path(&self) -> PathBuf {
        self.folder.join("ffmpeg")
    }

    /// A command of ffmpeg, which prints nothing but errors.
    pub(crate) fn ffmpeg<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(self.ffmpeg_path());
        command.args(["-hide_banner", "-nostdin", "-loglevel", "error"]);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A clip by its name, e.g. `bunny`, in this size.
    ///
    /// # Errors
    /// There is none, or ffmpeg cannot read it.
    pub fn clip(&self, name: &str, size: Size) -> Result<Clip, WebrtcError> {
        let path = self.folder.join(format!("{name}.mp4"));
        File::open(&path).map_err(|cause| WebrtcError::Quality { path: path.clone(), cause })?;
        let scale = format!("scale={}:{}:flags=bicubic", size.width, size.height);
        let mut pictures = self.pictures(&path, size, &["-vf", &scale])?;
        let mut frames = Vec::new();
        while let Some(frame) = pictures.next()? {
            frames.push(frame);
        }
        pictures.finish()?;
        if frames.is_empty() {
            let said = format!("{} has no frames", path.display());
            return Err(WebrtcError::Ffmpeg { task: "read a clip", said });
        }
        Ok(Clip { size, frames })
    }

    /// The pictures of a file.
    pub(crate) fn pictures(
        &self,
        file: &Path,
        size: Size,
        options: &[&str],
    ) -> Result<Pictures, WebrtcError> {
        let before = ["-i".as_ref(), file.as_os_str()];
        let after = ["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"];
        let mut command = self.ffmpeg(&before);
        command.args(options).args(after).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(WebrtcError::system::<io::Error>("run ffmpeg"))?;
        let pipe = child.stdout.take().ok_or_else(|| WebrtcError::Ffmpeg {
            task: "read a clip",
            said: "it has no output".into(),
        })?;
        Ok(Pictures { child, pipe, size })
    }
}

/// Ends a run of ffmpeg.
pub(crate) fn finish(child: Child, task: &'static str) -> Result<(), WebrtcError> {
    let done = child.wait_with_output().map_err(WebrtcError::system("wait for ffmpeg"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(WebrtcError::Ffmpeg { task, said })
}

/// Pictures that ffmpeg decodes, one after the other.
#[derive(Debug)]
pub(crate) struct Pictures {
    child: Child,
    pipe: ChildStdout,
    size: Size,
}

impl Pictures {
    /// The next one; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, WebrtcError> {
        let mut frame = vec![0; self.size.bytes()];
        match self.pipe.read_exact(&mut frame) {
            Ok(()) => Ok(Some(frame)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(WebrtcError::system("read pictures")(e)),
        }
    }

    pub(crate) fn finish(self) -> Result<(), WebrtcError> {
        drop(self.pipe);
        finish(self.child, "decode a video")
    }
}

/// A clip in memory, which goes back and forth without end.
#[derive(Debug)]
pub struct Clip {
    size: Size,
    frames: Vec<Vec<u8>>,
}

impl Clip {
    /// The size of its pictures.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The picture with this number: at the end the clip turns round.
    pub(crate) fn picture(&self, number: usize) -> &[u8] {
        let last = self.frames.len() - 1;
        let place = number % (2 * last).max(1);
        &self.frames[if place > last { 2 * last - place } else { place }]
    }

    /// The same for an encoder.
    pub fn frame(&self, number: usize) -> YUVSlices<'_> {
        let Size { width, height } = self.size;
        let (luma, chroma) = self.picture(number).split_at(width * height);
        let (u, v) = chroma.split_at(width * height / 4);
        YUVSlices::new((luma, u, v), (width, height), (width, width / 2, width / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_goes_back_and_forth() {
        let size = Size { width: 2, height: 2 };
        let clip = Clip { size, frames: (0..3).map(|n| vec![n; size.bytes()]).collect() };
        let order: Vec<u8> = (0..9).map(|n| clip.picture(n)[0]).collect();
        assert_eq!(order, [0, 1, 2, 1, 0, 1, 2, 1, 0]);
        let single = Clip { size, frames: vec![vec![7; size.bytes()]] };
        assert_eq!(single.picture(5)[0], 7);
    }
}
