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
	# The library of hints alone would select fewer features of its dependencies, and the next build of
	# trimtab would compile these again.
	build_packages trimtab trimtab-app-sdk
	# shellcheck disable=SC2154 # build_packages sets it
	package=$(packaging/deb/build "$built" "$PWD/out")
	say "the package is $package"
}
