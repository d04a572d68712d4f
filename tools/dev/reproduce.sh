#!/bin/sh
# ./dev reproduce: figures, tables and headlines of the papers, and a verdict on each number.
# usage: tools/dev/reproduce.sh [arguments of `trimtab reproduce`]
. tools/dev/lib.sh

# They run in the simulator, without a QUIC stack. In CI the other verbs need one.
[ -n "${CI:-}" ] || features=
build_trimtab
# In CI what an earlier run left says nothing of this one.
if [ -n "${CI:-}" ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	set -- --out "$out" "$@"
fi
trimtab reproduce "$@"
