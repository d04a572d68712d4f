#!/bin/sh
# ./dev lint: formatting, clippy, house style, shell scripts, Python.
. tools/dev/lib.sh

# CI also looks at what compiles C and C++ for minutes; its tests use the same builds of it.
lint_rust() {
	cargo fmt --all --check
	need_cxx
	cargo_tests clippy --workspace --all-targets --locked -- -D warnings
	# CI runs the house's tests with all others. What follows would check everything once more there.
	[ -z "${CI:-}" ] || return 0
	cargo test --locked --quiet -p trimtab-tidy
	# The command alone, as a fresh machine builds it: nothing else selects features for it.
	cargo check --quiet --locked -p trimtab
}

# packages EDGES [cargo's arguments]: what is depended on, with the features that are selected.
packages() {
	edges=$1
	shift
	cargo tree --locked --edges "$edges" --prefix none --format '{p} {f}' "$@" |
		sed 's/ (\*)$//' | sort -u
}

# same_features WITH PYTHON: of what both files have, the lines of the second that the first lacks.
same_features() {
	differ=$(comm -23 "$2" "$1" | while read -r name version rest; do
		! grep -q "^$name $version " "$1" || echo "$name $version $rest"
	done)
	[ -z "$differ" ] ||
		die "lint: crates/py selects other features than ${1##*/}, so both compile everything;" \
			"make crates/py/Cargo.toml select the features that \`cargo tree\` shows of that: $differ"
}

# Where the Python package selects the features of the command, and in CI those of the tests, one build
# serves both.
lint_features() {
	folder=$(mktemp -d)
	# shellcheck disable=SC2154 # tools/dev/lib/rust.sh sets it
	packages normal,build -p trimtab --features "$features" >"$folder/command"
	packages normal,build -p trimtab-py >"$folder/python"
	same_features "$folder/command" "$folder/python"
	packages normal,build,dev --features "$(ci_features)" >"$folder/tests"
	packages normal,build -p trimtab-py --features as-tests >"$folder/python"
	same_features "$folder/tests" "$folder/python"
	rm -r "$folder"
}

# In one call, so that shellcheck follows tools/dev/lib.sh.
lint_shell() {
	shellcheck dev tools/dev/*.sh tools/dev/lib/*.sh .ci/run crates/kernel/tests/kernels/run \
		crates/kernel/tests/kernels/init packaging/deb/build packaging/deb/as-unit \
		packaging/deb/boot packaging/deb/under-systemd \
		packaging/deb/check packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm \
		packaging/rpm/build packaging/rpm/check packaging/oci/build packaging/oci/check
	for script in dev tools/dev/*.sh tools/dev/lib/*.sh; do
		dash -n "$script"
	done
}

# The package need not be built: mypy takes its types from the stubs.
lint_python() {
	need_python
	(cd python &&
		../.venv/bin/ruff format --check . &&
		../.venv/bin/ruff check . &&
		../.venv/bin/mypy trimtab tests)
}

need_rustfmt
need_clippy
need_bpf
need_command git git
need_command shellcheck shellcheck
need_command dash dash
[ "$(rust_version)" = "$pinned" ] ||
	say "this is Rust $(rust_version), CI's is $pinned: warnings may differ"
lint_rust
lint_features
lint_shell
lint_python
say "lint: all good"
