#!/bin/sh
# Python, its packages in .venv, and our own package. Part of tools/dev/lib.sh.

# The versions of python/requirements.txt in .venv: the package's dependencies, and what builds and
# checks it.
python_done=
python_fits() {
	python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

need_interpreter() {
	python_fits || install_packages "Python 3.11 or newer with venv" python3 python3-venv
	# Older systems have an older one.
	python_fits ||
		die "this needs Python 3.11 or newer with venv as python3," \
			"and the system's packages have none: install one"
}

need_python() {
	[ -z "$python_done" ] || return 0
	need_interpreter
	[ -x .venv/bin/python ] || python3 -m venv .venv
	if ! cmp -s python/requirements.txt .venv/installed; then
		say "installing the versions of python/requirements.txt into .venv (700 MB; JAX is most of it)"
		.venv/bin/python -m pip install --quiet 'uv==0.13.8' >&2 || die "pip could not install uv (above)"
		.venv/bin/uv pip install --quiet --python .venv/bin/python -r python/requirements.txt >&2 ||
			die "uv could not install python/requirements.txt (above)"
		cp python/requirements.txt .venv/installed
	fi
	python_done=yes
}

# Clients of HTTP/3 that the tests of crates/h3-noq run.
need_http3_clients() {
	need_python
	.venv/bin/uv pip install --quiet --python .venv/bin/python aioquic==1.7.2 curl_cffi==0.17.0 >&2 ||
		die "uv could not install aioquic and curl_cffi (above)"
}

build_python() {
	need_rust
	need_python
	say "building the Python package into .venv"
	(cd python &&
		VIRTUAL_ENV=$PWD/../.venv ../.venv/bin/maturin develop --release --locked --uv --quiet >&2) ||
		die "maturin could not build the Python package (above)"
}
