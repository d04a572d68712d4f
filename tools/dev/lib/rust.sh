#!/bin/sh
# Rust, by rustup or apt, and what is built with it. Part of tools/dev/lib.sh.

pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

# at_least HAVE WANT: compares major.minor.
at_least() {
	awk -v have="$1" -v want="$2" 'BEGIN {
		split(have, h, "."); split(want, w, ".")
		exit !(h[1] + 0 > w[1] + 0 || (h[1] + 0 == w[1] + 0 && h[2] + 0 >= w[2] + 0)) }'
}

rust_version() { rustc --version 2>/dev/null | awk '{ print $2 }'; }

rust_is_good() {
	have cargo && at_least "$(cargo --version 2>/dev/null | awk '{ print $2 }')" "$oldest" &&
		at_least "$(rust_version)" "$oldest"
}

# With rustup, the toolchain that rust-toolchain.toml pins. Where it cannot be fetched, an installed
# stable one.
rust_by_rustup() {
	[ -n "${RUSTUP_TOOLCHAIN:-}" ] && rust_is_good && return 0
	if ! rustup toolchain list 2>/dev/null | grep -q "^$pinned"; then
		say "installing Rust $pinned with rustup"
		if ! rustup toolchain install "$pinned" --profile minimal -c rustfmt -c clippy >&2; then
			rustup toolchain list 2>/dev/null | grep -q '^stable' || return 1
			export RUSTUP_TOOLCHAIN=stable
			say "rustup could not install Rust $pinned: trying the stable one that is installed"
		fi
	fi
	rust_is_good
}

# The first pair of Debian packages that is new enough. Debian ships a fresh compiler to its stable
# releases as rustc-web, for browsers.
rust_by_apt() {
	for suffix in "" -web; do
		candidate=$(apt-cache policy "rustc$suffix" 2>/dev/null | sed -n 's/^  Candidate: //p')
		if at_least "$candidate" "$oldest"; then
			install_packages "Rust $oldest or newer" "rustc$suffix" "cargo$suffix"
			hash -r
			return 0
		fi
	done
	return 1
}

rust_done=
need_rust() {
	[ -z "$rust_done" ] || return 0
	# rustup puts its commands here; a shell that was open before it ran lacks the folder.
	export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
	if have rustup; then
		rust_by_rustup ||
			die "rustup could not install Rust $pinned (above)," \
				"and no installed toolchain is $oldest or newer"
	elif ! rust_is_good; then
		have apt-get ||
			die "Rust $oldest or newer is needed: install rustup with your system's package manager"
		apt_refresh
		if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
			install_packages "Rust's installer" rustup
			hash -r
			rust_by_rustup || rust_by_apt ||
				die "rustup could not install Rust $pinned (above)," \
					"and apt has none that is $oldest or newer"
		else
			rust_by_apt ||
				die "apt has neither rustup nor Rust $oldest or newer:" \
					"install rustup from the Rust project's site"
		fi
		rust_is_good ||
			die "Rust was installed, but '$(command -v cargo || echo cargo)' is not $oldest or newer"
	fi
	need_c
	need_certificates
	rust_done=yes
}

# need_component SUBCOMMAND RUSTUP-COMPONENT DEBIAN-PACKAGE
need_component() {
	need_rust
	cargo "$1" --version >/dev/null 2>&1 && return 0
	if have rustup; then
		say "adding $2 with rustup"
		rustup component add "$2" >&2 || die "rustup could not add $2 (above): it is needed here"
	else
		install_packages "cargo $1" "$3"
	fi
}
need_rustfmt() { need_component fmt rustfmt rustfmt-web; }
need_clippy() { need_component clippy clippy rust-web-clippy; }

# What is built in beyond what every build has. A verb that needs none sets it to nothing.
features=trimtab/quic

# Also calls over WebRTC, for builds that people keep. They take minutes to compile, and C++: the
# other verbs do without.
add_webrtc() {
	need_cxx
	features=$features,trimtab/webrtc
}

# CI builds everything once, as its tests want it: further builds of the command, which selects other
# features and optimises more, and of the Python package would take many minutes. This is what that
# one selects. Much is off by default, since it compiles s2n-quic's TLS, rtc and openh264.
ci_features() {
	printf '%s,' trimtab-webrtc/browser trimtab-s2n-quic/sockets trimtab-quic/s2n
	echo trimtab/quic,trimtab/webrtc,trimtab-py/as-tests
}

# cargo_tests SUBCOMMAND [ARGUMENT...]: cargo with the features that CI's build of the tests has.
cargo_tests() {
	subcommand=$1
	shift
	cargo "$subcommand" ${CI:+--features "$(ci_features)"} "$@"
}

# build_packages PACKAGE...: what is optimised for those; $built is the folder with their programs.
build_packages() {
	need_rust
	need_bpf
	say "building $* (the first time also the dependencies)"
	if [ -n "${CI:-}" ]; then
		built=${CARGO_TARGET_DIR:-$PWD/target}/debug
		need_cxx
		cargo_tests build --locked --lib --bin trimtab --bin trimtab-outputs --tests
	else
		built=${CARGO_TARGET_DIR:-$PWD/target}/release
		# shellcheck disable=SC2046 # words
		cargo build --release --locked $(printf -- '-p %s ' "$@") --features "$features"
	fi
}

build_trimtab() { build_packages trimtab; }

trimtab() { "$built/trimtab" "$@"; }
