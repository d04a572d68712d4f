#!/bin/sh
# ./dev test: all tests; with arguments, those that `cargo test` takes from them.
. tools/dev/lib.sh

need_rust
need_bpf
need_command ip iproute2
need_command git git
# Some tests run unmodified programs behind an emulated link, or several engines with their servers.
# They skip where these are missing, and print so. Only CI installs servers that Debian starts at
# once, a browser, which is large, and what is behind features that compile C and C++ for minutes:
# there one build serves what ./dev s2n and ./dev webrtc test, too.
if [ -n "${CI:-}" ]; then
	need_cxx
	need_peers
	export TRIMTAB_QUALITY="$PWD/target/quality"
fi
if [ $# -gt 0 ]; then
	exec cargo test --locked --no-fail-fast "$@"
fi
# Many tests in Rust wait for a real network; those in Python compute meanwhile, and give way.
cargo_tests test --locked --no-run
build_python
RESULTS=$(mktemp -d)
export RESULTS
# A shell has its background jobs ignore Ctrl-C, and one of these tests is of that.
interruptible='import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main())'
(cd python && exec nice -n 10 ../.venv/bin/python -c "$interruptible") >"$RESULTS/python" 2>&1 &
python=$!
# What runs next to the others would outlive them; each leads a group. Under `set -e` a `kill` of what
# has ended would make the exit status of the trap that of the script.
# shellcheck disable=SC2154 # the trap sets it
trap 'for group in "$python" $(cat "$RESULTS"/*.group 2>/dev/null); do
	kill -- "$group" 2>/dev/null || :
done
rm -rf "$RESULTS"' EXIT
trap 'exit 130' INT TERM
# One failure hides neither the next crate's nor Python's.
result=0
cargo_tests test --locked --no-fail-fast \
	--config "target.'cfg(unix)'.runner = ['$PWD/tools/dev/run-test.sh']" || result=1
# Those that tools/dev/run-test.sh left running.
for program in "$RESULTS"/*.group; do
	[ -e "$program" ] || continue
	group=$(cat "$program")
	program=${program%.group}
	while kill -s 0 -- "$group" 2>/dev/null && [ ! -e "$program.status" ]; do sleep 1; done
	say "${program##*/} ran next to the others:"
	cat "$program.said"
	[ "$(cat "$program.status" 2>/dev/null)" = 0 ] || result=1
done
wait "$python" || result=1
cat "$RESULTS/python"
exit $result
