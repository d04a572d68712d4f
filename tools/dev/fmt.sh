#!/bin/sh
# ./dev fmt: formats the Rust code.
. tools/dev/lib.sh

need_rustfmt
cargo fmt --all
