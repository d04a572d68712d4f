#!/bin/sh
# Runs a test program of cargo's, for test.sh. Those of the agent wait for time to pass, and hardly
# compute: more of them run at once than there are processors.
# usage: tools/dev/run-test.sh PROGRAM [ARGUMENT...]
case ${1##*/} in
agent-*) export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}" ;;
esac
exec "$@"
