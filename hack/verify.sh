#!/bin/sh
# Checks that everything generated is up to date and that the code passes the linters. All checks run, also after one
# failed; the exit code is 0 only if all passed.
#
# The generated files are compared with a copy taken before, not with what git has: it works the same in a clean clone
# and in the middle of a change. What was out of date is up to date afterwards.
set -eu

cd "$(dirname "$0")/.."

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=
check() { # NAME COMMAND...
	name=$1
	shift
	started=$(date +%s)
	echo "==> $name"
	if "$@"; then
		echo "    ok, $(($(date +%s) - started))s"
	else
		failed="$failed $name"
		echo "    FAILED, $(($(date +%s) - started))s" >&2
	fi
}

generated() {
	hack/generate.sh --list >"$before/list"
	while read -r file; do
		mkdir -p "$before/tree/$(dirname "$file")"
		cp "$file" "$before/tree/$file"
	done <"$before/list"
	hack/generate.sh || return 1
	hack/generate.sh --list >>"$before/list"
	different=0
	for file in $(sort -u "$before/list"); do
		old=$before/tree/$file
		new=$file
		[ -e "$old" ] || old=/dev/null
		[ -e "$new" ] || new=/dev/null
		git --no-pager diff --no-index -- "$old" "$new" || different=1
	done
	if [ $different -ne 0 ]; then
		echo "These files were out of date. They are written now; commit them." >&2
	fi
	return $different
}

formatted() {
	files=$(find . -name '*.go' ! -path './bin/*' -exec gofmt -l {} +)
	[ -z "$files" ] && return 0
	echo "gofmt -w would change:" >&2
	echo "$files" >&2
	return 1
}

shell_syntax() {
	bad=0
	for script in $(find . -path ./bin -prune -o -name '*.sh' -print) .ci/run; do
		case $(head -n 1 "$script") in
		*bash*) bash -n "$script" || bad=1 ;;
		*) sh -n "$script" || bad=1 ;;
		esac
	done
	return $bad
}

check generated-files generated
check chart hack/chart.sh
check page hack/web.sh --check
check workflows bin/tools/actionlint -shellcheck= -pyflakes=
check go-mod-tidy hack/tidy.sh -diff
check gofmt formatted
check shell-syntax shell_syntax
check go-vet go vet ./...
check lint hack/lint.sh

if [ -n "$failed" ]; then
	echo "make verify FAILED:$failed" >&2
	exit 1
fi
echo "make verify passed."
