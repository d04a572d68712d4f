#!/bin/sh
# ./dev test: all tests; with arguments, those that `cargo test` takes from them.
. tools/dev/lib.sh

need_rust
need_bpf
need_command ip iproute2
need_command git git
# Some tests run unmodified programs behind an emulated link, or several engines with their servers.
# They skip where these are missing, and print so. Only CI installs servers that Debian starts at
# once, and a browser, which is large.
if [ -n "${CI:-}" ]; then
	need_postgres
	need_command nginx nginx-light
	need_command curl curl
	need_command chromium chromium
fi
# One failure does not hide the next crate's.
cargo test --locked --no-fail-fast "$@"
if [ $# -eq 0 ]; then
	build_python
	(cd python && ../.venv/bin/python -m pytest)
fi
