#!/bin/sh
# Builds one of the tools that tools/go.mod pins.
#
# Usage: build-tool.sh OUTPUT PACKAGE [FLAG]...
set -eu

if [ $# -lt 2 ]; then
	echo "usage: $0 OUTPUT PACKAGE [FLAG]..." >&2
	exit 2
fi

echo "Building ${1##*/}; the first time takes a minute or a few..."
started=$(date +%s)
mkdir -p "$(dirname "$1")"
cd "$(dirname "$0")/../tools"
output=$1
package=$2
shift 2
go build -mod=readonly "$@" -trimpath -o "$output" "$package"
touch "$output" # go leaves the file alone when nothing changed, and make would come back every time
echo "Built ${output##*/} in $(($(date +%s) - started))s"
