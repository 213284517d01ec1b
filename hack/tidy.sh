#!/bin/sh
# Runs go mod tidy in every module.
#
# Usage: tidy.sh [-diff]
#
# With -diff it prints what would change, changes nothing, and fails if there is anything.
set -eu

cd "$(dirname "$0")/.."

failed=0
for module in $(hack/modules.sh); do
	if ! (cd "$module" && go mod tidy "$@"); then
		echo "go mod tidy: $module/go.mod is not what it should be." >&2
		failed=1
	fi
done
exit $failed
