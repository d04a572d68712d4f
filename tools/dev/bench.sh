#!/bin/sh
# The verbs that measure: runs one of the benchmarks in tools/bench, or python/bench.py.
# usage: tools/dev/bench.sh sim|agent|emu|engine|kernel|mahimahi|py|quic|step [arguments]
. tools/dev/lib.sh

measure() { # PACKAGE [arguments]
	package=$1
	shift
	cargo run --release --locked --quiet -p "$package" -- "$@"
}

# ns-3, for the comparison. The benchmarks also run without it, so a failure here only leaves the
# comparison out: each step is in a subshell, which `die` ends alone.
ns3_peer() { # PROGRAM
	if ! [ -e /usr/include/ns3/core-module.h ]; then
		(install_packages "ns-3, to compare with" libns3-dev) || return 1
	fi
	(need_cxx) || return 1
	mkdir -p out/bench
	c++ -std=c++17 -O2 -o "$1" tools/bench/sim/ns3/bulk.cc -lns3-applications \
		-lns3-point-to-point -lns3-internet -lns3-traffic-control -lns3-network -lns3-core >&2
}

bench_sim() {
	need_bpf
	cargo build --release --locked --quiet -p trimtab-bench
	peer=out/bench/ns3-bulk
	if ns3_peer "$peer"; then
		set -- --ns3 "$peer" "$@"
	else
		say "no ns-3 (the reason is above): the comparison with it is skipped"
	fi
	measure trimtab-bench "$@"
}

bench_kernel() {
	need_bpf
	need_command ip iproute2
	need_command ethtool ethtool
	cargo build --release --locked --quiet -p trimtab-kernel-bench
	as_root "${CARGO_TARGET_DIR:-target}/release/trimtab-kernel-bench" "$@"
}

what=$1
shift
need_rust
case $what in
sim) bench_sim "$@" ;;
kernel) bench_kernel "$@" ;;
emu) measure trimtab-emu-bench figures "$@" ;;
mahimahi)
	shared=${TRIMTAB_SHARED:-../shared}
	measure trimtab-emu-bench mahimahi --ground-truth "$shared/groundtruth" \
		--traces "$shared/traces" "$@"
	;;
agent)
	need_bpf
	need_command ip iproute2
	measure trimtab-agent-bench "$@"
	;;
engine)
	need_postgres
	measure trimtab-engine-bench "$@"
	;;
quic) measure trimtab-quic-bench "$@" ;;
step)
	need_bpf
	measure trimtab-step "$@"
	;;
py)
	build_python
	.venv/bin/python python/bench.py "$@"
	;;
esac
