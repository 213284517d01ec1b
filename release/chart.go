package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"
)

// What Helm calls the parts of a chart in a registry.
const (
	chartConfigType  = "application/vnd.cncf.helm.config.v1+json"
	chartContentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartLayout      = "oci/chart"
)

// fields are the lines of the chart that a release fills in; everything else of it is what is in the repository.
type fields map[string]*regexp.Regexp

//nolint:gochecknoglobals // Compiled once.
var chartFields = map[string]fields{
	"Chart.yaml": {
		version:      regexp.MustCompile(`(?m)^(version: ).*$`),
		"appVersion": regexp.MustCompile(`(?m)^(appVersion: ).*$`),
	},
	"values.yaml": {
		"repository": regexp.MustCompile(`(?m)^(  repository: ).*$`),
		"digest":     regexp.MustCompile(`(?m)^(  digest: ).*$`),
	},
}

// writeChart writes the chart as a file and as an artifact for a registry, and returns the artifact's digest.
func writeChart(r *Release, image *builtImage) (string, error) {
	filled := map[string]string{
		version: r.number(), "appVersion": r.Version, "repository": r.image(), "digest": image.digest.String(),
	}

	files, err := chartFiles(filepath.Join(r.Root, "charts", ambit), filled)
	if err != nil {
		return "", err
	}

	// Helm's own packages carry the time at which they were made.
	content, err := r.pack("ambit-chart", files)
	if err != nil {
		return "", err
	}

	config, err := yaml.YAMLToJSON(files[0].content)
	if err != nil {
		return "", fmt.Errorf("reading Chart.yaml: %w", err)
	}

	made, err := newArtifact(chartConfigType, chartContentType, config, content, r.labels(ambit, description))
	if err != nil {
		return "", err
	}

	return writeArtifact(r, chartLayout, made, r.Registry+"/charts/ambit:"+r.number())
}

// chartFiles reads the chart, in the order of its paths. Helm wants Chart.yaml before everything else.
func chartFiles(root string, filled map[string]string) ([]file, error) {
	var first, rest []file

	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err //nolint:wrapcheck // Wrapped below.
		}

		if content, err = fill(content, name, filled); err != nil {
			return err
		}

		f := file{path.Join(ambit, name), 0o644, content}
		if name == "Chart.yaml" {
			first = append(first, f)
		} else {
			rest = append(rest, f)
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}

	if first == nil {
		return nil, errors.New("the chart has no Chart.yaml")
	}

	return append(first, rest...), nil
}

func fill(content []byte, name string, filled map[string]string) ([]byte, error) {
	for field, line := range chartFields[name] {
		if found := line.FindAll(content, -1); len(found) != 1 {
			return nil, fmt.Errorf("%s has %d lines %s, want one", name, len(found), field)
		}

		content = line.ReplaceAll(content, []byte("${1}\""+filled[field]+"\""))
	}

	return content, nil
}
