#!/bin/sh
# picoquic and the TLS library that it needs, built from a package that carries both. Part of
# tools/dev/lib.sh.

# The source distribution of the Python package aiopquic carries picoquic 1.1.53.0 (commit c9088724)
# and picotls (commit f06553b). picoquic has no package of its own in this form.
picoquic_package=aiopquic-0.6.1
picoquic_sha256=72579146e0f22859a5a7c197246604fef460b9e1b578a2910156dff7679efd29

need_openssl() {
	printf '#include <openssl/ssl.h>\n' | cc -E - -o /dev/null 2>/dev/null ||
		install_packages "the headers of OpenSSL, for picotls" libssl-dev
}

# Leaves the sources in $picoquic_sources and the libraries below $picoquic_built.
need_picoquic() {
	picoquic_sources=${CARGO_TARGET_DIR:-$PWD/target}/picoquic/$picoquic_package/third_party
	picoquic_built=${CARGO_TARGET_DIR:-$PWD/target}/picoquic/built
	[ ! -f "$picoquic_built/complete" ] || return 0
	need_command cmake cmake
	need_command make make
	need_command pkg-config pkg-config
	need_cxx
	need_openssl
	fetch_picoquic
	build_picoquic
	touch "$picoquic_built/complete"
}

# pip asks a source distribution for its metadata. This Python may be older than the package wants,
# which does not matter: its Python part is not built.
fetch_picoquic() {
	need_interpreter
	say "fetching picoquic's sources"
	folder=${CARGO_TARGET_DIR:-$PWD/target}/picoquic
	rm -rf "$folder"
	mkdir -p "$folder"
	python3 -m venv "$folder/venv"
	"$folder/venv/bin/python" -m pip download --quiet --no-deps --no-binary aiopquic \
		--ignore-requires-python --dest "$folder" "aiopquic==${picoquic_package#aiopquic-}" >&2 ||
		die "pip could not fetch $picoquic_package (above): mend the network or pip's index," \
			"and run this again"
	printf '%s  %s\n' "$picoquic_sha256" "$folder/$picoquic_package.tar.gz" |
		sha256sum --check --quiet >&2 ||
		die "$picoquic_package.tar.gz is not the one that was checked:" \
			"see what changed, then set picoquic_sha256 in tools/dev/lib/picoquic.sh"
	tar -xzf "$folder/$picoquic_package.tar.gz" -C "$folder"
}

build_picoquic() {
	say "building picotls and picoquic"
	{
		cmake -S "$picoquic_sources/picotls" -B "$picoquic_built/picotls" \
			-DCMAKE_BUILD_TYPE=Release -DWITH_DTRACE=OFF -DWITH_FUSION=OFF &&
		cmake --build "$picoquic_built/picotls" --parallel 2 \
			--target picotls-core picotls-openssl picotls-minicrypto &&
		cmake -S "$picoquic_sources/picoquic" -B "$picoquic_built/picoquic" \
			-DCMAKE_BUILD_TYPE=Release -DBUILD_DEMO=OFF -DBUILD_HTTP=OFF -DBUILD_LOGLIB=OFF \
			-DBUILD_LOGREADER=OFF -DBUILD_PQBENCH=OFF -DBUILD_PICO_SIM=OFF \
			-Dpicoquic_BUILD_TESTS=OFF -DPTLS_INCLUDE_DIR="$picoquic_sources/picotls/include" \
			-DPTLS_CORE_LIBRARY="$picoquic_built/picotls/libpicotls-core.a" \
			-DPTLS_OPENSSL_LIBRARY="$picoquic_built/picotls/libpicotls-openssl.a" \
			-DPTLS_MINICRYPTO_LIBRARY="$picoquic_built/picotls/libpicotls-minicrypto.a" &&
		cmake --build "$picoquic_built/picoquic" --parallel 2 --target picoquic-core
	} >"$picoquic_built.log" 2>&1 ||
		die "picoquic does not build: $picoquic_built.log has the compiler's messages"
}
