#!/bin/sh
# Publishes what make release wrote: pushes image, chart and bundle, signs and attests them, signs the checksums, and makes a
# release on GitHub of the files. Needs cosign, which takes its identity from the workflow (keyless), and gh.
#
# Usage: publish.sh RELEASE-PROGRAM DIST VERSION
#
# GH_TOKEN is for the registry, as REGISTRY_USER, and for gh.
set -eu

if [ $# -ne 3 ]; then
	echo "usage: $0 RELEASE-PROGRAM DIST VERSION" >&2
	exit 2
fi
release=$1
dist=$2
version=$3

if grep -q -e '-dirty' "$dist/oci/image/blobs/sha256/"* 2>/dev/null || [ -n "$(git status --porcelain)" ]; then
	echo "The files are not those of a commit; nothing is published." >&2
	exit 1
fi
if [ "$(git describe --tags --exact-match)" != "$version" ]; then
	echo "This commit is not tagged $version; nothing is published." >&2
	exit 1
fi
(cd "$dist" && sha256sum --check --quiet checksums.txt)

# $dist/digests.txt has a line NAME@DIGEST for each.
registry=$(head -n 1 "$dist/digests.txt" | cut -d / -f 1)
printf %s "$GH_TOKEN" | cosign login "$registry" --username "$REGISTRY_USER" --password-stdin

"$release" publish -dist "$dist"

while read -r subject; do
	cosign sign --yes "$subject"
	cosign attest --yes --type slsaprovenance1 --predicate "$dist/oci/provenance.json" "$subject"
	case $subject in
	*/ambit@*) cosign attest --yes --type spdxjson --predicate "$(ls "$dist"/*.spdx.json)" "$subject" ;;
	esac
done <"$dist/digests.txt"

# The checksums name every file, so one signature is enough for all.
cosign sign-blob --yes --bundle "$dist/checksums.txt.sigstore.json" "$dist/checksums.txt"
cosign attest-blob --yes --type slsaprovenance1 --predicate "$dist/oci/provenance.json" \
	--bundle "$dist/provenance.sigstore.json" "$dist/checksums.txt"

prerelease=
case $version in
*-*) prerelease=--prerelease ;;
esac
# shellcheck disable=SC2046,SC2086 # Names without spaces, and one flag or none.
gh release create "$version" --verify-tag $prerelease --title "Ambit $version" --notes-file "$dist/release-notes.md" \
	$(find "$dist" -maxdepth 1 -type f)
