#!/bin/sh
# Packages of the system, by apt. Part of tools/dev/lib.sh.

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo; then
		sudo "$@"
	else
		die "this step needs root and there is no sudo; as root, run: $*"
	fi
}

# As root, after those of other verbs: apt does not wait for another. What it starts must not keep the
# lock.
alone() (
	if have flock; then flock 9; fi
	as_root "$@" 9<&-
) 9<dev

# apt's lists may be missing or stale on a fresh machine, so the first look updates them.
apt_ready=
apt_refresh() {
	[ -z "$apt_ready" ] || return 0
	say "reading apt's package lists"
	alone apt-get update -q >&2 ||
		die "'apt-get update' failed (above): mend apt or the network, and run this again"
	apt_ready=yes
}

# install_packages WHAT-FOR PACKAGE...
install_packages() {
	purpose=$1
	shift
	have apt-get ||
		die "$purpose is missing and this machine has no apt: install your system's '$*'," \
			"and run this again"
	[ "$(id -u)" = 0 ] || have sudo ||
		die "$purpose is missing, and installing it needs root or sudo; as root, run: apt-get install $*"
	apt_refresh
	say "installing $* ($purpose)"
	alone env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends "$@" >&2 ||
		die "apt could not install $* (above): $purpose is needed; install it by hand, and run this again"
}

need_command() { # COMMAND PACKAGE
	have "$1" || install_packages "the command '$1'" "$2"
}

# A compiler without its C library's headers is as good as none, so this tries it.
need_c() {
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' |
		cc -x c - -o /dev/null 2>/dev/null ||
		install_packages "a C compiler and linker" gcc libc6-dev
}
need_cxx() {
	printf '#include <cstdlib>\nint main() { return 0; }\n' | c++ -x c++ - -o /dev/null 2>/dev/null ||
		install_packages "a C++ compiler" g++
}

# The eBPF programs are built by clang, and the library that loads them by make; it needs these
# headers.
need_bpf() {
	have clang || install_packages "clang, for the eBPF programs" clang
	need_command make make
	need_command pkg-config pkg-config
	need_c
	printf '#include <libelf.h>\n#include <zlib.h>\n' | cc -E - -o /dev/null 2>/dev/null ||
		install_packages "the headers of libelf and zlib, for libbpf" libelf-dev zlib1g-dev
}

# The engine's second store. Debian starts them as services at once; ours run in temporary folders.
need_postgres() {
	[ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || have initdb ||
		install_packages "PostgreSQL, which several engines share" postgresql
	have pgbouncer || [ -x /usr/sbin/pgbouncer ] ||
		install_packages "PgBouncer, which may stand before it" pgbouncer
	have nats-server || [ -x /usr/sbin/nats-server ] ||
		install_packages "NATS, by which engines share reports" nats-server
}

# hls.js and dash.js as they are published, for a browser to run: target/players. npm checks what it
# gets against the hashes of package-lock.json, and runs no script of a package.
need_players() {
	pins=crates/cmcd/tests/players
	if [ -d target/players/node_modules ] &&
		cmp -s "$pins/package-lock.json" target/players/package-lock.json; then
		return 0
	fi
	need_command npm npm
	say "installing hls.js and dash.js into target/players (160 MB)"
	mkdir -p target/players
	cp "$pins/package.json" "$pins/package-lock.json" target/players/
	(cd target/players && npm ci --ignore-scripts --no-audit --no-fund >&2) || {
		rm -f target/players/package-lock.json
		die "npm could not install hls.js and dash.js (above)"
	}
}

# cargo reaches its registry by TLS, which needs a set of root certificates.
need_certificates() {
	[ -n "${SSL_CERT_FILE:-}" ] || [ -e /etc/ssl/certs/ca-certificates.crt ] ||
		[ -e /etc/ssl/cert.pem ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] ||
		install_packages "root certificates" ca-certificates
}
