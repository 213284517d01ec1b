package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// clone is a copy of the last commit in a folder of its own.
func clone(t *testing.T, folder string) string {
	t.Helper()

	to := filepath.Join(t.TempDir(), folder)
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "..", to).CombinedOutput(); err != nil {
		t.Fatalf("cloning the repository: %v\n%s", err, out)
	}

	return to
}

// releaseOf is a release of what is in a folder, into a folder of its own.
func releaseOf(t *testing.T, root, version, platforms string) *Release {
	t.Helper()

	s := settings{root: root, dist: t.TempDir(), version: version, registry: "registry.example/ambit", platforms: platforms}

	r, err := s.release(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}

	return r
}

func TestSameCommitGivesTheSameImage(t *testing.T) {
	var digests []string

	for _, folder := range []string{"here", "a/much/longer/path/elsewhere"} {
		r := releaseOf(t, clone(t, folder), "v0.2.0-rc.1", "linux/amd64")
		t.Setenv("GOFLAGS", "-buildvcs=auto -tags="+filepath.Base(folder))

		image, err := assemble(t.Context(), r, buildBinary)
		if err != nil {
			t.Fatal(err)
		}

		digests = append(digests, image.digest.String())
	}

	if digests[0] != digests[1] {
		t.Errorf("one commit gave two images, %s and %s", digests[0], digests[1])
	}
}

func TestImageHasTheProgramAndNothingElse(t *testing.T) {
	r := releaseOf(t, "..", "v0.2.0", "")
	r.Images = r.Images[:2]

	image := imageOfTexts(t, r)
	if err := writeImage(r, image); err != nil {
		t.Fatal(err)
	}

	index, err := layout.ImageIndexFromPath(r.path(imageLayout))
	if err != nil {
		t.Fatal(err)
	}

	if err := validate.Index(index); err != nil {
		t.Error("the layout is not valid:", err)
	}

	for _, p := range r.Images {
		tag, err := name.NewTag(r.image() + ":" + r.Version)
		if err != nil {
			t.Fatal(err)
		}

		loaded, err := tarball.ImageFromPath(r.path(r.dockerArchive(p.Arch)), &tag)
		if err != nil {
			t.Fatal(err)
		}

		checkImage(t, p, loaded)
		checkImage(t, p, image.platforms[p])
	}
}

// imageOfTexts is an image whose programs are short texts, for what does not depend on them.
func imageOfTexts(t *testing.T, r *Release) *builtImage {
	t.Helper()

	image, err := assemble(t.Context(), r, func(_ context.Context, _ *Release, p Platform) ([]byte, error) {
		return []byte("the program for " + p.String()), nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return image
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}(-dirty)?$`)

func checkImage(t *testing.T, p Platform, image v1.Image) {
	t.Helper()

	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}

	if config.OS != p.OS || config.Architecture != p.Arch || config.Config.User != "65532:65532" ||
		!slices.Equal(config.Config.Entrypoint, []string{"/ambit"}) {
		t.Errorf("the image for %s is configured as %+v", p, config)
	}

	if revision := config.Config.Labels["org.opencontainers.image.revision"]; !commit.MatchString(revision) {
		t.Errorf("the image for %s is of the commit %q", p, revision)
	}

	want := map[string]string{"ambit": "the program for " + p.String()}
	if files := unpack(t, image); !maps.Equal(files, want) {
		t.Errorf("the image for %s holds %q, want %q", p, files, want)
	}
}

func unpack(t *testing.T, image v1.Image) map[string]string {
	t.Helper()

	content := mutate.Extract(image)
	defer content.Close() //nolint:errcheck // It is read from memory.

	files := map[string]string{}

	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}

		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}

		if header.Mode != 0o755 || header.Uid != 0 {
			t.Errorf("%s belongs to %d with mode %o; whom it runs as must not be able to change it", header.Name, header.Uid, header.Mode)
		}

		files[header.Name] = string(text)
	}
}

func TestVersionsThatAreNone(t *testing.T) {
	wrong := []string{"", "0.2.0", "v0.2", "v0.2.0 -X main.x=y", "v00.2.0", "v0.2.0-", "latest", "v0.2.0+dirty", "v0.2.0\n"}
	for _, version := range wrong {
		s := settings{root: "..", version: version, registry: "r"}
		if _, err := s.release(t.Context()); err == nil {
			t.Errorf("the version %q was taken", version)
		}
	}
}
