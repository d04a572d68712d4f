#!/bin/sh
# ./dev validate: compares the simulator with recorded Linux TCP.
. tools/dev/lib.sh

shared=${TRIMTAB_SHARED:-../shared}
[ -d "$shared/groundtruth" ] ||
	die "validate: no recordings at $shared/groundtruth;" \
		"set TRIMTAB_SHARED to the folder that holds groundtruth/ and traces/"
build_trimtab
trimtab validate --ground-truth "$shared/groundtruth" --traces "$shared/traces" "$@"
