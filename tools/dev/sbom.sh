#!/bin/sh
# ./dev sbom: bills of materials (CycloneDX 1.6, JSON) of the Rust workspace and of the Python
# package, in out/. Each is validated by the schema of CycloneDX.
. tools/dev/lib.sh

need_rust
need_interpreter
folder=${CARGO_TARGET_DIR:-$PWD/target}/sbom
tool=cyclonedx-bom==7.5.0
library=cyclonedx-python-lib==11.12.0
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$tool $library" ]; then
	say "installing $tool into $folder"
	python3 -m venv "$folder"
	"$folder/bin/pip" install --quiet "$tool" "${library%%=*}[json-validation]==${library##*=}" >&2 ||
		die "pip could not install $tool (above)"
	echo "$tool $library" >"$folder/installed"
fi
mkdir -p out
"$folder/bin/python" tools/dev/sbom.py out/trimtab-rust.cdx.json
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
"$folder/bin/cyclonedx-py" requirements python/requirements.txt --pyproject python/pyproject.toml \
	--mc-type library --spec-version 1.6 --output-format JSON --output-reproducible --validate \
	--output-file out/trimtab-python.cdx.json ||
	die "the bill of materials of the Python package is not valid (above)"
say "out/trimtab-rust.cdx.json and out/trimtab-python.cdx.json are valid"
