#!/bin/sh
# ./dev image: an image of the agent for containers in out/, made without a daemon; with --check also
# runs it as the chart's DaemonSet does.
. tools/dev/lib.sh
. tools/dev/lib/package.sh

case ${1:-} in "" | --check) ;; *) die "image: '$1' is no option; usage: ./dev image [--check]" ;; esac
need_command mmdebstrap mmdebstrap
need_command umoci umoci
build_package image
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
image=$(as_root packaging/oci/build "$package" "$suite" "$PWD/out") ||
	die "image: it could not be made (above)"
say "the image is $image; hand it to a registry with: skopeo copy oci-archive:$image docker://…"
[ "${1:-}" = --check ] || exit 0
need_command runc runc
need_command jq jq
need_command ip iproute2
as_root packaging/oci/check "$image"
