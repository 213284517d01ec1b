package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// plugin is the program of a platform, for krew.
type plugin struct {
	platform                 Platform
	archive, sha256, program string
}

// download is where a file of the release is published.
func (r *Release) download(name string) string {
	return homepage + "/releases/download/" + r.Version + "/" + name
}

// writeKrew writes the manifest by which kubectl krew installs the plugin.
func writeKrew(r *Release, plugins []plugin) error {
	platforms := make([]map[string]any, 0, len(plugins))
	for _, p := range plugins {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": p.platform.OS, "arch": p.platform.Arch}},
			"uri":      r.download(p.archive),
			"sha256":   p.sha256,
			"bin":      p.program,
		})
	}

	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": ambit},
		"spec": map[string]any{
			version:            r.Version,
			"homepage":         homepage,
			"shortDescription": "Shows and changes where operators work",
			"description": "Says what a change of an operator's scope would do, why an account may do what it may, and what\n" +
				"is missing; lets an owner authorize an operator in a namespace, and take it back. It uses your own\n" +
				"rights, and helps with or without Ambit in the cluster.\n",
			"platforms": platforms,
		},
	})
	if err != nil {
		return fmt.Errorf("writing the manifest for krew: %w", err)
	}

	return r.write("krew-ambit.yaml", content)
}
