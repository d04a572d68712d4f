#!/bin/sh
# ./dev demo: compares schemes on the demo scenario, and writes the report.
. tools/dev/lib.sh

build_trimtab
mkdir -p out
trimtab compare --html out/demo.html "$@"
say "the report is $PWD/out/demo.html: open it in a browser"
