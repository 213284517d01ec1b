package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const separator = "\n---\n"

// object is an object of a file, as text and parsed.
type object struct {
	key

	text    string
	content map[string]any
}

// key identifies an object.
type key struct{ kind, namespace, name string }

func (k key) String() string {
	if k.namespace == "" {
		return k.kind + " " + k.name
	}

	return k.kind + " " + k.namespace + "/" + k.name
}

// profileObjects reads what kustomize built of a profile.
func profileObjects(built, profile string) ([]object, error) {
	return readObjects(filepath.Join(built, profile+".yaml"))
}

func readObjects(path string) ([]object, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // Whoever runs it says which file.
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}

	var out []object

	for text := range strings.SplitSeq("\n"+string(raw), separator) {
		o := object{text: strings.TrimSpace(text) + "\n"}
		if err := yaml.Unmarshal([]byte(text), &o.content); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}

		if len(o.content) == 0 {
			continue
		}

		o.kind, _ = o.content["kind"].(string)
		metadata, _ := o.content["metadata"].(map[string]any)
		o.name, _ = metadata["name"].(string)
		o.namespace, _ = metadata["namespace"].(string)

		if o.kind == "" || o.name == "" {
			return nil, fmt.Errorf("reading %s: an object without kind or name: %s", path, o.text)
		}

		out = append(out, o)
	}

	return out, nil
}
