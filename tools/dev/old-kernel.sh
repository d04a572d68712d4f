#!/bin/sh
# ./dev old-kernel: the eBPF datapath's tests on another kernel, in an emulated machine.
# Default: the newest kernel package that apt has, of those whose `cong_control` has the old form.
. tools/dev/lib.sh

# Those that do not measure time: the machine is emulated, and ten times slower than this one.
chosen="--test active --test assign --test idle --test lifetime --test switching --test upgrade"
if [ "${1:-}" = --quick ]; then
	chosen="--test idle"
	shift
fi
need_rust
need_bpf
need_command qemu-system-x86_64 qemu-system-x86
need_command busybox busybox-static
need_command depmod kmod
need_command cpio cpio
need_command xz xz-utils
need_command ip iproute2
apt_refresh
package=${1:-$(apt-cache search --names-only '^linux-image-[56][.][0-9.]+-[0-9]+-amd64$' |
	cut -d ' ' -f 1 | awk -F '[-.]' '$3 == 5 || $4 < 10' | sort -V | tail -n 1)}
[ -n "$package" ] ||
	die "apt has no kernel before 6.10 for this system;" \
		"name another package: ./dev old-kernel NAME"
# shellcheck disable=SC2086 # a list
cargo test --locked --quiet --no-run -p trimtab-kernel $chosen
# shellcheck disable=SC2086
tests=$(cargo test --locked --no-run -p trimtab-kernel $chosen 2>&1 |
	sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
set --
for test in $tests; do
	set -- "$@" "$(realpath "$test") --test-threads=1 --skip ten_thousand"
done
crates/kernel/tests/old-kernel/run "$package" "$PWD/crates/kernel" "$@"
