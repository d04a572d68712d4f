#!/bin/sh
# The Debian package, of which the other packages are made. After tools/dev/lib.sh.

# build_package VERB: builds it into out/; its path is in $package.
build_package() {
	have dpkg-deb ||
		die "$1: this machine has no dpkg-deb: packages are built on Debian and its relatives"
	need_command dpkg-shlibdeps dpkg-dev
	need_command objcopy binutils
	need_rust
	need_bpf
	add_webrtc
	say "building trimtab and its C library of hints (the first time also their dependencies)"
	# In one build: the library alone would select fewer features of its dependencies, and the next
	# build of trimtab would compile these again.
	# shellcheck disable=SC2154 # tools/dev/lib/rust.sh sets it
	cargo build --release --locked -p trimtab -p trimtab-app-sdk --features "$features"
	package=$(packaging/deb/build "$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)" "$PWD/out")
	say "the package is $package"
}
