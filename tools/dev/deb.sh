#!/bin/sh
# ./dev deb: a Debian package in out/; with --check also installs, starts and removes it, first in a
# folder, then in a system with systemd.
. tools/dev/lib.sh
. tools/dev/lib/package.sh

case ${1:-} in "" | --check) ;; *) die "deb: '$1' is no option; usage: ./dev deb [--check]" ;; esac
build_package deb
[ "${1:-}" = --check ] || exit 0
as_root packaging/deb/check "$package"
if ! grep -q ' cgroup2 rw' /proc/mounts || [ ! -e /sys/kernel/btf/vmlinux ]; then
	[ -z "${CI:-}" ] || die "deb: CI needs cgroup2, and a kernel with BTF"
	say "the units are not tried under systemd: this needs cgroup2, and BTF"
	exit 0
fi
need_command mmdebstrap mmdebstrap
root=$(mktemp -d)
trap 'as_root rm -rf "$root"' EXIT
say "making a system with systemd"
as_root mmdebstrap --quiet --variant=minbase \
	--include=systemd-sysv,iproute2,libelf1,zlib1g,ca-certificates \
	"$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$root/system" ||
	die "deb: mmdebstrap could not make a system of this machine's Debian (above)"
as_root packaging/deb/under-systemd "$root/system" "$package"
