//! Measured picture quality; printed by tools/quality/curves.py, which says how.

use super::quality::{Clip, Lag, Point, Rung};

/// Animation, 720p, slow movement.
pub(super) static BUNNY: Clip = Clip {
    name: "bunny",
    height: 720,
    rungs: &[
        Rung {
            height: 180,
            points: &[
                Point { kbps: 54.4, vmaf: 12.03, ssim: 0.7603, psnr: 27.54 },
                Point { kbps: 110.4, vmaf: 24.51, ssim: 0.8493, psnr: 29.24 },
                Point { kbps: 230.3, vmaf: 38.29, ssim: 0.9039, psnr: 30.54 },
                Point { kbps: 462.9, vmaf: 48.67, ssim: 0.9312, psnr: 31.34 },
                Point { kbps: 930.7, vmaf: 55.13, ssim: 0.9445, psnr: 31.78 },
                Point { kbps: 1862.2, vmaf: 58.33, ssim: 0.9503, psnr: 31.98 },
                Point { kbps: 3274.2, vmaf: 59.71, ssim: 0.9526, psnr: 32.06 },
            ],
        },
        Rung {
            height: 360,
            points: &[
                Point { kbps: 53.7, vmaf: 8.75, ssim: 0.6738, psnr: 25.99 },
                Point { kbps: 108.8, vmaf: 22.96, ssim: 0.8023, psnr: 28.55 },
                Point { kbps: 224.6, vmaf: 48.37, ssim: 0.9170, psnr: 31.78 },
                Point { kbps: 452.8, vmaf: 67.49, ssim: 0.9649, psnr: 34.42 },
                Point { kbps: 925.0, vmaf: 79.31, ssim: 0.9838, psnr: 36.49 },
                Point { kbps: 1866.2, vmaf: 85.86, ssim: 0.9917, psnr: 37.98 },
                Point { kbps: 3788.1, vmaf: 89.04, ssim: 0.9950, psnr: 38.90 },
            ],
        },
        Rung {
            height: 720,
            points: &[
                Point { kbps: 51.1, vmaf: 9.47, ssim: 0.5246, psnr: 23.10 },
                Point { kbps: 106.6, vmaf: 13.93, ssim: 0.6754, psnr: 25.97 },
                Point { kbps: 226.8, vmaf: 26.16, ssim: 0.8038, psnr: 28.66 },
                Point { kbps: 448.5, vmaf: 56.47, ssim: 0.9380, psnr: 33.15 },
                Point { kbps: 896.5, vmaf: 80.74, ssim: 0.9829, psnr: 37.92 },
                Point { kbps: 1759.3, vmaf: 92.30, ssim: 0.9953, psnr: 42.76 },
                Point { kbps: 3646.7, vmaf: 96.79, ssim: 0.9986, psnr: 47.03 },
            ],
        },
    ],
    lags: &[
        Lag { frames: 1, vmaf: 69.84, ssim: 0.9623, psnr: 33.48 },
        Lag { frames: 2, vmaf: 54.43, ssim: 0.9150, psnr: 28.98 },
        Lag { frames: 5, vmaf: 34.87, ssim: 0.7793, psnr: 24.96 },
        Lag { frames: 12, vmaf: 20.86, ssim: 0.6251, psnr: 21.84 },
        Lag { frames: 25, vmaf: 13.06, ssim: 0.5187, psnr: 19.28 },
        Lag { frames: 60, vmaf: 4.46, ssim: 0.3244, psnr: 16.80 },
    ],
};

/// Cyclists in a street, 272p, fast movement.
pub(super) static BIKES: Clip = Clip {
    name: "bikes",
    height: 272,
    rungs: &[
        Rung {
            height: 68,
            points: &[
                Point { kbps: 58.9, vmaf: 35.73, ssim: 0.8307, psnr: 30.12 },
                Point { kbps: 119.2, vmaf: 50.10, ssim: 0.8591, psnr: 31.60 },
                Point { kbps: 248.6, vmaf: 59.82, ssim: 0.8760, psnr: 32.46 },
                Point { kbps: 501.8, vmaf: 64.11, ssim: 0.8835, psnr: 32.83 },
                Point { kbps: 923.3, vmaf: 65.71, ssim: 0.8863, psnr: 32.96 },
            ],
        },
        Rung {
            height: 136,
            points: &[
                Point { kbps: 57.2, vmaf: 39.61, ssim: 0.8449, psnr: 30.21 },
                Point { kbps: 117.0, vmaf: 63.60, ssim: 0.9026, psnr: 33.51 },
                Point { kbps: 247.6, vmaf: 80.27, ssim: 0.9375, psnr: 36.24 },
                Point { kbps: 502.4, vmaf: 87.95, ssim: 0.9551, psnr: 38.00 },
                Point { kbps: 1013.1, vmaf: 90.90, ssim: 0.9635, psnr: 38.98 },
                Point { kbps: 2009.4, vmaf: 91.99, ssim: 0.9676, psnr: 39.49 },
                Point { kbps: 3008.2, vmaf: 92.30, ssim: 0.9690, psnr: 39.65 },
            ],
        },
        Rung {
            height: 272,
            points: &[
                Point { kbps: 54.5, vmaf: 24.38, ssim: 0.7628, psnr: 26.66 },
                Point { kbps: 113.3, vmaf: 51.47, ssim: 0.8747, psnr: 31.69 },
                Point { kbps: 242.3, vmaf: 80.13, ssim: 0.9505, psnr: 37.02 },
                Point { kbps: 492.2, vmaf: 92.66, ssim: 0.9762, psnr: 41.40 },
                Point { kbps: 997.3, vmaf: 96.70, ssim: 0.9862, psnr: 45.15 },
                Point { kbps: 2028.2, vmaf: 97.64, ssim: 0.9904, psnr: 48.26 },
                Point { kbps: 4080.3, vmaf: 97.94, ssim: 0.9931, psnr: 51.64 },
            ],
        },
    ],
    lags: &[
        Lag { frames: 1, vmaf: 50.39, ssim: 0.8925, psnr: 26.58 },
        Lag { frames: 2, vmaf: 32.17, ssim: 0.8117, psnr: 23.07 },
        Lag { frames: 5, vmaf: 13.70, ssim: 0.6581, psnr: 18.92 },
        Lag { frames: 12, vmaf: 6.70, ssim: 0.5168, psnr: 16.03 },
        Lag { frames: 25, vmaf: 5.48, ssim: 0.4391, psnr: 13.92 },
        Lag { frames: 60, vmaf: 6.06, ssim: 0.3991, psnr: 12.57 },
    ],
};
