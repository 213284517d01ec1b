package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageLayout is the folder of the image in dist.
const imageLayout = "oci/image"

// user is whom the image runs as; the manifests say the same, because Kubernetes cannot check a name with runAsNonRoot.
const user = "65532:65532"

// builtImage is an image of several platforms.
type builtImage struct {
	index     v1.ImageIndex
	digest    v1.Hash
	platforms map[Platform]v1.Image
	binaries  map[Platform][]byte
}

// assemble makes the image of the programs that build returns.
func assemble(ctx context.Context, r *Release, build builder) (*builtImage, error) {
	built := &builtImage{
		index:     mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		platforms: map[Platform]v1.Image{},
		binaries:  map[Platform][]byte{},
	}
	labels := r.labels(ambit, description)

	for _, p := range r.Images {
		binary, err := build(ctx, r, p)
		if err != nil {
			return nil, err
		}

		// The program and nothing else: no shell, no package, no file that could be out of date.
		image, err := imageOf(r, p, v1.Config{User: user, Entrypoint: []string{"/ambit"}, WorkingDir: "/", Labels: labels}, labels,
			file{name: ambit, mode: 0o755, content: binary})
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", p, err)
		}

		built.binaries[p], built.platforms[p] = binary, image
		built.index = mutate.AppendManifests(built.index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
	}

	annotated, ok := mutate.Annotations(built.index, labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating an index gave a %T", annotated)
	}

	built.index = annotated

	var err error
	if built.digest, err = built.index.Digest(); err != nil {
		return nil, fmt.Errorf("computing the digest of the image: %w", err)
	}

	return built, nil
}

// imageOf has these files in one layer.
func imageOf(r *Release, p Platform, run v1.Config, annotations map[string]string, files ...file) (v1.Image, error) {
	content, err := tarOf(r.Created, files...)
	if err != nil {
		return nil, err
	}

	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)

	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.Created}, CreatedBy: "release image", Comment: r.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}

	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}

	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.OS, p.Arch, v1.Time{Time: r.Created}
	config.Config = run

	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}

	annotated, ok := mutate.Annotations(image, annotations).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotating an image gave a %T", annotated)
	}

	return annotated, nil
}

// writeImage writes the image as an OCI layout, and for each platform as an archive that docker load takes: that format knows
// no image of several.
func writeImage(r *Release, image *builtImage) error {
	if err := writeLayout(r, imageLayout, image.index, r.image()+":"+r.Version); err != nil {
		return err
	}

	for _, p := range r.Images {
		tag, err := name.NewTag(r.image()+":"+r.Version, name.WithDefaultRegistry(""))
		if err != nil {
			return fmt.Errorf("naming the image: %w", err)
		}

		if err := tarball.WriteToFile(r.path(r.dockerArchive(p.Arch)), tag, image.platforms[p]); err != nil {
			return fmt.Errorf("writing the archive for %s: %w", p, err)
		}
	}

	return nil
}

func (r *Release) dockerArchive(arch string) string {
	return "ambit_" + r.number() + "_image_linux_" + arch + ".docker.tar"
}

// writeArtifact writes one image that is not run into a folder of its own, and returns its digest.
func writeArtifact(r *Release, folder string, made v1.Image, ref string) (string, error) {
	digest, err := made.Digest()
	if err != nil {
		return "", fmt.Errorf("computing the digest of %s: %w", ref, err)
	}

	return digest.String(), writeLayout(r, folder, made, ref)
}

// writeLayout writes one image or index into a folder of its own.
func writeLayout(r *Release, folder string, content mutate.Appendable, ref string) error {
	path := r.path(folder)
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("emptying %s: %w", path, err)
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // It is published.
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}

	root := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add:        content,
		Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": ref}},
	})

	if _, err := layout.Write(path, root); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	return nil
}

// file is a file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarOf packs files that belong to root and changed when the commit was made.
func tarOf(at time.Time, files ...file) ([]byte, error) {
	var out bytes.Buffer

	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}

		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finishing an archive: %w", err)
	}

	return out.Bytes(), nil
}
