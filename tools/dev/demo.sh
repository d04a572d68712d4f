#!/bin/sh
# ./dev demo: compares schemes on the demo scenario, and writes the report.
. tools/dev/lib.sh

# The QUIC stack takes time to build, and the demo runs in the simulator. In CI the next verbs need
# it.
[ -n "${CI:-}" ] || features=
build_trimtab
mkdir -p out
trimtab compare --html out/demo.html "$@"
say "the report is $PWD/out/demo.html: open it in a browser"
