#!/bin/sh
# Writes versions/MINOR.mod and versions/MINOR.sum: the modules of another minor version of Kubernetes than that of go.mod,
# with which build-k8s.sh builds it. Run it to take a newer patch, or another minor; the two files are committed.
#
# Usage: pin-k8s.sh VERSION, such as v1.35.4
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 VERSION" >&2
	exit 2
fi
version=$1
staging=v0.${version#v1.}
minor=${version#v}
minor=${minor%.*}
cd "$(dirname "$0")/.."

mod=versions/$minor.mod
mkdir -p versions
# Only what cmd/kubernetes and cmd/kubectl ask for directly: the versions of the rest belong to the Kubernetes of go.mod, and
# newer ones than a Kubernetes was built with need not fit it. kwok is a client and stays what it is, so its module is left out.
awk '!/indirect/ && !/sigs.k8s.io\/kwok/' go.mod |
	sed -E -e "s#(k8s.io/kubernetes) v[0-9.]+#\1 $version#" \
		-e "/=> /s#(k8s.io/[a-z-]+) v0[.0-9]+#\1 $staging#" \
		-e "/=> /!s#(k8s.io/(client-go|component-base|kubectl)) v0[.0-9]+#\1 $staging#" >"$mod"
rm -f "versions/$minor.sum"

# A module that the older Kubernetes does not have yet cannot be replaced by one of its version.
for module in $(sed -nE 's#^\t(k8s.io/[a-z-]+) => .*#\1#p' "$mod"); do
	go mod download -modfile="$mod" "$module@$staging" >/dev/null 2>&1 || go mod edit -dropreplace="$module" "$mod"
done
# Not go mod tidy, which would ask for what kwok needs.
go list -mod=mod -modfile="$mod" -deps ./cmd/kubernetes ./cmd/kubectl >/dev/null
echo "Wrote devcluster/$mod"
