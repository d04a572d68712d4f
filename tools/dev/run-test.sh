#!/bin/sh
# Runs a test program of cargo's, for test.sh. Those that wait for time to pass, and bear a busy machine,
# run next to the others, with more threads than there are processors: the longest at once, the rest
# one after the other. What they print, and their exit status, go to files that test.sh reads.
# usage: RESULTS=FOLDER tools/dev/run-test.sh PROGRAM [ARGUMENT...]
case ${PWD##*/}/${1##*/} in
agent/agent-* | engine/long-*) turn= ;;
cli/cli-* | cmcd/players-* | engine/*-* | h3-noq/interop-*) turn="flock -o $RESULTS/turn" ;;
*) exec "$@" ;;
esac
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"
result=$RESULTS/${1##*/}
# Its group, so that what it starts can be ended with it.
# shellcheck disable=SC2016,SC2086 # its arguments, and words
setsid $turn sh -c '"$@" >"$0.said" 2>&1; echo $? >"$0.status"' "$result" "$@" </dev/null &
echo "-$!" >"$result.group"
echo "${1##*/} runs next to those that follow; its results come after them"
