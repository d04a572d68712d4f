#!/bin/sh
# ./dev upheaval: downloads go on while the agent is killed, upgraded and downgraded under them.
# usage: tools/dev/upheaval.sh [DOWNLOADS [INSTANTS]]   default: 1000 downloads, 100 instants
. tools/dev/lib.sh

need_rust
need_bpf
need_command ip iproute2
CI=1 TRIMTAB_UPHEAVAL="${1:-1000},${2:-100}" exec cargo test --locked -p trimtab-agent --test agent -- \
	upheaval --nocapture
