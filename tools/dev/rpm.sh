#!/bin/sh
# ./dev rpm: an RPM package in out/, of the Debian one; with --check also installs it into a folder.
. tools/dev/lib.sh
. tools/dev/lib/package.sh

case ${1:-} in "" | --check) ;; *) die "rpm: '$1' is no option; usage: ./dev rpm [--check]" ;; esac
need_command rpmbuild rpm
build_package rpm
rpm=$(packaging/rpm/build "$package" "$PWD/out")
say "the package is $rpm"
[ "${1:-}" = --check ] || exit 0
as_root packaging/rpm/check "$rpm"
