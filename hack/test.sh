#!/bin/sh
# Runs the tests of the main module on embedded clusters that are started for them and always taken down again.
#
# Usage: test.sh [FLAG FOR GO TEST]...
#
# bin/ambit, bin/devcluster and bin/k8s must be there; make test builds them.
set -eu

cd "$(dirname "$0")/.."

dir=$(mktemp -d)

# How many packages run at a time. Each of test/ uses one cluster at a time, and of the others those that need any.
packages=4
# The cluster 0 is an API server without controllers, on which nothing but a test writes.
clusters="0 1 2 3 4"

# EXIT runs after an error, at the end, and after the signals below, so the clusters never stay behind.
finish() {
	code=$?
	trap - EXIT
	trap '' INT TERM HUP # a second Ctrl-C must not leave half of it running
	for n in $clusters; do
		bin/devcluster down --dir "$dir/clusters/$n" >/dev/null &
	done
	wait
	if [ $code -ge 128 ]; then
		echo "Interrupted; the clusters are stopped." >&2
	elif [ $code -ne 0 ]; then
		rm -rf bin/test-logs
		for n in $clusters; do
			mkdir -p "bin/test-logs/$n"
			# What failed once in many runs is explained by who asked for what, and when.
			cp -r "$dir/clusters/$n/logs/." "$dir/clusters/$n/audit.log" "bin/test-logs/$n/" 2>/dev/null || true
		done
		echo "The tests failed. The logs of the clusters are in bin/test-logs." >&2
	fi
	rm -rf "$dir"
	exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# start starts a cluster with the definitions of Ambit's kinds, which all tests want and which cost the API server more than
# anything else that is installed.
start() {
	controllers=true
	[ "$1" -ne 0 ] || controllers=false
	# The API server remembers two gigabytes of what test/bounds writes, and three where it has to share the processors with
	# others. With the usual limit for a cluster, it would do little but collect garbage, and answer nothing in time.
	GOMEMLIMIT=6GiB bin/devcluster up --dir "$dir/clusters/$1" --audit-log "$dir/clusters/$1/audit.log" \
		--controllers=$controllers >/dev/null
	bin/k8s/kubectl --kubeconfig "$dir/clusters/$1/kubeconfig" apply --server-side -k config/crd >/dev/null
	bin/devcluster save --dir "$dir/clusters/$1" >/dev/null
}

echo "Starting embedded clusters..."
mkdir "$dir/clusters"
starting=
for n in $clusters; do
	start "$n" &
	starting="$starting $!"
done
for pid in $starting; do
	wait "$pid"
done

AMBIT_TEST_PROGRAM=$PWD/bin/ambit
export AMBIT_TEST_PROGRAM
# What kubectl knows of the clusters' kinds is for these tests alone, and is asked for once, not by each of a thousand commands.
KUBECACHEDIR=$dir/kubectl
export KUBECACHEDIR
# Compilers, tests and a thousand commands have more memory than processors. Managers are started without this.
GOGC=400
export GOGC
unset KUBECONFIG # no test may reach the cluster of whoever runs them

code=0
# The linters vet the code. Vetting here, too, would begin with every dependency, which takes minutes on a fresh machine.
run() {
	go test -vet=off -timeout 40m "$@"
}

# packages lists those whose tests take a cluster (with) or need none (without), but for those that are run in another way.
packages() {
	go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk -v which="$1" -v covered="$covered" '
		$1 !~ covered && (/\/ambit\/test\/harness/ ? "with" : "without") == which { print $1 }'
}

# test/profiles runs the tests of test/namespacescope under each profile. It does not hand on flags, such as those that choose
# tests, so with flags that package runs by itself. test/operators is for make test-operators: what it runs takes long to build.
covered='/test/(operators|reconcile)$'
[ $# -gt 0 ] || covered='/test/(namespacescope|operators|reconcile)$'

# reconcile runs tests that want nothing but an API server, and then those that start clusters. envtest takes the API server that
# it is told of.
reconcile() (
	bad=0
	USE_EXISTING_CLUSTER=true
	KUBECONFIG=$dir/clusters/0/kubeconfig
	export USE_EXISTING_CLUSTER KUBECONFIG
	run "$@" ./test/reconcile || bad=$?
	for module in watchlist examples; do
		bin/devcluster reset --dir "$dir/clusters/0" >/dev/null
		(cd $module && run "$@" ./...) || bad=$?
	done
	unset USE_EXISTING_CLUSTER KUBECONFIG
	# What follows starts a cluster where none is free, and no more than five shall run at a time.
	bin/devcluster down --dir "$dir/clusters/0" >/dev/null
	# Starting clusters is the subject of these, which mostly wait for that.
	[ $# -gt 0 ] || make --no-print-directory devcluster-test || bad=$?
	# The page in a real browser is a module of its own, so that what drives the browser stays out of Ambit's go.mod.
	(cd test/page && run "$@" ./...) || bad=$?
	return $bad
)

# without runs tests that want no cluster.
without() (
	bad=0
	(cd release && run "$@" ./...) || bad=$?
	unset GOGC # Some of these measure memory.
	# shellcheck disable=SC2046 # Package paths have no spaces.
	run -p 1 "$@" $(packages without) || bad=$?
	return $bad
)

# Each package that takes a cluster of these has it to itself.
AMBIT_TEST_CLUSTERS=$dir/clusters
export AMBIT_TEST_CLUSTERS

echo "Running the tests..."
# All that these take is there at once, so that none of them is what is left at the end.
reconcile "$@" >"$dir/reconcile" 2>&1 &
lanes=$!
without "$@" >"$dir/without" 2>&1 &
lanes="$lanes $!"

# Packages begin in this order, those that take longest first, since whatever begins late is what the others are over before; and
# those that mostly wait (faults, slow, finishing) beside those that mostly compute, so that the processors are never idle.
first=
for package in faults profiles slow bounds finishing authorize cli release attacks guard delegates live installs injection narrow; do
	first="$first ./test/$package"
done
# shellcheck disable=SC2046,SC2086 # Package paths have no spaces.
run -p "$packages" "$@" $first $(packages with) || code=$?
for pid in $lanes; do
	wait "$pid" || code=$?
done
cat "$dir/reconcile" "$dir/without"
exit $code
