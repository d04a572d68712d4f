#!/bin/sh
# ./dev chart-engine: lints the Helm chart of the engine, and draws what it makes of several values.
. tools/dev/lib.sh

chart=packaging/helm/trimtab-engine
helm=$PWD/target/helm/bin/helm
if have helm; then
	helm=helm
elif [ ! -x "$helm" ]; then
	# It builds helm.
	sh tools/dev/chart.sh
fi
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
set_image="--set image.repository=registry.example/trimtab"
draw() { # NAME OPTIONS...
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	"$helm" template engine "$chart" --kube-version 1.30.0 $set_image "$@" >"$drawn/$name" ||
		die "chart-engine: $name cannot be drawn (above)"
}
refuse() { # TEXT OPTIONS...: the chart says no, for this reason.
	text=$1
	shift
	# shellcheck disable=SC2086
	! "$helm" template engine "$chart" --kube-version 1.30.0 "$@" >"$drawn/refused" 2>&1 ||
		die "chart-engine: it takes $*"
	grep -q "$text" "$drawn/refused" || die "chart-engine: $* is refused without '$text': $(cat "$drawn/refused")"
}
shared=$drawn/shared.yaml
cat >"$shared" <<'VALUES'
replicas: 3
secretName: passwords
persistence: { enabled: false }
config: |
  listen = "0.0.0.0:7480"
  services = "services"
  plaintext = true

  [store]
  postgres = "host=postgres user=trimtab dbname=trimtab"
  password_file = "/etc/trimtab-secrets/postgres"

  [broker]
  nats = "nats://nats:4222"
VALUES
# shellcheck disable=SC2086
"$helm" lint --strict $set_image --set tls.secretName=engine-tls "$chart" ||
	die "chart-engine: helm finds mistakes (above)"
draw file --set tls.secretName=engine-tls
draw mutual --set tls.secretName=engine-tls --set tls.clients=true
draw shared --values "$shared"
draw watched --set tls.secretName=engine-tls --set prometheusRule.enabled=true \
	--set serviceMonitor.enabled=true --set serviceMonitor.tokenSecret.name=viewer
has() { # NAME TEXT
	grep -q "$2" "$drawn/$1" || die "chart-engine: $1 lacks '$2'"
}
lacks() { # NAME TEXT
	! grep -q "$2" "$drawn/$1" || die "chart-engine: $1 has '$2', which nobody asked for"
}
has file 'scheme: HTTPS'
has file 'storage: 10Gi'
has file 'key: web.toml'
lacks file 'clients = '
lacks file 'kind: PodDisruptionBudget'
lacks file 'kind: PrometheusRule'
has mutual 'clients = "/etc/trimtab-tls/ca.crt"'
has shared 'scheme: HTTP$'
has shared 'kind: PodDisruptionBudget'
has shared 'secretName: passwords'
lacks shared 'volumeClaimTemplates'
has watched 'alert: TrimtabEngineBehind'
has watched 'kind: ServiceMonitor'
# Each mistake is refused, with what to do.
refuse 'image.repository is empty' --set tls.secretName=x
# shellcheck disable=SC2086
{
	refuse 'tokens would travel in the clear' $set_image
	refuse 'a store in a file has one engine' $set_image --set tls.secretName=x --set replicas=2
	refuse 'tls.clients needs tls.secretName' $set_image --values "$shared" --set tls.clients=true
	refuse 'tokenSecret.name is empty' $set_image --set tls.secretName=x --set serviceMonitor.enabled=true
	refuse 'service.port' $set_image --set tls.secretName=x --set service.port=70000
	refuse 'confg' $set_image --set tls.secretName=x --set confg=x
}
# The versions of the chart and of what it runs are one.
ours=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")" = "$ours" ] ||
	die "chart-engine: appVersion is not $ours, the version in Cargo.toml"
# The engine takes the configuration and the services that the chart installs.
if [ -x target/release/trimtab ]; then
	mkdir -p "$drawn/etc/services"
	part() { # KEY
		sed -n "/^  $1: |\$/,/^  [a-z]\|^---\$/s/^    //p" "$drawn/file"
	}
	part engine.toml | sed "s|/var/lib/trimtab-engine|$drawn|; /^\[tls\]/,\$d; s|0.0.0.0:7480|127.0.0.1:0|" \
		>"$drawn/etc/engine.toml"
	part web.toml >"$drawn/etc/services/web.toml"
	[ -s "$drawn/etc/services/web.toml" ] || die "chart-engine: the service is missing"
	target/release/trimtab engine token add kim --role operator --config "$drawn/etc/engine.toml" >"$drawn/token" ||
		die "chart-engine: the engine refuses the chart's configuration (above)"
fi
say "chart-engine: all good"
