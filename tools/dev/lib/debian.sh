#!/bin/sh
# Packages of other releases and architectures of Debian than this machine's, which are downloaded
# and unpacked, and never installed. After tools/dev/lib.sh.

# debian_lists FOLDER: reads the lists of packages into this folder, if those there are older than a
# day. This machine's apt stays as it is: it says where Debian is, and that it is signed.
debian_lists() {
	debian=$1/apt
	have apt-get || die "this machine has no apt, which fetches what this needs"
	# shellcheck disable=SC2016 # apt's own word, not the shell's
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' |
		sort -u | head -n 1)
	[ -n "$uri" ] || die "apt on this machine knows no mirror of Debian;" \
		"add Debian to /etc/apt/sources.list.d, and run this again"
	# This system's own release is where what runs on other kernels comes from.
	debian_release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	suites="bookworm trixie trixie-backports sid"
	mkdir -p "$debian/lists/partial" "$debian/cache/archives/partial"
	: >"$debian/none"
	for suite in $suites; do
		echo "deb [arch=amd64,arm64] $uri $suite main"
	done >"$debian/sources.new"
	if ! cmp -s "$debian/sources.new" "$debian/sources.list" ||
		[ -z "$(find "$debian/read" -mtime -1 2>/dev/null)" ]; then
		say "reading the lists of packages of Debian's $suites"
		mv "$debian/sources.new" "$debian/sources.list"
		debian_apt apt-get update -q >&2 ||
			die "these lists could not be read (above): mend the network, and run this again"
		touch "$debian/read"
	fi
}

# debian_apt COMMAND ARGUMENTS...: apt with these lists, as if nothing were installed.
debian_apt() {
	command=$1
	shift
	"$command" -o Dir::State="$debian" -o Dir::State::lists="$debian/lists" \
		-o Dir::State::status="$debian/none" -o Dir::Cache="$debian/cache" \
		-o Dir::Etc::sourcelist="$debian/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o APT::Default-Release="$debian_release" -o Acquire::Languages=none \
		-o APT::Architectures::=amd64 -o APT::Architectures::=arm64 \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o APT::Sandbox::User=root "$@"
}

# debian_download PACKAGE...: their files, in the current folder.
debian_download() {
	debian_apt apt-get download -q "$@" >&2 ||
		die "apt could not download $* (above)"
}

# debian_root FOLDER ARCH PACKAGE...: unpacks them, with all that they depend on, of this system's
# release. Their scripts do not run.
debian_root() {
	folder=$1 architecture=$2
	shift 2
	[ ! -e "$folder" ] || return 0
	say "unpacking a system for $architecture"
	rm -rf "$folder.new"
	mkdir -p "$folder.new/debs/partial"
	for directory in bin sbin lib; do
		mkdir -p "$folder.new/usr/$directory"
		ln -s "usr/$directory" "$folder.new/$directory"
	done
	mkdir -p "$folder.new/proc" "$folder.new/sys" "$folder.new/dev" "$folder.new/tmp" "$folder.new/run"
	# shellcheck disable=SC2046 # a list
	debian_apt apt-get install -q -y --no-install-recommends --download-only \
		-o Dir::Cache::archives="$folder.new/debs" -o APT::Architecture="$architecture" \
		$(printf "%s:$architecture " "$@") >&2 ||
		die "apt could not download $* for $architecture (above)"
	for file in "$folder.new"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$folder.new"
	done
	rm -rf "$folder.new/debs"
	mv "$folder.new" "$folder"
}
