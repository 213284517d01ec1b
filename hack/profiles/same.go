package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// compare returns an error that names every object which only one of two files holds, or which they hold differently. The
// order does not matter.
func compare(want, got string) error {
	wanted, err := byKey(want)
	if err != nil {
		return err
	}

	found, err := byKey(got)
	if err != nil {
		return err
	}

	var problems []error

	for k, w := range wanted {
		g, there := found[k]

		switch {
		case !there:
			problems = append(problems, fmt.Errorf("%s is missing", k))
		case !reflect.DeepEqual(w, g):
			problems = append(problems, fmt.Errorf("%s differs: %s", k, difference(w, g)))
		}
	}

	for k := range found {
		if _, there := wanted[k]; !there {
			problems = append(problems, fmt.Errorf("%s is there and should not be", k))
		}
	}

	return errors.Join(problems...)
}

// byKey returns the objects of a file except for the Namespace, which Helm makes.
func byKey(path string) (map[key]map[string]any, error) {
	objects, err := readObjects(path)
	if err != nil {
		return nil, err
	}

	out := map[key]map[string]any{}

	for _, o := range objects {
		if o.kind == "Namespace" {
			continue
		}

		if _, twice := out[o.key]; twice {
			return nil, fmt.Errorf("%s is twice in %s", o.key, path)
		}

		out[o.key] = o.content
	}

	return out, nil
}

// difference is the first line in which two objects differ, both written in the same way.
func difference(want, got map[string]any) string {
	wanted, found := lines(want), lines(got)

	for i := range max(len(wanted), len(found)) {
		if w, g := at(wanted, i), at(found, i); w != g {
			return fmt.Sprintf("line %d: want %q, got %q", i+1, w, g)
		}
	}

	return "in what YAML does not show"
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}

	return ""
}

func lines(content map[string]any) []string {
	raw, err := yaml.Marshal(content)
	if err != nil {
		return []string{err.Error()}
	}

	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}
