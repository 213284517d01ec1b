#!/bin/sh
# Builds the Kubernetes programs from the Go modules in devcluster/go.mod.
#
# Usage: build-k8s.sh OUTPUT_DIR [MINOR]
#
# With a MINOR, such as 1.35, it is the version of versions/MINOR.mod (hack/pin-k8s.sh), with the kwok that is built already.
#
# The first build compiles some two thousand packages and looks hung unless it
# says otherwise, so a line every 20 seconds tells how far it is. Programs
# appear in OUTPUT_DIR only once all of them are built.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: $0 OUTPUT_DIR [MINOR]" >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

modules=go.mod
programs="kubernetes kubectl kwok"
if [ $# -eq 2 ]; then
	modules=versions/$2.mod
	programs="kubernetes kubectl"
	if [ ! -e "$modules" ]; then
		echo "There is no devcluster/$modules; hack/pin-k8s.sh v$2.PATCH writes it." >&2
		exit 2
	fi
fi
packages=
for program in $programs; do
	packages="$packages ./cmd/$program"
done

export CGO_ENABLED=0 # no C compiler needed, and no C library at run time

started=$(date +%s)
new=$(mktemp -d "$out/.new.XXXXXX")
log=$new/build.log
compiler=
trap 'if [ -n "$compiler" ]; then kill "$compiler" 2>/dev/null || true; fi; rm -rf "$new"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "Building Kubernetes from source; the first time takes four to six minutes on two cores..."

go mod download -modfile="$modules"

# Clients parse the version of the server and refuse one they cannot parse.
# Upstream's build sets it through the linker, and go.mod says which it is.
kubernetes=$(go list -m -modfile="$modules" -f '{{.Version}}' k8s.io/kubernetes)
kwok=$(go list -m -f '{{.Version}}' sigs.k8s.io/kwok)
major=${kubernetes#v}
major=${major%%.*}
minor=${kubernetes#v*.}
minor=${minor%%.*}
ldflags="-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=$kwok"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags="$ldflags -X $package.gitVersion=$kubernetes -X $package.gitMajor=$major"
	ldflags="$ldflags -X $package.gitMinor=$minor -X $package.gitCommit=unknown"
done

# shellcheck disable=SC2086 # A list of packages.
total=$(go list -modfile="$modules" -deps $packages | wc -l | tr -d ' ')
# shellcheck disable=SC2086
go build -mod=readonly -modfile="$modules" -v -trimpath -ldflags "$ldflags" -o "$new/" $packages 2>"$log" &
compiler=$!
ticks=0
while kill -0 "$compiler" 2>/dev/null; do
	sleep 1
	ticks=$((ticks + 1))
	if [ $((ticks % 20)) -eq 0 ]; then
		echo "  ... $(($(date +%s) - started))s, compiled $(wc -l <"$log" | tr -d ' ') packages of at most $total"
	fi
done
if ! wait "$compiler"; then
	compiler=
	cat "$log" >&2
	echo "Building Kubernetes failed; the messages of the compiler are above." >&2
	exit 1
fi
compiler=

for program in $programs; do
	mv -f "$new/$program" "$out/"
done
for program in etcd kube-apiserver kube-controller-manager kube-scheduler; do
	ln -sf kubernetes "$out/$program"
done
echo "Built Kubernetes $kubernetes in $(($(date +%s) - started))s: $out"
