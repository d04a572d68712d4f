#!/bin/sh
# ./dev build: the `trimtab` command, optimised.
. tools/dev/lib.sh

add_webrtc
build_trimtab
