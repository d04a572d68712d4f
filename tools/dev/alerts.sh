#!/bin/sh
# ./dev alerts: whether Prometheus takes the alert rules of agent and engine, and whether they fire
# when they should.
. tools/dev/lib.sh

# Debian's package would also start a server, so it is unpacked and not installed.
promtool=promtool
if ! have promtool; then
	have apt-get || die "promtool is missing and this machine has no apt: install Prometheus"
	folder=${CARGO_TARGET_DIR:-$PWD/target}/prometheus
	promtool=$folder/usr/bin/promtool
	if [ ! -x "$promtool" ]; then
		apt_refresh
		say "fetching promtool"
		mkdir -p "$folder"
		(cd "$folder" && apt-get download -q -o APT::Sandbox::User=root prometheus >&2) ||
			die "apt could not download prometheus (above)"
		dpkg-deb -x "$folder"/prometheus_*.deb "$folder"
		rm "$folder"/prometheus_*.deb
	fi
fi
for rules in alerts engine-alerts; do
	"$promtool" check rules "packaging/monitoring/$rules.yml"
	"$promtool" test rules "packaging/monitoring/$rules-test.yml"
done
