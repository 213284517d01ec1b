#!/bin/sh
# Writes what is generated: from the API types the deepcopy functions and the CustomResourceDefinitions; from config/ the
# files of the Helm chart and the table of rights in docs/profiles.md.
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
	find charts/ambit/files charts/ambit/crds -name '*.yaml'
	echo docs/profiles.md
	exit
fi

bin/tools/controller-gen object paths=./api/...
bin/tools/controller-gen crd paths=./api/... output:crd:dir=config/crd

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for profile in cluster delegated namespaced; do
	bin/tools/kustomize build config/$profile >"$built/$profile.yaml"
done
bin/tools/kustomize build config/rbac/people >"$built/people.yaml"

# Emptied first, so that nothing stays that is not written any more.
rm -rf charts/ambit/files charts/ambit/crds
mkdir -p charts/ambit/files charts/ambit/crds

go run ./hack/profiles chart "$built" charts/ambit
go run ./hack/profiles rights "$built" docs/profiles.md
cp config/crd/*_*.yaml charts/ambit/crds/
