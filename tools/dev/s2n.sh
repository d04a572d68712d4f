#!/bin/sh
# ./dev s2n: the tests of what runs on s2n-quic itself, which compiles its TLS library, C.
. tools/dev/lib.sh

need_rust
need_bpf
result=0
cargo test --locked -p trimtab-s2n-quic --features sockets "$@" || result=1
cargo test --locked -p trimtab-quic --features s2n --test s2n "$@" || result=1
cargo test --locked -p trimtab-quic --features s2n --lib "$@" -- s2n:: || result=1
exit $result
