package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// ownWay are the kinds that a chart installs in its own way: definitions from its folder crds, the namespace by Helm, and the
// Deployment from a template, because it depends on values.
var ownWay = []string{"CustomResourceDefinition", "Namespace", "Deployment"}

// choices are the optional rights of profiles, and where they come from.
func choices() map[string]string {
	return map[string]string{
		"legacy-impersonation": "config/rbac/impersonate-legacy",
		"webhook-certificates": "config/rbac/impersonate-certificates",
		"namespaced-installs":  "config/rbac/namespaced-installs",
	}
}

// writeChart writes what the chart's templates take over unchanged: for each profile the account with its rights, and its guard,
// if it has one; and once what people may be bound to, and each choice.
func writeChart(built, chart string) error {
	dir := filepath.Join(chart, "files")
	people, err := profileObjects(built, "people")
	if err != nil {
		return err
	}

	if err := writeObjects(filepath.Join(dir, "people.yaml"), "config/rbac/people", people); err != nil {
		return err
	}

	for name, source := range choices() {
		objects, err := profileObjects(built, name)
		if err != nil {
			return err
		}

		if err := writeObjects(filepath.Join(dir, name+".yaml"), source, objects); err != nil {
			return err
		}
	}

	for _, profile := range names {
		objects, err := profileObjects(built, profile)
		if err != nil {
			return err
		}

		var rights, guard []object

		for _, o := range objects {
			switch {
			case slices.Contains(ownWay, o.kind):
			case slices.ContainsFunc(people, func(p object) bool { return p.key == o.key }):
			case strings.HasPrefix(o.kind, "ValidatingAdmissionPolicy"):
				guard = append(guard, o)
			default:
				rights = append(rights, o)
			}
		}

		if err := writeObjects(filepath.Join(dir, profile+".yaml"), "config/"+profile, rights); err != nil {
			return err
		}

		if err := writeObjects(filepath.Join(dir, profile+"-guard.yaml"), "config/"+profile, guard); err != nil {
			return err
		}
	}

	return nil
}

// writeObjects writes a file of objects; for no objects, it writes no file.
func writeObjects(path, source string, objects []object) error {
	if len(objects) == 0 {
		return nil
	}

	texts := collect.Map(objects, func(o object) string { return strings.TrimSuffix(o.text, "\n") })

	text := "# Generated from " + source + " by hack/generate.sh.\n" + strings.Join(texts, separator) + "\n"

	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // Like everything else in the repository.
		return fmt.Errorf("writing a part of the chart: %w", err)
	}

	return nil
}
