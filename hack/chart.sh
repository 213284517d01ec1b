#!/bin/sh
# Checks the Helm chart: that it renders, for each profile, the very objects that kustomize builds of config/<profile>; that
# its values reach what they are for; and that what cannot work is refused in words.
set -eu

cd "$(dirname "$0")/.."

chart=charts/ambit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What a user has set up for Helm must not matter here.
HELM_CONFIG_HOME=$scratch/config HELM_CACHE_HOME=$scratch/cache HELM_DATA_HOME=$scratch/data
export HELM_CONFIG_HOME HELM_CACHE_HOME HELM_DATA_HOME

go build -o "$scratch/profiles" ./hack/profiles

render() { # NAMESPACE [ARGUMENT]...
	namespace=$1
	shift
	bin/tools/helm template ambit $chart --skip-tests --kube-version 1.36 --namespace "$namespace" "$@"
}

failed=0
complain() {
	echo "$*" >&2
	failed=1
}

# has TIMES TEXT ARGUMENT... says whether the chart renders a text that often with further arguments.
has() {
	times=$1
	text=$2
	shift 2
	found=$(render elsewhere "$@" | grep -cF -e "$text" || true)
	[ "$found" -eq "$times" ] || complain "helm template $*: wanted $times times $text, got $found"
}

# refuses TEXT ARGUMENT... says whether Helm refuses arguments with an error that has the text.
refuses() {
	text=$1
	shift
	if render elsewhere "$@" >"$scratch/out" 2>&1; then
		complain "helm template $*: want it refused"
	elif ! grep -qF -e "$text" "$scratch/out"; then
		complain "helm template $*: wanted an error with $text, got: $(cat "$scratch/out")"
	fi
}

for profile in cluster delegated namespaced; do
	bin/tools/helm lint --quiet --strict --kube-version 1.36 $chart --set profile=$profile || failed=1
	bin/tools/kustomize build config/$profile >"$scratch/want.yaml"
	render ambit-system --include-crds --set profile=$profile >"$scratch/got.yaml"
	"$scratch/profiles" same "$scratch/want.yaml" "$scratch/got.yaml" ||
		complain "The chart does not render the profile $profile."
	has 0 ambit-system --set profile=$profile
	has 0 'kind: ValidatingAdmissionPolicy' --set profile=$profile,guard.enabled=false
	has 0 '--operator-groups' --set profile=$profile
	has 0 'name: ambit-edit' --set profile=$profile,people.enabled=false
done

# With a scope to begin with.
mkdir -p "$scratch/default"
cp -r config "$scratch/default/config"
printf 'resources: [config/cluster]\ncomponents: [config/components/default-scope]\n' >"$scratch/default/kustomization.yaml"
bin/tools/kustomize build "$scratch/default" >"$scratch/want.yaml"
grep -q -- '--default-scope' "$scratch/want.yaml" || complain "With config/components/default-scope, nobody asks for the scope."

# Beside OLM, whose definitions are its own.
mkdir -p "$scratch/beside"
cp -r config "$scratch/beside/config"
for profile in cluster delegated namespaced; do
	cat >"$scratch/beside/kustomization.yaml" <<-EOF
		resources: [config/$profile]
		components: [config/components/beside-olm]
	EOF
	bin/tools/kustomize build "$scratch/beside" >"$scratch/want.yaml"
	render ambit-system --include-crds --set profile=$profile,operatorGroups.enabled=false >"$scratch/got.yaml"
	"$scratch/profiles" same "$scratch/want.yaml" "$scratch/got.yaml" ||
		complain "The chart does not render the profile $profile beside OLM."
	if grep -qE 'name: (operatorgroups|installplans)|identity-(groups|operators|catalogs)' "$scratch/want.yaml"; then
		complain "config/components/beside-olm leaves in $profile what is about OLM's kinds."
	fi
	grep -q -- '--operator-groups=disabled' "$scratch/want.yaml" || complain "Beside OLM, $profile might serve OLM's kinds."
done

# With each right that somebody has to ask for.
choose() { # PROFILE COMPONENT VALUE
	mkdir -p "$scratch/choice"
	cp -r config "$scratch/choice/config"
	printf 'resources: [config/%s]\ncomponents: [config/components/%s]\n' "$1" "$2" >"$scratch/choice/kustomization.yaml"
	bin/tools/kustomize build "$scratch/choice" >"$scratch/want.yaml"
	render ambit-system --include-crds --set "profile=$1,$3=true" >"$scratch/got.yaml"
	"$scratch/profiles" same "$scratch/want.yaml" "$scratch/got.yaml" ||
		complain "The chart does not render the profile $1 with $2."
}
choose delegated legacy-impersonation legacyImpersonation
choose delegated webhook-certificates webhookCertificates
choose namespaced namespaced-installs namespacedInstalls.enabled
has 0 'ambit-namespaced-installs' --set profile=namespaced
has 0 'ambit-namespaced-installs' --set profile=delegated,namespacedInstalls.enabled=true
has 1 '- "other"' --set 'profile=namespaced,namespacedInstalls.enabled=true,namespacedInstalls.serviceAccounts={other}'
refuses 'choose one' --set profile=namespaced,namespacedInstalls.enabled=true,operatorGroups.enabled=false
refuses 'is empty' --set 'profile=namespaced,namespacedInstalls.enabled=true,namespacedInstalls.serviceAccounts=null'
has 0 'ambit-impersonate-certificates' --set profile=delegated
has 0 'ambit-impersonate-certificates' --set profile=namespaced,webhookCertificates=true
has 0 'ambit-impersonate-legacy' --set profile=delegated
has 0 'ambit-impersonate-legacy' --set profile=namespaced,legacyImpersonation=true

has 0 'ambit-own-identity-groups' --set profile=cluster,operatorGroups.enabled=false
has 2 'name: ambit-own-identity-groups' --set profile=cluster

# Metrics: over TLS, without it, and within the pod alone where Ambit may not ask who may read them.
has 1 '--metrics-bind-address=:8443' --set profile=delegated
has 0 '--metrics-secure=false' --set profile=delegated
has 1 '--metrics-bind-address=:8080' --set profile=delegated,metrics.secure=false
has 1 '--metrics-secure=false' --set profile=delegated,metrics.secure=false
has 1 '--metrics-cert-dir=/metrics-certificate' --set profile=cluster,metrics.certificate.secretName=served
has 1 '--metrics-bind-address=127.0.0.1:8080' --set profile=namespaced
has 1 '--metrics-bind-address=:8080' --set profile=namespaced,metrics.secure=false
has 1 'name: ambit-metrics-reader' --set profile=cluster
has 0 'ambit-metrics-reader' --set profile=namespaced
refuses 'metrics.secure=false' --set profile=namespaced,metrics.service.enabled=true
refuses 'metrics.certificate' --set profile=namespaced,metrics.certificate.secretName=served

has 0 '--olm-namespaces'
has 1 '--olm-namespaces=olm,lifecycle' --set 'operatorGroups.olmNamespaces={olm,lifecycle}'
has 1 '--default-service-account=writer' --set profile=cluster,defaultServiceAccount=writer
has 2 "expression: '''writer'''" --set profile=cluster,defaultServiceAccount=writer
has 1 "expression: '''writer'''" --set profile=delegated,defaultServiceAccount=writer
has 1 '"--restart-interval=30s"' --set 'extraArgs={--restart-interval=30s}'
has 1 'image: "example.org/ambit:v2"' --set image.repository=example.org/ambit,image.tag=v2
digest=sha256:$(printf '%064d' 7)
has 1 "/ambit:v0.1.0@$digest\"" --set image.digest="$digest"
has 1 'image: "ghcr.io/ambit-k8s/ambit:v2"' --set image.tag=v2,image.digest="$digest"
refuses 'digest' --set image.digest=sha256:0
has 1 'imagePullPolicy: Always' --set image.pullPolicy=Always
has 1 'name: registry' --set 'image.pullSecrets[0].name=registry'
has 1 'replicas: 3' --set replicas=3
has 1 'memory: 1Gi' --set resources.limits.memory=1Gi

# What the template gives the manager, a value decides, and with it the guard, the rights and the ports.
for flag in $(grep -o -e '- --[a-z-]*' -e '"--[a-z-]*' $chart/templates/deployment.yaml | grep -o -e '--[a-z-]*' | sort -u); do
	refuses "extraArgs has $flag" --set "extraArgs={--concurrent-writes=8,$flag=x}"
	refuses "extraArgs has $flag" --set "extraArgs={$flag,x}"
done
refuses 'set defaultServiceAccount' --set 'extraArgs={--default-service-account=writer}'
refuses 'set defaultServiceAccount' --set 'extraArgs={--default-service-account,writer}' --skip-schema-validation
refuses 'set profile=delegated' --set 'extraArgs={--require-service-account}'
refuses 'set profile=namespaced' --set 'extraArgs={--namespaces=a}'
has 1 '"--namespaces=other"' --set 'profile=namespaced,extraArgs={--namespaces=other}'
refuses 'operatorGroups.enabled' --set 'operatorGroups.enabled=false,extraArgs={--operator-groups=enabled}'
refuses 'namespacedInstalls.enabled' --set 'profile=namespaced,extraArgs={--operator-groups=enabled}'
has 1 '"--operator-groups=enabled"' --set 'extraArgs={--operator-groups=enabled}'
has 1 '"--default-scope"' --set 'extraArgs={--default-scope}'

refuses 'extraLabels' --set extraLabels.team=-a-
refuses 'extraLabels' --set 'extraLabels.the team=a'
has 3 'example.com/the_team: A.b' --set 'extraLabels.example\.com/the_team=A.b,podDisruptionBudget.enabled=true'
refuses 'metrics/rules/labels' --set metrics.rules.labels.release=a/b

# As a dependency of another chart, which chooses by a value whether it is there.
mkdir -p "$scratch/parent/charts"
cp -r $chart "$scratch/parent/charts/ambit"
cat >"$scratch/parent/Chart.yaml" <<-EOF
	apiVersion: v2
	name: parent
	version: 0.1.0
	dependencies:
	  - {name: ambit, version: 0.1.0, condition: ambit.enabled}
EOF
for enabled in true false; do
	bin/tools/helm template ambit "$scratch/parent" --skip-tests --kube-version 1.36 --namespace elsewhere --include-crds \
		--set ambit.profile=cluster,ambit.enabled=$enabled >"$scratch/$enabled.yaml" ||
		complain "Another chart cannot have ambit.enabled=$enabled."
done
render elsewhere --include-crds --set profile=cluster >"$scratch/want.yaml"
"$scratch/profiles" same "$scratch/want.yaml" "$scratch/true.yaml" || complain "As a dependency, the chart renders something else."
! grep -q ^kind: "$scratch/false.yaml" || complain "A chart that leaves this one out with ambit.enabled=false renders it."
refuses 'enabled' --set enabled=false

refuses 'must be one of' --set profile=everything
refuses 'give cluster, delegated or namespaced' --set profile=everything --skip-schema-validation
refuses 'defaultServiceAccount cannot be given' --set profile=namespaced,defaultServiceAccount=writer
refuses 'defaultServiceAccount' --set "defaultServiceAccount=x' || true || '"
refuses 'operatorGroups' --set operatorGroups.crds=true
refuses 'profil' --set profil=cluster

exit $failed
