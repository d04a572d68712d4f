#!/bin/sh
# ./dev docs: the API documentation, the book, and every link.
. tools/dev/lib.sh

need_rust
need_bpf
# Of the packages that clippy looked at, with the same features.
need_cxx
RUSTDOCFLAGS="-D warnings" cargo_tests doc --no-deps --locked --workspace
# One of all tests, which CI runs later.
[ -n "${CI:-}" ] || cargo test --locked --quiet -p trimtab-tidy links
if ! have mdbook; then
	say "building mdbook, which makes the book (once, a few minutes)"
	# CI optimises its debug builds; this one runs for a second.
	CARGO_PROFILE_DEV_OPT_LEVEL=0 \
		cargo install mdbook --version '=0.5.4' --no-default-features --locked --debug >&2 ||
		die "cargo could not install mdbook (above)"
fi
mdbook build docs
say "the book is $PWD/out/book/index.html"
