#!/bin/sh
# ./dev contract: whether the engine answers as its OpenAPI description says, by Schemathesis.
. tools/dev/lib.sh

need_rust
need_interpreter
folder=${CARGO_TARGET_DIR:-$PWD/target}/contract
version=4.32.5
if ! "$folder/bin/schemathesis" --version 2>/dev/null | grep -q "$version"; then
	say "installing schemathesis $version into $folder"
	python3 -m venv "$folder"
	"$folder/bin/pip" install --quiet "schemathesis==$version" >&2 ||
		die "pip could not install schemathesis (above)"
fi
export TRIMTAB_SCHEMATHESIS="$folder/bin/schemathesis"
exec cargo test --locked -p trimtab-engine --test contract -- --nocapture "$@"
