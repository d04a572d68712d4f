#!/bin/sh
# ./dev players: what hls.js and dash.js report by CMCD, in Chromium behind nginx.
. tools/dev/lib.sh

need_rust
need_command nginx nginx-light
need_command chromium chromium
need_quality
need_players
export TRIMTAB_QUALITY="$PWD/target/quality"
exec cargo test --locked -p trimtab-cmcd --test players -- --nocapture "$@"
