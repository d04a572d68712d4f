#!/bin/sh
# What the verbs of ./dev share. ./dev runs the scripts that read this, from the repository's root.
# Each `need_` function installs what is missing, and leaves alone what is there.
set -eu

say() { printf 'dev: %s\n' "$*" >&2; }
die() {
	printf 'dev: error: %s\n' "$*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

. tools/dev/lib/packages.sh
. tools/dev/lib/rust.sh
. tools/dev/lib/python.sh
. tools/dev/lib/picoquic.sh
