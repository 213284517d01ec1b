package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// runAll fills dist. The order is that of what depends on what: manifests and chart name the digest of the image, krew the
// digests of the archives, and checksums and provenance name everything.
func runAll(ctx context.Context, args []string, out io.Writer) error {
	r, err := releaseFrom(ctx, "release all", args)
	if err != nil {
		return err
	}

	return releaseAll(ctx, r, buildBinary, out)
}

// builder returns the program for a platform.
type builder func(context.Context, *Release, Platform) ([]byte, error)

func releaseAll(ctx context.Context, r *Release, build builder, out io.Writer) error {
	// First what is quick and may refuse.
	notes, err := releaseNotes(r)
	if err != nil {
		return err
	}

	if err := r.empty(); err != nil {
		return err
	}

	// Compiling takes minutes.
	told := func(ctx context.Context, r *Release, p Platform) ([]byte, error) {
		if err := say(out, "building %s for %s\n", ambit, p); err != nil {
			return nil, err
		}

		return build(ctx, r, p)
	}

	image, err := assemble(ctx, r, told)
	if err != nil {
		return err
	}

	if err := writeImage(r, image); err != nil {
		return err
	}

	binaries, err := writeBinaries(ctx, r, image, told)
	if err != nil {
		return err
	}

	if err := say(out, "writing manifests, chart, bundle, SBOM, checksums and provenance\n"); err != nil {
		return err
	}

	digests := map[string]string{r.image(): image.digest.String()}

	if err := writeInstallers(ctx, r, image, digests); err != nil {
		return err
	}

	if err := writeSBOM(r, image, binaries); err != nil {
		return err
	}

	if err := r.write("release-notes.md", notes); err != nil {
		return err
	}

	// What is pushed, by its digest: what the signing signs and an installation names.
	if err := r.write("digests.txt", []byte(lines(digests))); err != nil {
		return err
	}

	sums, err := writeChecksums(r)
	if err != nil {
		return err
	}

	if err := writeProvenance(ctx, r, sums, digests); err != nil {
		return err
	}

	return say(out, "%s\n%s%s is complete: %d files, %d platforms.\n", r.Version, lines(digests), r.Dist, len(sums), len(binaries))
}

// writeInstallers writes every way to install the image.
func writeInstallers(ctx context.Context, r *Release, image *builtImage, digests map[string]string) error {
	if err := writeManifests(ctx, r, image); err != nil {
		return err
	}

	chart, err := writeChart(r, image)
	if err != nil {
		return err
	}

	bundle, err := writeBundle(ctx, r, image)
	if err != nil {
		return err
	}

	digests[r.Registry+"/charts/ambit"], digests[r.Registry+"/ambit-bundle"] = chart, bundle

	return nil
}

// writeBinaries writes an archive for each platform and each name of the program, and the plugin's manifest for krew.
func writeBinaries(ctx context.Context, r *Release, image *builtImage, build builder) (map[Platform][]byte, error) {
	binaries := map[Platform][]byte{}

	var plugins []plugin

	licence, err := r.read("LICENSE")
	if err != nil {
		return nil, err
	}

	for _, p := range r.Binaries {
		binary, there := image.binaries[p]
		if !there {
			if binary, err = build(ctx, r, p); err != nil {
				return nil, err
			}
		}

		binaries[p] = binary

		for _, program := range []string{ambit, "kubectl-ambit"} {
			name, content, err := archive(r, p, program, binary, licence)
			if err != nil {
				return nil, err
			}

			if err := r.write(name, content); err != nil {
				return nil, err
			}

			if program == "kubectl-ambit" {
				plugins = append(plugins, plugin{platform: p, archive: name, sha256: sum(content), program: executable(p, program)})
			}
		}
	}

	return binaries, writeKrew(r, plugins)
}

func archive(r *Release, p Platform, program string, binary, licence []byte) (string, []byte, error) {
	name := fmt.Sprintf("%s_%s_%s_%s", program, r.number(), p.OS, p.Arch)
	files := []file{{executable(p, program), 0o755, binary}, {"LICENSE", 0o644, licence}}

	if p.OS == "windows" {
		content, err := zipped(r, files...)
		return name + ".zip", content, err
	}

	content, err := gzipped(r, files...)

	return name + ".tar.gz", content, err
}

func executable(p Platform, program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}

	return program
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)

	return hex.EncodeToString(digest[:])
}

// releasePage is how many characters GitHub takes for the notes of a release. It answers 422 to more, "body is too long", once
// everything else is published already.
const releasePage = 125_000

// fileLink is the target of a link in Markdown that names no scheme and no heading of the same page.
var fileLink = regexp.MustCompile(`\]\(([^):#]+(?:#[^)]*)?)\)`)

// releaseNotes are what the changelog says of a version. A version that is to stay needs a heading of its own; before that,
// what is not released yet is what people get.
func releaseNotes(r *Release) ([]byte, error) {
	changelog, err := r.read("CHANGELOG.md")
	if err != nil {
		return nil, err
	}

	heading := "## [" + r.number() + "]"

	_, section, found := strings.Cut(string(changelog), "\n"+heading)
	if !found && strings.Contains(r.Version, "-") {
		_, section, found = strings.Cut(string(changelog), "\n## [Unreleased]")
	}

	if !found {
		return nil, fmt.Errorf("CHANGELOG.md has no heading %q: put it below \"## [Unreleased]\", above what this version brings, and "+
			"commit that; or give the version a suffix, such as %s-rc.1, whose notes are what is unreleased", heading, r.Version)
	}

	_, section, _ = strings.Cut(section, "\n") // the date
	section, _, _ = strings.Cut(section, "\n## ")

	// A link to a file of the repository would lead nowhere from the page of a release.
	section = fileLink.ReplaceAllString(strings.TrimSpace(section), "]("+homepage+"/blob/"+r.Version+"/$1)")

	notes := "# Ambit " + r.Version + "\n\n" + section + "\n"
	if length := utf8.RuneCountInString(notes); length > releasePage {
		return nil, fmt.Errorf("the notes of %s have %d characters, and a release page takes %d: shorten CHANGELOG.md",
			r.Version, length, releasePage)
	}

	return []byte(notes), nil
}
