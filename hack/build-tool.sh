#!/bin/sh
# Builds one of the tools that tools/go.mod pins.
#
# Usage: build-tool.sh OUTPUT PACKAGE
set -eu

if [ $# -ne 2 ]; then
	echo "usage: $0 OUTPUT PACKAGE" >&2
	exit 2
fi

echo "Building ${1##*/}; the first time takes a minute or a few..."
started=$(date +%s)
mkdir -p "$(dirname "$1")"
cd "$(dirname "$0")/../tools"
go build -mod=readonly -trimpath -o "$1" "$2"
touch "$1" # go leaves the file alone when nothing changed, and make would come back every time
echo "Built ${1##*/} in $(($(date +%s) - started))s"
