#!/bin/sh
# Prints the folder of every Go module of the repository, one on a line.
set -eu

cd "$(dirname "$0")/.."

find . -name go.mod ! -path './bin/*' ! -path '*/testdata/*' | sed 's|/go.mod$||' | sort
