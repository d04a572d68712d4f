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

# A release is of a commit; what is tried before may be of changes.
publish() {
	[ -n "$final" ] || set -- "$@" --allow-dirty
	cargo publish --dry-run --workspace --locked "$@"
}

# Crates are packed together, so that those which are not published yet find each other. Nothing is
# compiled here: see `builds`.
crates() {
	packed=${CARGO_TARGET_DIR:-target}/package
	rm -rf "$packed" "$out/crates"
	publish --no-verify
	mkdir -p "$out/crates"
	find "$packed" -name '*.crate' -exec cp {} "$out/crates/" ';'
	echo "$(find "$out/crates" -name '*.crate' | wc -l) crates can be uploaded: $out/crates"
}

# Each crate is compiled from its package alone, by itself: what only the workspace has, files or
# features, is missing there. All share one folder, so that a dependency is compiled once.
builds() {
	export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/packages"
	export CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0
	mkdir -p "$CARGO_TARGET_DIR"
	# cargo takes a published version for one that never changes, so it would use that of an earlier run.
	rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/trimtab*-"$version"
	find "$CARGO_TARGET_DIR" -name '*trimtab*' -prune -exec rm -rf {} +
	publish
	echo "$(grep -c '^ *Verifying ' "$out/builds.log") crates compile from their packages alone"
}

# Made as for users, and used as by one: in an environment that has nothing else.
wheel() {
	need_python
	optimised=--release
	[ -z "${CI:-}" ] || optimised="--features as-tests"
	rm -rf "$out"/trimtab-*.whl "$out/venv"
	# shellcheck disable=SC2086 # words
	(cd python && ../.venv/bin/maturin build $optimised --locked --out "../$out")
	made=$(find "$out" -name "trimtab-$version-*.whl")
	[ -n "$made" ] || { echo "maturin made no wheel of version $version"; return 1; }
	.venv/bin/uv venv --quiet "$out/venv"
	.venv/bin/uv pip install --quiet --python "$out/venv/bin/python" "$made"
	(cd "$out" && venv/bin/python -c '
import trimtab
runs = trimtab.compare(app="download", cc=["cubic", "copa"], traces="constant:12Mbit/s", seeds=2,
                       duration="10s")
assert sorted(runs.summary["cc"]) == ["copa", "cubic"], runs.summary
print(*(f"{cc}: QoE {qoe:.2f}" for cc, qoe in zip(runs.summary["cc"], runs.summary["qoe_mean"])), sep="; ")
')
	echo "$made: installed by itself, it compares"
}

# A package of a kind, made and checked by its verb.
packed() {
	rm -f out/trimtab*."$1"
	"tools/dev/$1.sh" --check
	made=$(find out -maxdepth 1 -name "trimtab*.$1" | head -n 1)
	[ -n "$made" ] || { echo "no package out/trimtab*.$1 was made"; return 1; }
	cp "$made" "$out/"
	echo "$out/${made#out/}: installs, runs and goes"
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
