#!/bin/sh
# ./dev libcc: libtrimtab-cc.a, the C library without std, libtrimtab-cc-steer.a, which has Mortise as
# well, and libtrimtab-cc-select.a, which also has learnt policies. For this machine each holds the
# functions of the headers alone, in one object. For other targets it is rustc's archive: several MB,
# of which a linker takes little. The host's tools read no foreign objects.
. tools/dev/lib.sh

# Builds crates/cc-ffi/static for a target; the result is $archive. $2 is cargo's features.
build_archive() {
	dir=${CARGO_TARGET_DIR:-$PWD/target}/libcc
	cargo build --release --locked --manifest-path crates/cc-ffi/static/Cargo.toml \
		--target "$1" --target-dir "$dir" --features "$2"
	archive=$dir/$1/release/libtrimtab_cc_static.a
}

build_target() {
	rustup target add "$1" >&2 ||
		die "libcc: this toolchain has no target $1, or it cannot be fetched;" \
			"\`rustup target list\` names those there are"
	say "building libtrimtab-cc for $1"
	build_archive "$1" ""
	mkdir -p "out/$1"
	cp "$archive" "out/$1/libtrimtab-cc.a"
	say "the library is out/$1/libtrimtab-cc.a"
}

# build_library NAME FEATURES HEADER...: out/NAME.a with the functions of the headers.
build_library() {
	library=$1
	say "building $library"
	build_archive "$host" "$2"
	shift 2
	folder=$(dirname "$archive")
	functions=$(cat "$@" | grep -o 'trimtab_cc_[a-z_]*(' | tr -d '(' | sort -u)
	# Bitcode for the linker of rustc, which others take for an object of theirs.
	objcopy -R .llvmbc -R .llvmcmd "$archive" "$folder/plain.a"
	# shellcheck disable=SC2046,SC2086 # a word for each function
	ld -r --gc-sections $(printf ' -u %s' $functions) -o "$folder/$library.o" "$folder/plain.a"
	# shellcheck disable=SC2046,SC2086 # as above
	objcopy $(printf ' --keep-global-symbol=%s' $functions) --strip-unneeded -R .comment \
		"$folder/$library.o"
	mkdir -p out
	rm -f "out/$library.a"
	ar rcs "out/$library.a" "$folder/$library.o"
	say "the library is out/$library.a, $(wc -c <"out/$library.a") bytes"
}

build_host() {
	need_command objcopy binutils
	host=$(rustc -vV | sed -n 's/^host: //p')
	include=crates/cc-ffi/include
	set -- $include/trimtab-cc.h $include/trimtab-cc-steer.h
	build_library libtrimtab-cc-select select "$@" $include/trimtab-cc-select.h
	build_library libtrimtab-cc-steer steer "$@"
	build_library libtrimtab-cc "" $include/trimtab-cc.h
}

# What programs are compiled against: the functions of each library, and the sizes of the headers'
# structs where pointers have 64 bits. crates/cc-ffi/abi.txt has what was published.
check_abi() {
	list=out/abi.txt
	{
		for library in libtrimtab-cc libtrimtab-cc-steer libtrimtab-cc-select; do
			nm --defined-only --extern-only "out/$library.a" |
				sed -n "s/^[0-9a-f]* T /$library /p" | LC_ALL=C sort
		done
		{
			echo '#include <stdio.h>'
			echo '#include "trimtab-cc-select.h"'
			echo 'int main(void) {'
			sed -n 's/^struct \([a-z_]*\) {$/printf("struct \1 %zu\\n", sizeof(struct \1));/p' \
				"$include"/*.h
			echo 'return 0; }'
		} >"$folder/abi.c"
		cc -std=c99 -Wall -Wextra -Werror -I"$include" -o "$folder/abi" "$folder/abi.c"
		"$folder/abi"
	} >"$list"
	diff -u crates/cc-ffi/abi.txt "$list" ||
		die "libcc: functions or structs changed (above). Where this is meant, note it in" \
			"CHANGELOG.md and put out/abi.txt in the place of crates/cc-ffi/abi.txt"
	say "the $(wc -l <"$list") functions and structs are those of crates/cc-ffi/abi.txt"
}

# It must be small (the limit is that of the issue that asked for it), allocate nothing, and carry a
# transfer by rules and by trees. $1 is where to put the example's program.
check() {
	[ "$(wc -c <out/libtrimtab-cc.a)" -lt 300000 ] ||
		die "libcc: the library has 300,000 bytes or more"
	wanted=$(nm -u out/libtrimtab-cc.a | sed -n 's/^ *U //p' |
		grep -Evx 'memcpy|memmove|memset|memcmp|bcmp|strlen' || true)
	[ -z "$wanted" ] || die "libcc: the library asks for $(echo "$wanted" | tr '\n' ' ')"
	cc -std=c99 -Wall -Wextra -Werror -Icrates/cc-ffi/include -o "$1" \
		crates/cc-ffi/examples/transfer.c out/libtrimtab-cc.a
	for arguments in cubic copa "models/muses.trees cubic" "models/treeg.trees copa"; do
		# shellcheck disable=SC2086 # a model and its fallback are two words
		printed=$("$1" $arguments)
		say "transfer $arguments: $printed"
		case $printed in "used 9"[0-9].*) ;; *) die "libcc: that is less than 90% of the link" ;; esac
	done
}

# A steered connection: it must need neither std nor serde. $1 is where to put the example's program.
check_steering() {
	manifest=crates/cc-ffi/static/Cargo.toml
	tree=$(cargo tree --locked --manifest-path "$manifest" --features steer --edges normal \
		--prefix none)
	if printf '%s\n' "$tree" | grep -E '^(serde|safetensors|exmex) '; then
		die "libcc: a steered connection needs none of these;" \
			"make them optional in crates/steer/Cargo.toml"
	fi
	cc -std=c99 -Wall -Wextra -Werror -Icrates/cc-ffi/include -DTRIMTAB_CC_STEER -o "$1" \
		crates/cc-ffi/examples/transfer.c out/libtrimtab-cc-steer.a
	printed=$("$1" mortise download)
	say "transfer mortise download: $printed"
	# Within the range of Mortise, and not where every flow starts.
	case $printed in
	*"delta 0.0350") die "libcc: Mortise has decided nothing" ;;
	"used 9"[0-9].*"delta 0."[0-9]*) ;;
	*) die "libcc: that is less than 90% of the link, or no delta" ;;
	esac
}

# A connection whose algorithm a learnt policy chooses. $1 is where to put the example's program.
check_selection() {
	cc -std=c99 -Wall -Wextra -Werror -Icrates/cc-ffi/include -DTRIMTAB_CC_STEER \
		-DTRIMTAB_CC_SELECT -o "$1" crates/cc-ffi/examples/transfer.c out/libtrimtab-cc-select.a
	printed=$("$1" policy models/floo-shared.safetensors)
	say "transfer policy models/floo-shared.safetensors: $printed"
	# The queue of the example holds two round trips: what the policy starts with does not fill it.
	case $printed in
	*"suited -1"*) die "libcc: the policy has looked at nothing" ;;
	"used 9"[0-9].*"suited "[0-9]*) ;;
	*) die "libcc: that is less than 90% of the link, or no choice" ;;
	esac
}

# Compiles a program of crates/cc-ffi/picoquic with the adapter, into $folder. $2 and on are options.
link_picoquic() {
	program=$1
	shift
	cc -std=gnu99 -O1 -Wall -Wextra -Werror -Icrates/cc-ffi/include -Icrates/cc-ffi/picoquic \
		-isystem "$picoquic_sources/picoquic/picoquic" -o "$folder/picoquic-$program" "$@" \
		"crates/cc-ffi/picoquic/$program.c" crates/cc-ffi/picoquic/trimtab-picoquic.c \
		out/libtrimtab-cc-steer.a "$picoquic_built/picoquic/libpicoquic-core.a" \
		"$picoquic_built/picotls/libpicotls-openssl.a" \
		"$picoquic_built/picotls/libpicotls-minicrypto.a" \
		"$picoquic_built/picotls/libpicotls-core.a" -lssl -lcrypto -lpthread -lm
}

# A transfer in picoquic with the remaining arguments must bring so many Mbit/s of 20, and wait no
# longer than so many ms.
carry() {
	least=$1
	most=$2
	shift 2
	controllers=$*
	printed=$("$folder/picoquic-transfer" -c "$picoquic_sources/picoquic/certs" "$@") ||
		die "libcc: the transfer in picoquic failed (above): $controllers"
	say "picoquic $controllers: $printed"
	printf '%s\n' "$printed" | sed 's/^\([0-9.]*\) Mbit.*waited \([0-9.]*\) ms.*/\1 \2/' |
		awk -v least="$least" -v most="$most" '{ exit !($1 >= least && $2 <= most) }' ||
		die "libcc: in picoquic $controllers brings less than $least Mbit/s, or waits above $most ms"
}

# In picoquic: each notification, and transfers between two of its contexts in virtual time.
check_picoquic() {
	need_picoquic
	link_picoquic notify -Wl,--wrap=malloc -fsanitize=address,undefined
	notified=$("$folder/picoquic-notify") ||
		die "libcc: a notification of picoquic's has the wrong effect: $(echo "$notified" | tail -n 1)"
	say "picoquic's notifications: $(echo "$notified" | grep -c '^ok') checks hold"
	link_picoquic transfer
	carry 17 100 picoquic:cubic
	carry 17 100 cubic
	carry 17 20 picoquic:bbr
	carry 17 20 bbr3
	carry 14 15 copa
	carry 18 5 -a 2 copa
	carry 17 40 vivace
	carry 17 40 mortise:vod
	carry 10 10 mortise:conference
	carry 12 30 -l 200 bbr3
	carry 15 20 -m 20 cubic
	carry 17 60 -s 10 cubic copa:delta=0.1
}

# Links the example that decides by trees with the library for Android's target, and runs it under
# qemu. What is the processor's is the same under Debian's C library as under Android's. $1 is the
# target, $2 the compiler, $3 the emulator; the rest are options of the compiler.
decide_on() {
	target=$1
	compiler=$2
	emulator=$3
	shift 3
	build_target "$target"
	program=out/$target/decide
	# Both rustc's archive and gcc's bring the divisions that an old ARM has not.
	"$compiler" -static -std=c99 -O2 -Wall -Wextra -Werror -Icrates/cc-ffi/include "$@" \
		-Wl,--gc-sections -Wl,-z,muldefs -Wl,-Map="$program.map" -o "$program" \
		crates/cc-ffi/examples/decide.c "out/$target/libtrimtab-cc.a"
	linked=$(linked_bytes "$program.map")
	for model in treeg muses; do
		decided=$("$emulator" "$program" "models/$model.trees") ||
			die "libcc: $model.trees does not run on $target (above)"
		say "$target, under $emulator: $model.trees: $decided, code $linked bytes"
	done
}

# What a linker took of the library, by its map: lines of address, size and archive.
linked_bytes() {
	awk '/^Linker script and memory map/ { taken = 1 }
		taken && /libtrimtab-cc\.a/ && $(NF-2) ~ /^0x0*[1-9a-f]/ { print $(NF-1) }' "$1" | {
		sum=0
		while read -r size; do sum=$((sum + size)); done
		echo "$sum"
	}
}

# Trees on the processors of phones, and on this one.
phones() {
	need_command qemu-aarch64 qemu-user
	have aarch64-linux-gnu-gcc ||
		install_packages "a C compiler for arm64" gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	have arm-linux-gnueabi-gcc ||
		install_packages "a C compiler for ARMv7" gcc-arm-linux-gnueabi libc6-dev-armel-cross
	build_host
	cc -std=c99 -O2 -Wall -Wextra -Werror -Icrates/cc-ffi/include -o "$folder/decide" \
		crates/cc-ffi/examples/decide.c out/libtrimtab-cc.a
	for model in treeg muses; do
		say "this machine: $model.trees: $("$folder/decide" "models/$model.trees")"
	done
	decide_on aarch64-linux-android aarch64-linux-gnu-gcc qemu-aarch64
	decide_on armv7-linux-androideabi arm-linux-gnueabi-gcc qemu-arm \
		-march=armv7-a -mfloat-abi=softfp -mfpu=vfpv3-d16
}

need_rust
case ${1:-} in
"") build_host ;;
--abi)
	build_host
	check_abi
	;;
--check)
	build_host
	check_abi
	check "$folder/transfer"
	check_steering "$folder/steered"
	check_selection "$folder/selected"
	check_picoquic
	;;
--picoquic)
	build_host
	check_picoquic
	;;
--phones) phones ;;
-*) die "libcc: '$1' is no option; usage: ./dev libcc [--abi | --check | --picoquic | --phones | TARGET…]" ;;
*)
	for target in "$@"; do
		build_target "$target"
	done
	;;
esac
