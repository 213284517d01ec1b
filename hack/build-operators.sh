#!/bin/sh
# Builds the operators of test/operators/modules into bin/operators, as their authors would: with the go.mod, the go.sum and the
# replacements that their module ships. The Go module proxy is all that is asked.
#
# Usage: build-operators.sh [NAME]...    all of them without a NAME
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
mkdir -p bin/operators

# A module that was published is built with what is here, also where its go.sum lacks a module that is in its own repository.
export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0

source=
trap '[ -z "$source" ] || rm -rf "$source"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build() { # NAME MODULE VERSION PACKAGE
	program=$root/bin/operators/$1@$3
	[ ! -e "$program" ] || return 0

	echo "Building $1 $3; the first time takes some minutes..."
	started=$(date +%s)
	module=$(cd / && go mod download -json "$2@$3" | sed -nE 's/^\t"Dir": "(.*)",$/\1/p')
	source=$(mktemp -d)
	cp -R "$module/." "$source"
	chmod -R u+w "$source"
	(
		cd "$source"
		# Folders of the repository that are modules of their own are not part of this one. They are published with the versions
		# that it requires.
		for local in $(sed -nE 's/^(replace)?[[:space:]]*([^[:space:]]+)( v[^[:space:]]+)? => \.\.?\/.*/\2/p' go.mod); do
			go mod edit -dropreplace="$local"
		done
		go build -trimpath -ldflags='-s -w' -o "$program" "$4"
	)
	rm -rf "$source"
	source=
	echo "Built $1 in $(($(date +%s) - started))s"
}

# Not in a pipe: a failure has to end the script.
while read -r name module version package; do
	case $name in
	'' | '#'*) continue ;;
	esac
	case " ${*:-$name} " in
	*" $name "*) build "$name" "$module" "$version" "$package" ;;
	esac
done <test/operators/modules
