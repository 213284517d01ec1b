#!/bin/sh
# Writes what is generated from the API types: the deepcopy functions and the CustomResourceDefinitions.
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
	exit
fi

bin/tools/controller-gen object paths=./api/...
bin/tools/controller-gen crd paths=./api/... output:crd:dir=config/crd
