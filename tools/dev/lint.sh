#!/bin/sh
# ./dev lint: formatting, clippy, house style, shell scripts, Python.
. tools/dev/lib.sh

# CI also looks at what compiles C and C++ for minutes; its tests use the same builds of it.
lint_rust() {
	cargo fmt --all --check
	need_cxx
	cargo clippy --workspace --all-targets --locked ${CI:+--features "$(slow_features),trimtab/webrtc"} -- -D warnings
	cargo test --locked --quiet -p trimtab-tidy
}

# packages PACKAGE [cargo's arguments]: what it depends on, with the features that it selects.
packages() {
	cargo tree --locked --edges normal,build --prefix none --format '{p} {f}' --package "$@" |
		sed 's/ (\*)$//' | sort -u
}

# Where the Python package and the command select the same features, a build of one serves the other.
lint_features() {
	folder=$(mktemp -d)
	# shellcheck disable=SC2154 # tools/dev/lib/rust.sh sets it
	packages trimtab --features "$features" >"$folder/command"
	packages trimtab-py >"$folder/python"
	# Of what the command has, too, the lines that it does not have.
	differ=$(comm -23 "$folder/python" "$folder/command" | while read -r name version rest; do
		! grep -q "^$name $version " "$folder/command" || echo "$name $version $rest"
	done)
	rm -r "$folder"
	[ -z "$differ" ] ||
		die "lint: crates/py selects other features than the command, so both compile everything;" \
			"make crates/py/Cargo.toml select the features that \`cargo tree\` shows of trimtab: $differ"
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
