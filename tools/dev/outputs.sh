#!/bin/sh
# ./dev outputs: runs the commands whose output the pages quote. The picture of the report is made
# anew with the slow outputs, where there is a browser to take it.
. tools/dev/lib.sh

picture() {
	if ! have chromium; then
		say "no chromium: docs/images/demo.png stays as it is"
		return 0
	fi
	mkdir -p out
	trimtab compare --quiet --html out/demo.html >/dev/null
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1100,1960 \
		--screenshot=docs/images/demo.png "file://$PWD/out/demo.html" >&2
}

build_packages trimtab trimtab-outputs
need_command jq jq
shared=${TRIMTAB_SHARED:-../shared}
if [ -d "$shared" ]; then
	TRIMTAB_SHARED=$(cd "$shared" && pwd)
	export TRIMTAB_SHARED
fi
PATH=$built:$PATH trimtab-outputs "$@"
case " $* " in
*" --check "*) ;;
*" --slow "*) picture ;;
esac
