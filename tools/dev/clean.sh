#!/bin/sh
# ./dev clean: removes what was built, and out/.
. tools/dev/lib.sh

need_rust
cargo clean
rm -rf out
