#!/bin/sh
# ./dev python: the Python package `trimtab`, built into .venv.
. tools/dev/lib.sh

build_python
