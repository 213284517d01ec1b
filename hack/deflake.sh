#!/bin/sh
# Runs tests again and again on a busy machine, and stops at the first failure: what a user's machine shows once in twenty runs is
# seen before.
#
# Usage: deflake.sh N [PACKAGE [FLAG OF A TEST BINARY]...]
#
#	hack/deflake.sh 20                                        # make test, twenty times
#	LOAD=2 hack/deflake.sh 20 ./test/delegates -test.run=TestConsent
#
# LOAD is how many processes compute beside the tests of a package, 1 if it is not set. What each run printed is in bin/deflake.
set -eu

case ${1-} in
'' | *[!0-9]*)
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0" >&2
	exit 2
	;;
esac

runs=$1
shift
cd "$(dirname "$0")/.."
logs=$PWD/bin/deflake
rm -rf "$logs"
mkdir -p "$logs"

beside=
finish() {
	for process in $beside; do
		kill "$process" 2>/dev/null || true
	done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ $# -gt 0 ]; then
	package=$1
	shift
	CGO_ENABLED=${CGO_ENABLED-0} go test -vet=off -c -o "$logs/tests" "$package"
	AMBIT_TEST_PROGRAM=$PWD/bin/ambit
	KUBECACHEDIR=$logs/kubectl
	export AMBIT_TEST_PROGRAM KUBECACHEDIR
	unset KUBECONFIG
	for _ in $(seq "${LOAD:-1}"); do
		while :; do :; done &
		beside="$beside $!"
	done
fi

for run in $(seq "$runs"); do
	began=$(date +%s)
	code=0
	if [ -e "$logs/tests" ]; then
		(cd "$package" && "$logs/tests" -test.timeout=30m "$@") >"$logs/$run.log" 2>&1 || code=$?
	else
		# Nothing that an earlier run found counts.
		GOFLAGS="${GOFLAGS-} -count=1" make test >"$logs/$run.log" 2>&1 || code=$?
	fi
	if [ $code -ne 0 ]; then
		echo "run $run of $runs failed after $(($(date +%s) - began)) s:"
		grep -E -A12 -e '^ *--- FAIL|^panic:' "$logs/$run.log" || tail -n 20 "$logs/$run.log"
		echo "The whole of it is in $logs/$run.log."
		exit 1
	fi
	echo "run $run of $runs passed in $(($(date +%s) - began)) s"
done
