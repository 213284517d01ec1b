#!/bin/sh
# Writes what is generated: from the API types the deepcopy functions and the CustomResourceDefinitions; those of OLM's kinds
# from OLM's own; from config/ the files of the Helm chart and the table of rights in docs/profiles.md; from the commands of
# ambit the pages of docs/cli.
#
# Usage: generate.sh [--list]
#
# With --list it prints the generated files instead, one on a line, so that the check that nothing is out of date and
# the generator cannot disagree about which they are.
set -eu

cd "$(dirname "$0")/.."

if [ "${1:-}" = --list ]; then
	find api -name 'zz_generated.*.go'
	find config/crd -name '*_*.yaml'
	find charts/ambit/files charts/ambit/crds charts/ambit/charts/*/crds -name '*.yaml'
	echo docs/profiles.md
	echo charts/ambit/README.md
	find docs/cli -name '*.md'
	exit
fi

bin/tools/controller-gen object paths=./api/...
bin/tools/controller-gen crd paths=./api/... output:crd:dir=config/crd
go run ./hack/olmcrds config/crd

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for profile in cluster delegated namespaced; do
	bin/tools/kustomize build config/$profile >"$built/$profile.yaml"
done
bin/tools/kustomize build config/rbac/people >"$built/people.yaml"
bin/tools/kustomize build config/rbac/impersonate-legacy >"$built/legacy-impersonation.yaml"
bin/tools/kustomize build config/rbac/impersonate-certificates >"$built/webhook-certificates.yaml"
bin/tools/kustomize build config/rbac/namespaced-installs >"$built/namespaced-installs.yaml"

# Emptied first, so that nothing stays that is not written any more.
olm=charts/ambit/charts/olm-crds/crds
rm -rf charts/ambit/files charts/ambit/crds $olm
mkdir -p charts/ambit/files charts/ambit/crds $olm

go run ./hack/profiles chart "$built" charts/ambit
go run ./hack/profiles rights "$built" docs/profiles.md
for file in config/crd/*_*.yaml; do
	case $(head -n 1 "$file") in
	# In a chart of their own, because no value reaches into a folder crds, but one can leave out a chart.
	"# From github.com/operator-framework/api"*) cp "$file" $olm/ ;;
	*) cp "$file" charts/ambit/crds/ ;;
	esac
done
go run ./hack/chartvalues charts/ambit
go run ./hack/clidocs docs/cli
