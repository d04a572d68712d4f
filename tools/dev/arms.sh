#!/bin/sh
# ./dev arms: what the agent's comparison says of a rule, on this machine's TCP over emulated links.
# usage: tools/dev/arms.sh [MINUTES]          default: 20
#        tools/dev/arms.sh --harm [NETWORKS]  how soon the breaker stops rules that do harm, for 12
#                                             connections of each network; default: 84
. tools/dev/lib.sh

need_rust
need_bpf
if [ "${1:-}" = --harm ]; then
	CI=1 TRIMTAB_HARM="${2:-84}" exec cargo test --locked -p trimtab-agent --test agent -- \
		breaker:: --nocapture --test-threads 1
fi
CI=1 TRIMTAB_ARMS="${1:-20}" exec cargo test --locked -p trimtab-agent --test agent -- \
	arms::a_gain --nocapture
