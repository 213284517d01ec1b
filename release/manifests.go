package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// profiles are the folders of config that people install.
//
//nolint:gochecknoglobals // A table.
var profiles = []string{"namespaced", "delegated", "cluster"}

// besideOLM leaves out what OLM brings, in the words of config/components.
const besideOLM = "beside-olm"

// writeManifests writes for each profile one file to apply, which names the image by its digest.
func writeManifests(ctx context.Context, r *Release, image *builtImage) error {
	for _, profile := range profiles {
		for _, component := range []string{"", besideOLM} {
			content, err := manifestsOf(ctx, r, image, profile, component)
			if err != nil {
				return err
			}

			name := "install-" + profile
			if component != "" {
				name += "-" + component
			}

			head := fmt.Sprintf("# Ambit %s, profile %s.\n#\n#   kubectl apply --server-side -f %s.yaml\n", r.Version, profile, name)
			if err := r.write(name+".yaml", append([]byte(head), content...)); err != nil {
				return err
			}
		}
	}

	return writeDefinitions(r)
}

// writeDefinitions writes the CustomResourceDefinitions alone: Helm installs them once and never changes them.
func writeDefinitions(r *Release) error {
	for name, folder := range map[string]string{"crds": "charts/ambit/crds", "crds-olm": "charts/ambit/charts/olm-crds/crds"} {
		paths, err := filepath.Glob(filepath.Join(r.Root, folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			return fmt.Errorf("finding definitions in %s: %d, %w", folder, len(paths), err)
		}

		var content []byte

		for _, path := range paths {
			one, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("reading a definition: %w", err)
			}

			if !bytes.HasPrefix(one, []byte("---\n")) {
				content = append(content, "---\n"...)
			}

			content = append(content, one...)
		}

		if err := r.write(name+".yaml", content); err != nil {
			return err
		}
	}

	return nil
}

// A value that is on the line of its name; definitions have fields of that name, too.
var imageField = regexp.MustCompile(`(?m)^( +image: ).+$`)

// manifestsOf builds a profile with kustomize.
func manifestsOf(ctx context.Context, r *Release, image *builtImage, profile, component string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "ambit-release-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for kustomize: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // A folder of temporary files.

	// kustomize takes no absolute path.
	if err := os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(r.Root, "config"))); err != nil {
		return nil, fmt.Errorf("copying config: %w", err)
	}

	text := "resources: [config/" + profile + "]\n"
	if component != "" {
		text += "components: [config/components/" + component + "]\n"
	}

	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing a kustomization: %w", err)
	}

	content, err := r.output(ctx, r.Kustomize, "build", folder)
	if err != nil {
		return nil, err
	}

	// One container, and one that is taken for another image would be no release.
	if found := imageField.FindAllString(content, -1); len(found) != 1 {
		return nil, fmt.Errorf("%s has %d images, want one", profile, len(found))
	}

	return append(bytes.TrimSpace(imageField.ReplaceAll([]byte(content), []byte("${1}"+r.pinned(image)))), 0x0a), nil
}

// pinned names the image so that people can read the version, and nobody can put another one in its place.
func (r *Release) pinned(image *builtImage) string {
	return r.image() + ":" + r.Version + "@" + image.digest.String()
}
