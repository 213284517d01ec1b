#!/bin/sh
# Runs the tests of hack/kubernetes-tests on a minor version of Kubernetes, and notes in docs/support.md that they passed.
#
# Usage: test-kubernetes.sh MINOR, such as 1.35
#
# bin/devcluster, bin/ambit and the programs of that version must be there; make test-kubernetes builds them.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 MINOR" >&2
	exit 2
fi
cd "$(dirname "$0")/.."

version_in() {
	sed -nE 's#^\tk8s.io/kubernetes (v[0-9.]+)$#\1#p' "$1"
}

if [ -e "devcluster/versions/$1.mod" ]; then
	version=$(version_in "devcluster/versions/$1.mod")
	AMBIT_KUBERNETES=$PWD/bin/k8s-$1
else
	version=$(version_in devcluster/go.mod)
	AMBIT_KUBERNETES=$PWD/bin/k8s
fi
case $version in
"v$1".*) ;;
*)
	pinned=$({
		basename -s .mod devcluster/versions/*.mod
		version_in devcluster/go.mod | sed -E 's/^v([0-9]+[.][0-9]+)[.].*/\1/'
	} | sort -u | paste -sd' ' -)
	echo "VERSION is $1, and has to be one of: $pinned. To pin another: devcluster/hack/pin-k8s.sh v1.MINOR.PATCH" >&2
	exit 2
	;;
esac
export AMBIT_KUBERNETES
unset KUBECONFIG KUBECONFIG_TEST # no test may reach another cluster

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "Running tests on Kubernetes $version..."
grep -v '^#' hack/kubernetes-tests | while read -r package pattern; do
	go test -count=1 -timeout 20m -v -run "$pattern" "$package" </dev/null >>"$log" 2>&1 || {
		cat "$log"
		exit 1
	}
	# A pattern that fits nothing would pass.
	go test -list "$pattern" "$package" </dev/null | grep -q '^Test' || {
		echo "$package has no test $pattern" >&2
		exit 1
	}
done

passed=$(grep -cE '^--- PASS: ' "$log")
line="| $version | $passed |"
{
	sed -n '1,/^<!-- Lines are written/p' docs/support.md
	printf '\n| Version | Tests that passed |\n|---|---|\n'
	{
		sed -n '/^<!-- Lines are written/,/^<!-- End of the lines/p' docs/support.md | grep -E '^\| v' | grep -vF "| v$1." || true
		echo "$line"
	} | sort -Vr
	sed -n '/^<!-- End of the lines/,$p' docs/support.md
} >"$log.md"
mv "$log.md" docs/support.md
echo "$passed tests passed on Kubernetes $version."
