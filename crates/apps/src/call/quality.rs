//! How good a picture of a given bitrate looks: Mortise's fit, or curves measured on real clips.

use trimtab_units::Rate;

use super::curves::{BIKES, BUNNY};

/// VMAF over the bitrate `T` in Mbit/s: `41.06 + 30.53·ln(T + 0.1481)` (Mortise Eq. 16).
const FIT: (f64, f64, f64) = (41.06, 30.53, 0.1481);
/// Frames per second at which the curves were measured.
const MEASURED_FPS: f64 = 25.0;
/// PSNR of a picture without an error; libvmaf's cap for 8 bits.
const PSNR_MAX: f64 = 60.0;

/// What scores the pictures of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Picture {
    /// Mortise's fit of VMAF to the mean bitrate (Eq. 16). It knows neither freezes nor SSIM.
    Fit,
    /// Curves measured on a clip, frame by frame; a frame that stands still scores less and less.
    Clip(&'static Clip),
}

impl Picture {
    /// Their names in settings, the default first.
    pub const NAMES: [&'static str; 3] = ["bunny", "bikes", "fit"];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "fit" => Some(Self::Fit),
            _ => [&BUNNY, &BIKES].into_iter().find(|clip| clip.name == name).map(Self::Clip),
        }
    }
}

impl Default for Picture {
    fn default() -> Self {
        Self::Clip(&BUNNY)
    }
}

/// VMAF by Mortise's fit (Eq. 16), cut to 0 to 100.
pub(super) fn fitted_vmaf(bitrate: Rate) -> f64 {
    let (base, per_ln, shift) = FIT;
    (base + per_ln * libm::log(bitrate.mbps() + shift)).clamp(0.0, 100.0)
}

/// How good a picture is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// VMAF, 0 to 100.
    pub vmaf: f64,
    /// Structural similarity, 0 to 1.
    pub ssim: f64,
    /// Peak signal-to-noise ratio of luma, in dB.
    pub psnr: f64,
}

impl Quality {
    const PERFECT: Self = Self { vmaf: 100.0, ssim: 1.0, psnr: PSNR_MAX };
    const NONE: Self = Self { vmaf: 0.0, ssim: 0.0, psnr: 0.0 };

    /// What remains of two degradations in a row: scores multiply, squared errors add.
    fn and(self, other: Self) -> Self {
        let error = libm::pow(10.0, -self.psnr / 10.0) + libm::pow(10.0, -other.psnr / 10.0);
        Self {
            vmaf: self.vmaf * other.vmaf / 100.0,
            ssim: self.ssim * other.ssim,
            psnr: -10.0 * libm::log10(error),
        }
    }

    /// From one to the other, `share` of the way.
    fn between(self, other: Self, share: f64) -> Self {
        let mix = |a: f64, b: f64| a + (b - a) * share;
        Self {
            vmaf: mix(self.vmaf, other.vmaf),
            ssim: mix(self.ssim, other.ssim),
            psnr: mix(self.psnr, other.psnr),
        }
    }
}

/// A clip and how its quality depends on bitrate and resolution.
#[derive(Debug, PartialEq)]
pub struct Clip {
    /// Its name.
    pub name: &'static str,
    /// Lines of the original, in which quality is compared.
    pub height: u16,
    /// The resolutions that were measured, lowest first.
    pub rungs: &'static [Rung],
    /// The clip against itself some frames later, fewest frames first.
    pub lags: &'static [Lag],
}

/// A resolution of a clip.
#[derive(Debug, PartialEq)]
pub struct Rung {
    /// Lines.
    pub height: u16,
    /// Its curve, lowest bitrate first.
    pub points: &'static [Point],
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bitrate at 25 frames per second, in kbit/s.
    pub kbps: f64,
    /// Mean VMAF, 0 to 100.
    pub vmaf: f64,
    /// Mean structural similarity, 0 to 1.
    pub ssim: f64,
    /// Mean PSNR of luma, in dB.
    pub psnr: f64,
}

/// How good the picture of some frames ago is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// How many, at 25 frames per second.
    pub frames: u32,
    /// Mean VMAF, 0 to 100.
    pub vmaf: f64,
    /// Mean structural similarity, 0 to 1.
    pub ssim: f64,
    /// Mean PSNR of luma, in dB.
    pub psnr: f64,
}

impl Clip {
    /// The quality of a stream of this many lines, bits per second and frames per second. Between
    /// measured points it is linear in the logarithm of the bitrate; below the first it falls with
    /// the bitrate, and above the last it stays.
    pub fn encoded(&self, height: u16, bitrate: Rate, fps: f64) -> Quality {
        let far = |rung: &&Rung| rung.height.abs_diff(height);
        let Some(rung) = self.rungs.iter().min_by_key(far) else { return Quality::NONE };
        let kbps = bitrate.mbps() * 1000.0 * MEASURED_FPS / fps;
        let of = |p: &Point| Quality { vmaf: p.vmaf, ssim: p.ssim, psnr: p.psnr };
        let above = rung.points.partition_point(|point| point.kbps < kbps);
        match (above.checked_sub(1).and_then(|i| rung.points.get(i)), rung.points.get(above)) {
            (Some(low), Some(high)) => {
                let share = libm::log(kbps / low.kbps) / libm::log(high.kbps / low.kbps);
                of(low).between(of(high), share)
            }
            (None, Some(first)) => Quality::NONE.between(of(first), kbps / first.kbps),
            (Some(last), None) => of(last),
            (None, None) => Quality::NONE,
        }
    }

    /// The quality of a picture that is `seconds` old, without encoding. Linear between what was
    /// measured; past the last lag it stays.
    pub fn stale(&self, seconds: f64) -> Quality {
        let frames = seconds * MEASURED_FPS;
        let of = |lag: &Lag| Quality { vmaf: lag.vmaf, ssim: lag.ssim, psnr: lag.psnr };
        let above = self.lags.partition_point(|lag| f64::from(lag.frames) < frames);
        let (from, low) = match above.checked_sub(1).map(|i| &self.lags[i]) {
            Some(lag) => (f64::from(lag.frames), of(lag)),
            None => (0.0, Quality::PERFECT),
        };
        match self.lags.get(above) {
            Some(high) => low.between(of(high), (frames - from) / (f64::from(high.frames) - from)),
            None => low,
        }
    }

    /// The quality of what a viewer sees: a stream's picture, as old as this.
    pub(super) fn seen(&self, stream: Quality, seconds: f64) -> Quality {
        stream.and(self.stale(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_is_cut_where_the_paper_says_it_leaves_the_scale() {
        // qoe.md section 10: 100 at 6.745 Mbit/s, 0 at 0.1125.
        assert!((fitted_vmaf(Rate::from_mbps(6.745)) - 100.0).abs() < 0.01);
        assert!(fitted_vmaf(Rate::from_mbps(0.1125)) < 0.02);
        assert_eq!(fitted_vmaf(Rate::from_mbps(50.0)), 100.0);
        assert!((fitted_vmaf(Rate::from_mbps(2.0)) - 64.403).abs() < 0.01);
    }

    #[test]
    fn every_measured_point_is_on_its_curve_and_curves_rise() {
        for name in Picture::NAMES {
            let Some(Picture::Clip(clip)) = Picture::named(name) else { continue };
            for rung in clip.rungs {
                for pair in rung.points.windows(2) {
                    let rate = Rate::from_mbps(pair[0].kbps / 1000.0);
                    let quality = clip.encoded(rung.height, rate, MEASURED_FPS);
                    assert!((quality.vmaf - pair[0].vmaf).abs() < 0.01, "{name} {pair:?}");
                    assert!(pair[0].kbps < pair[1].kbps && pair[0].vmaf < pair[1].vmaf + 0.5);
                }
            }
        }
    }

    #[test]
    fn twice_the_frames_at_twice_the_bitrate_look_the_same() {
        let Picture::Clip(clip) = Picture::default() else { panic!() };
        let (slow, fast) = (Rate::from_mbps(0.8), Rate::from_mbps(1.6));
        assert_eq!(clip.encoded(360, slow, 25.0), clip.encoded(360, fast, 50.0));
    }

    #[test]
    fn a_picture_that_stands_still_gets_worse_the_longer_it_does() {
        let Picture::Clip(clip) = Picture::default() else { panic!() };
        let fresh = clip.encoded(720, Rate::from_mbps(2.0), 25.0);
        let seen: Vec<f64> =
            [0.0, 0.04, 0.2, 0.8].iter().map(|&s| clip.seen(fresh, s).vmaf).collect();
        assert_eq!(seen[0], fresh.vmaf);
        assert!(seen.windows(2).all(|pair| pair[1] < pair[0] - 1.0), "{seen:?}");
        assert!(clip.seen(fresh, 0.8).psnr < clip.stale(0.8).psnr);
    }
}
