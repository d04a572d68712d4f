#!/bin/sh
# ./dev chart: lints the Helm chart, and draws what it makes of several values.
. tools/dev/lib.sh

chart=packaging/helm/trimtab
# Debian has no helm; Go's own registry has it as a module, for a Go that is new enough.
version=v3.19.2
if have helm; then
	helm=helm
else
	helm=$PWD/target/helm/bin/helm
	if [ ! -x "$helm" ]; then
		have go || die "chart: this machine has neither helm nor go: install one of them, and run this again"
		say "building helm $version (minutes, once)"
		GOBIN="$PWD/target/helm/bin" GOFLAGS=-p=2 go install "helm.sh/helm/v3/cmd/helm@$version" ||
			die "chart: helm could not be built (above); install helm, and run this again"
	fi
fi
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
set_image="--set image.repository=registry.example/trimtab"
draw() { # NAME OPTIONS...
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	"$helm" template edge "$chart" --kube-version 1.30.0 $set_image "$@" >"$drawn/$name" ||
		die "chart: $name cannot be drawn (above)"
}
# shellcheck disable=SC2086
"$helm" lint --strict $set_image "$chart" || die "chart: helm finds mistakes (above)"
draw plain
draw metrics --set metrics.port=9469 --set prometheusRule.enabled=true
grep -q 'prometheus.io/port: "9469"' "$drawn/metrics" || die "chart: no annotation of metrics.port"
grep -q 'alert: TrimtabAgentTroubles' "$drawn/metrics" || die "chart: the alert rules are missing"
! grep -q 'kind: PrometheusRule' "$drawn/plain" || die "chart: alert rules that nobody asked for"
# Each mistake is refused.
! "$helm" template edge "$chart" --kube-version 1.30.0 >/dev/null 2>&1 || die "chart: it takes an empty image.repository"
# shellcheck disable=SC2086
! "$helm" template edge "$chart" --kube-version 1.30.0 $set_image --set metrics.port=70000 >/dev/null 2>&1 ||
	die "chart: it takes a port of 70000"
# shellcheck disable=SC2086
! "$helm" template edge "$chart" --kube-version 1.30.0 $set_image --set confg=x >/dev/null 2>&1 ||
	die "chart: it takes a value that there is not"
# The versions of the chart and of what it runs are one.
ours=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")" = "$ours" ] ||
	die "chart: appVersion is not $ours, the version in Cargo.toml"
# The configuration that it installs is one that the agent takes.
if [ -x target/release/trimtab ]; then
	sed -n '/^  agent.toml: |$/,/^---$/s/^    //p' "$drawn/plain" >"$drawn/agent.toml"
	[ -s "$drawn/agent.toml" ] || die "chart: the configuration is missing"
	target/release/trimtab agent check --config "$drawn/agent.toml" ||
		die "chart: the agent refuses the chart's configuration (above)"
fi
say "chart: all good"
