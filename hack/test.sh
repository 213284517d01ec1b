#!/bin/sh
# Runs the tests of the main module on an embedded Kubernetes that is started for them and always taken down again.
#
# Usage: test.sh [FLAG FOR GO TEST]...
#
# bin/ambit, bin/devcluster and bin/k8s must be there; make test builds them.
set -eu

cd "$(dirname "$0")/.."

dir=$(mktemp -d)

# EXIT runs after an error, at the end, and after the signals below, so the cluster never stays behind.
finish() {
	code=$?
	trap - EXIT
	trap '' INT TERM HUP # a second Ctrl-C must not leave half of it running
	bin/devcluster down --dir "$dir" >/dev/null || true
	if [ $code -ge 128 ]; then
		echo "Interrupted; the cluster is stopped." >&2
	elif [ $code -ne 0 ]; then
		rm -rf bin/test-logs
		mkdir -p bin/test-logs
		cp -r "$dir/logs/." bin/test-logs/ 2>/dev/null || true
		echo "The tests failed. The logs of the cluster are in bin/test-logs." >&2
	fi
	rm -rf "$dir"
	exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

echo "Starting an embedded Kubernetes..."
bin/devcluster up --dir "$dir" >/dev/null

KUBECONFIG_TEST=$dir/kubeconfig
export KUBECONFIG_TEST
AMBIT_TEST_PROGRAM=$PWD/bin/ambit
export AMBIT_TEST_PROGRAM
# What kubectl knows of the clusters' kinds is for these tests alone, and is asked for once, not by each of a thousand commands.
KUBECACHEDIR=$dir/kubectl
export KUBECACHEDIR
unset KUBECONFIG # no test may reach the cluster of whoever runs them

echo "Running the tests..."
code=0
# The linters vet the code. Vetting here, too, would begin with every dependency, which takes minutes on a fresh machine.
run() {
	go test -vet=off -timeout 20m "$@"
}
# shellcheck disable=SC2046 # Package paths have no spaces.
run "$@" $(go list ./... | grep -v '/ambit/test/') || code=$?

# What the packages in test/ find is waited for, and each has clusters of its own, so none meets what another one installed. Two
# at a time keep two cores busy where one would wait for leases and pods. Those that measure how long something takes get the
# machine one after the other.
bin/devcluster down --dir "$dir" >/dev/null || true
unset KUBECONFIG_TEST
# test/profiles runs the tests of test/namespacescope under each profile. It does not hand on flags, such as those that choose
# tests, so with flags that package runs by itself. test/operators is for make test-operators: what it runs takes long to build.
covered='/test/operators$'
[ $# -gt 0 ] || covered='/test/(namespacescope|operators)$'
measuring='/test/(attacks|fairness|finishing|live)$'
# shellcheck disable=SC2046
run -p 1 "$@" $(go list ./test/... | grep -E "$measuring") || code=$?
# shellcheck disable=SC2046
run -p 2 "$@" $(go list ./test/... | grep -vE "$covered|$measuring") || code=$?
(cd release && run "$@" ./...) || code=$?
# The page in a real browser is a module of its own, so that what drives the browser stays out of Ambit's go.mod.
(cd test/page && run "$@" ./...) || code=$?
exit $code
