#!/bin/sh
# ./dev arms: what the agent's comparison says of a rule, on this machine's TCP over emulated links.
# usage: tools/dev/arms.sh [MINUTES]   default: 20
. tools/dev/lib.sh

need_rust
need_bpf
CI=1 TRIMTAB_ARMS="${1:-20}" exec cargo test --locked -p trimtab-agent --test agent -- \
	arms::a_gain --nocapture
