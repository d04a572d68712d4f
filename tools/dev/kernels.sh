#!/bin/sh
# ./dev kernels: the eBPF datapath's tests on other kernels, each in an emulated machine.
. tools/dev/lib.sh
. tools/dev/lib/debian.sh

# Those that do not measure time: the machine is emulated, and twenty times slower than this one.
chosen="idle active assign first_flight memory slots switching lifetime upgrade steering links"
# Of their tests, those that measure rates and delays, or that move so much that they would take an
# hour: they run natively only, and so do all of `datapath` and `overhead`.
left_out="ten_thousand delta_sets_the_queue knobs_of_cubic bbr:: bbr3:: ecn:: prototype::
	towards:: muses::the_ faults:: switching::another switching::where"
names=
for argument in "$@"; do
	case $argument in
	--quick) chosen="idle" ;;
	-*) die "kernels: '$argument' is no option; usage: ./dev kernels [--quick] [NAME...]" ;;
	*) names="$names $argument" ;;
	esac
done
need_rust
need_bpf
need_command qemu-system-x86_64 qemu-system-x86
need_command depmod kmod
need_command cpio cpio
need_command xz xz-utils
need_command zstd zstd
need_command ip iproute2
store=${CARGO_TARGET_DIR:-$PWD/target}/kernels
debian_lists "$store"

# The packages of kernels for an architecture: not those for clouds, without a signature, or with
# real-time scheduling, no releases to come, and no packages that only name another.
kernel_packages() {
	debian_apt apt-cache search --names-only "^linux-image-[0-9]+[.][0-9.]+.*-$1\$" |
		cut -d ' ' -f 1 | sed "s/:$1\$//" |
		grep -E "^linux-image-[0-9]+[.][0-9]+[.][0-9]+([-+][a-z0-9.]+)?-$1\$" | sort -V
}

# choose NAME: sets $package and $arch.
choose() {
	arch=amd64
	case $1 in
	*arm64*) arch=arm64 ;;
	esac
	case $1 in
	linux-image-*) package=$1 ;;
	newest | arm64) package=$(kernel_packages $arch | tail -n 1) ;;
	[0-9]*)
		version=$(printf '%s\n' "${1%-arm64}" | sed 's/[.]/[.]/g')
		package=$(kernel_packages $arch | grep "^linux-image-${version}[.]" | tail -n 1)
		;;
	*) die "kernels: '$1' is no name: 6.1, 6.12-arm64, newest, arm64 or a package" ;;
	esac
	[ -n "$package" ] || die "kernels: Debian has no package of Linux $1 for $arch"
}

# fetch_kernel PACKAGE ARCH: sets $kernel to a folder with the kernel, its modules and a busybox.
fetch_kernel() {
	kernel=$store/$1
	[ ! -e "$kernel/vmlinuz" ] || return 0
	say "fetching $1"
	# Since Linux 7 kernel and modules are packages of their own.
	parts=$(debian_apt apt-cache show --no-all-versions "$1:$2" | sed -n 's/^Depends: //p' |
		tr ',' '\n' | sed -n 's/^ *\(linux-\(binary\|modules\)-[^ ]*\).*/\1/p')
	rm -rf "$kernel.new"
	mkdir -p "$kernel.new"
	# shellcheck disable=SC2046,SC2086 # lists
	(cd "$kernel.new" && debian_download $(printf "%s:$2 " "$1" $parts busybox-static))
	for file in "$kernel.new"/*.deb; do
		dpkg-deb -x "$file" "$kernel.new/all"
		rm "$file"
	done
	all=$kernel.new/all
	release=$(cd "$all" && find . -path '*/lib/modules/*' -name kernel -printf '%h\n' |
		sed 's,.*/lib/modules/,,' | head -n 1)
	[ -n "$release" ] || die "kernels: $1 has no modules: is it a package of a kernel?"
	modules=$(find "$all" -path "*/lib/modules/$release" -type d | head -n 1)
	depmod -b "${modules%/lib/modules/*}" "$release" 2>/dev/null || true
	mkdir -p "$kernel.new/lib/modules"
	mv "$(find "$all" -path '*/bin/busybox' -type f | head -n 1)" "$kernel.new/busybox"
	image=$all/boot/vmlinuz-$release
	[ -e "$image" ] || image=$modules/vmlinuz
	mv "$image" "$kernel.new/vmlinuz"
	mv "$modules" "$kernel.new/lib/modules/"
	rm -rf "$all"
	mv "$kernel.new" "$kernel"
}

# build ARCH: sets $root to a system of that architecture, and $programs to the tests, a line each.
build() {
	root=/
	if [ "$1" = arm64 ]; then
		cross_arm64
		set -- --target aarch64-unknown-linux-gnu
	else
		set --
	fi
	for test in $chosen; do
		set -- "$@" --test "$test"
	done
	say "building the tests"
	cargo test --quiet --no-run --locked -p trimtab-kernel "$@"
	programs=$(cargo test --no-run --locked -p trimtab-kernel "$@" 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p' |
		while read -r test; do
			# shellcheck disable=SC2086 # a list
			printf '/tmp/host%s --test-threads=1%s\n' "$(realpath "$test")" \
				"$(printf ' --skip %s' $left_out)"
		done)
}

# What it takes to build for arm64, and to run that: a folder with the libraries and commands.
cross_arm64() {
	need_command qemu-system-aarch64 qemu-system-arm
	need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	[ -e /usr/aarch64-linux-gnu/include/stdlib.h ] ||
		install_packages "the C library's headers for arm64" libc6-dev-arm64-cross
	rustup target add aarch64-unknown-linux-gnu >&2 ||
		die "kernels: this toolchain has no target aarch64-unknown-linux-gnu, or rustup is missing"
	root=$store/arm64
	debian_root "$root" arm64 dash iproute2 libgcc-s1 libelf-dev zlib1g-dev
	libraries=$root/usr/lib/aarch64-linux-gnu
	# The C library comes with the compiler: that in the folder has paths from its own root.
	mkdir -p "$store/link"
	for library in libelf.so libz.so; do
		ln -sf "$libraries/$library.1" "$store/link/$library"
	done
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
	# Shared libraries refer to further ones.
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=-Wl,-rpath-link=$libraries"
	export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
	export LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu="$store/link"
	export LIBBPF_SYS_EXTRA_CFLAGS="-idirafter $root/usr/include"
}

failed=
for name in ${names:-6.1 6.12 newest arm64}; do
	choose "$name"
	fetch_kernel "$package" $arch
	build $arch
	printf '%s\n' "$programs" >"$store/programs"
	set --
	while read -r program; do
		set -- "$@" "$program"
	done <"$store/programs"
	crates/kernel/tests/kernels/run "$kernel" $arch "$root" "$PWD/crates/kernel" "$@" ||
		failed="$failed $name"
done
[ -z "$failed" ] || die "kernels: tests failed on:$failed"
