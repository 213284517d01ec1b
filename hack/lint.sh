#!/bin/sh
# Runs the linters in every module that has code of its own.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)

failed=0
for module in $(hack/modules.sh); do
	case $module in
	./tools) continue ;; # only a list of versions
	esac
	# The flags with which Kubernetes itself was built, so that its packages come from the build cache: compiling them
	# again takes minutes.
	flags=
	if [ "$module" = ./devcluster ]; then
		flags=-trimpath
	fi
	echo "golangci-lint in $module (the first time compiles what the module needs, which takes minutes)..."
	(cd "$module" && GOFLAGS="$flags" "$root/bin/tools/golangci-lint" run --config "$root/.golangci.yml" ./...) || failed=1
done
exit $failed
