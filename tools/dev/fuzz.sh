#!/bin/sh
# ./dev fuzz: libFuzzer without cargo-fuzz and without nightly. These are the compiler's stable
# options, which put the counters in that libFuzzer reads. A target triple on the command line keeps
# them away from build scripts.
. tools/dev/lib.sh

seconds=${1:-60}
case $seconds in *[!0-9]* | "")
	die "fuzz: '$seconds' is not a number of seconds; usage: ./dev fuzz [seconds] [name]"
	;;
esac
need_rust
need_cxx
host=$(rustc -vV | sed -n 's/^host: //p')
dir=${CARGO_TARGET_DIR:-target}/fuzz
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS=$flags cargo build -p trimtab-fuzz --profile fuzz --locked --target "$host" \
	--target-dir "$dir"
fuzzed=
for source in fuzz/src/targets/*.rs; do
	name=$(basename "$source" .rs)
	[ "${2:-$name}" = "$name" ] || continue
	mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
	say "fuzzing $name for $seconds s"
	TRIMTAB_FUZZ=$name "$dir/$host/fuzz/trimtab-fuzz" "fuzz/corpus/$name" "fuzz/seeds/$name" \
		-max_total_time="$seconds" \
		-artifact_prefix="fuzz/artifacts/$name/" -max_len=4096 -timeout=10 -verbosity=0 \
		-print_final_stats=1 ||
		die "fuzz: $name failed; the input is in fuzz/artifacts/$name/" \
			"(give it to the target to repeat)"
	fuzzed=yes
done
[ -n "$fuzzed" ] || die "fuzz: there is no target '$2'; see fuzz/src/targets/"
