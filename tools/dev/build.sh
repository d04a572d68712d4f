#!/bin/sh
# ./dev build: the `trimtab` command, optimised.
. tools/dev/lib.sh

build_trimtab
