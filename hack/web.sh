#!/bin/sh
# Builds the page of ambit serve from web/ into internal/page/static, which is checked in: Go alone builds Ambit.
#
# Usage: web.sh [--check]
#
# With --check it writes nothing, fails if what is checked in differs from what is built, and says so and passes where there is no
# node to build it with.
set -eu

cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
	echo "There is no node here, so internal/page/static cannot be built from web/." >&2
	[ "${1:-}" = --check ] || exit 1
	echo "SKIPPED: whether internal/page/static is what web/ builds was not checked." >&2
	exit 0
fi

# What npm fetches stays out of the sources, where other checks would walk through it.
modules=$(pwd)/bin/web
if ! cmp -s web/package-lock.json "$modules/package-lock.json" || [ ! -e "$modules/.installed" ]; then
	mkdir -p "$modules"
	rm -f "$modules/.installed"
	cp web/package.json web/package-lock.json "$modules/"
	(cd "$modules" && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error)
	touch "$modules/.installed"
fi

out=internal/page/static
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$modules/node_modules/.bin/tsc" -p web/tsconfig.json
"$modules/node_modules/.bin/esbuild" web/src/main.ts --bundle --format=esm --target=es2022 --charset=ascii --minify-syntax \
	--minify-whitespace --outfile="$built/app.js" --log-level=warning
cp web/src/index.html web/src/app.css web/src/icon.svg "$built/"

if [ "${1:-}" = --check ]; then
	diff -r "$built" "$out" >/dev/null || {
		echo "internal/page/static is not what web/ builds; run hack/web.sh and commit it." >&2
		exit 1
	}
	exit 0
fi

rm -rf "$out"
mkdir -p "$out"
cp "$built"/* "$out/"
