#!/bin/sh
# ./dev webrtc: the tests of calls to Chromium. They compile rtc and openh264, which is C++.
. tools/dev/lib.sh

need_rust
need_cxx
need_command ip iproute2
need_command chromium chromium
need_quality
export TRIMTAB_QUALITY="$PWD/target/quality"
exec cargo test --locked -p trimtab-webrtc --features browser "$@"
