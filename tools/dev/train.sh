#!/bin/sh
# The verbs that train policies, or measure trained ones: runs a module of the Python package.
# usage: tools/dev/train.sh MODULE [arguments], with MODULE as under `trimtab.`
. tools/dev/lib.sh

module=trimtab.$1
shift
build_python
.venv/bin/python -m "$module" "$@"
