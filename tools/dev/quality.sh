#!/bin/sh
# ./dev quality: ffmpeg with libvmaf, and clips, in target/quality.
. tools/dev/lib.sh

need_quality
say "target/quality has ffmpeg and clips"
