#!/bin/sh
# Runs the linters in every module that has code of its own. make sets the flags with which everything is built, so that they find
# compiled packages, those of Kubernetes too; compiling them again takes minutes.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)

failed=0
for module in $(hack/modules.sh); do
	case $module in
	./tools) continue ;; # only a list of versions
	esac
	echo "golangci-lint in $module (the first time compiles what the module needs, which takes minutes)..."
	(cd "$module" && "$root/bin/tools/golangci-lint" run --config "$root/.golangci.yml" ./...) || failed=1
done
exit $failed
