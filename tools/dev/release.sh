#!/bin/sh
# ./dev release: makes and checks all that a release publishes, into out/release, and publishes
# nothing. It goes on after a failure, and ends with a table of what passed.
. tools/dev/lib.sh

final=
case ${1:-} in
--final)
	final=yes
	shift
	;;
esac
steps="versions documents abi crates builds wheel deb rpm"
for name in "$@"; do
	case " $steps " in
	*" $name "*) ;;
	*) die "release: there is no step '$name'; usage: ./dev release [--final] [STEP...]; steps: $steps" ;;
	esac
done
need_rust
need_command jq jq
out=out/release
mkdir -p "$out"
table=$out/table
: >"$table"
failed=

# row NAME RESULT REMARK: a line of the table.
row() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$table"; }

# step NAME: runs the function of that name; its last line is the remark, and all is in a file.
step() {
	name=$1
	say "$name (what it prints: $out/$name.log)"
	# No condition of `if`, in which a failure within a function would not end it.
	set +e
	(set -e; "$name") >"$out/$name.log" 2>&1
	result=$?
	set -e
	if [ "$result" = 0 ]; then
		row "$name" passed "$(tail -n 1 "$out/$name.log")"
	else
		failed=yes
		row "$name" FAILED "$(tail -n 1 "$out/$name.log") (all of it: $out/$name.log)"
	fi
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)

# Every crate, chart and package has the workspace's version.
versions() {
	{
		cargo metadata --locked --no-deps --format-version 1 |
			jq -r '.packages[] | select(.publish == null) | "\(.name) \(.version)"'
		sed -n 's/^\(trimtab-[a-z0-9-]*\) = .*version = "\([^"]*\)".*/\1 \2/p' Cargo.toml crates/*/Cargo.toml
		for chart in packaging/helm/*/Chart.yaml; do
			sed -nE "s#^(version|appVersion): *#$chart #p" "$chart"
		done
		jq -r '"crates/cmcd/js/package.json \(.version)"' crates/cmcd/js/package.json
	} >"$out/versions"
	! awk -v wanted="$version" '$2 != wanted { print $1 " has " $2 ", not " wanted }' "$out/versions" |
		grep . || return 1
	echo "$(wc -l <"$out/versions") places have $version"
}

# The changelog begins with this version, and SECURITY.md has it among those that get fixes.
documents() {
	series=${version%.*}
	grep -q "^| $series " SECURITY.md ||
		{ echo "SECURITY.md has no line for $series: add it to the table"; return 1; }
	head=$(sed -n 's/^## \[\([^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
	case $head:$final in
	"$version":* | "Unreleased:") ;;
	*)
		echo "CHANGELOG.md begins with [$head]: name it [$version] - $(date +%Y-%m-%d)"
		return 1
		;;
	esac
	echo "SECURITY.md has $series; CHANGELOG.md begins with [$head]"
}

# The functions and structs that programs in C are compiled against.
abi() { tools/dev/libcc.sh --abi; }

# Crates are packed together, so that those which are not published yet find each other. Nothing is
# compiled here: see `builds`.
crates() {
	packed=${CARGO_TARGET_DIR:-target}/package
	rm -rf "$packed" "$out/crates"
	cargo publish --dry-run --workspace --locked --no-verify --allow-dirty
	mkdir -p "$out/crates"
	find "$packed" -name '*.crate' -exec cp {} "$out/crates/" ';'
	echo "$(find "$out/crates" -name '*.crate' | wc -l) crates can be uploaded: $out/crates"
}

# A package that reads files from outside its folder does not compile where it is fetched to.
leaves_its_folder() {
	grep -rlE 'include(_str|_bytes)?!\("(\.\./)*\.\./(models|scenarios|traces|docs|packaging|python)/' \
		"$1/src" 2>/dev/null
}

# What compiles from its package alone: those crates whose sources and dependencies stay in theirs.
# The others are installed from the repository, or by packages and wheels, which carry all files.
builds() {
	cargo metadata --locked --no-deps --format-version 1 >"$out/metadata.json"
	jq -r '.packages[] | select(.publish == null) | "\(.name) \(.manifest_path | rtrimstr("/Cargo.toml"))"' \
		"$out/metadata.json" >"$out/folders"
	while read -r name folder; do
		! leaves_its_folder "$folder" >/dev/null || echo "$name"
	done <"$out/folders" >"$out/outside"
	# A crate that needs one of them is one, too.
	while :; do
		jq -r --rawfile outside "$out/outside" '($outside | split("\n")) as $no
			| .packages[] | select(.publish == null)
			| select([.dependencies[] | select(.kind != "dev") | .name] | any(IN($no[])))
			| .name' "$out/metadata.json" | sort -u - "$out/outside" >"$out/more"
		! cmp -s "$out/more" "$out/outside" || break
		mv "$out/more" "$out/outside"
	done
	rm -f "$out/more"
	set --
	while read -r name _; do
		grep -qx "$name" "$out/outside" || set -- "$@" -p "$name"
	done <"$out/folders"
	[ $# -gt 0 ] || { echo "no crate compiles from its package"; return 1; }
	cargo publish --dry-run --locked --allow-dirty "$@"
	kept=$(($# / 2))
	echo "$kept crates compile from their packages; $(grep -c . "$out/outside") need the repository's" \
		"files ($out/outside)"
}

wheel() {
	need_python
	optimised=--release
	[ -z "${CI:-}" ] || optimised="--features as-tests"
	# shellcheck disable=SC2086 # words
	(cd python && ../.venv/bin/maturin build $optimised --locked --out "../$out")
	made=$(find "$out" -name "trimtab-$version-*.whl" | head -n 1)
	[ -n "$made" ] || { echo "maturin made no wheel of version $version"; return 1; }
	echo "$made"
}

# A package of a kind, made by its verb.
packed() {
	rm -f out/trimtab*."$1"
	tools/dev/"$1".sh
	made=$(find out -maxdepth 1 -name "trimtab*.$1" | head -n 1)
	[ -n "$made" ] || { echo "no package out/trimtab*.$1 was made"; return 1; }
	cp "$made" "$out/"
	echo "$out/${made#out/}"
}

deb() { packed deb; }
rpm() { packed rpm; }

# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $steps
for name in "$@"; do
	step "$name"
done
awk -F '\t' '{ printf "%-10s %-7s %s\n", $1, $2, $3 }' "$table"
[ -z "$failed" ] || die "release: not ready: see what FAILED in the table"
