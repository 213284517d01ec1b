package charts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestUnsetValuesAreRefusedOrTheDefault: null takes a value away from the chart, with --set and as an empty line of a file. What
// then is not as without it is refused by name, lest the guard be gone without a word.
func TestUnsetValuesAreRefusedOrTheDefault(t *testing.T) {
	presets, schema := decoded(t, "ambit/values.yaml"), decoded(t, "ambit/values.schema.json")
	// Off is their default, and everything below them shows with them alone.
	switches := []string{
		"metrics/service/enabled", "metrics/serviceMonitor/enabled", "metrics/rules/enabled", "metrics/dashboard/enabled",
		"networkPolicy/enabled", "podDisruptionBudget/enabled", "flowSchema/enabled", "flowSchema/priorityLevel/create",
	}
	on, without := map[string]any{"flowSchema/priorityLevel/name": "ambit"}, map[string]any{}

	for _, s := range switches {
		on[s] = true
	}

	var refused []string

	for path, isRequired := range required(presets, schema) {
		switch {
		case isRequired:
			refused = append(refused, path)
		case !slices.Contains(switches, path):
			without[path] = nil
		}
	}

	for _, path := range refused {
		if out, err := withValues(t, map[string]any{path: nil}); err == nil || !strings.Contains(out, "'"+filepath.Base(path)+"'") {
			t.Errorf("without a value for %s, Helm says (%v): %s", path, err, out)
		}
	}

	maps.Copy(without, on)

	off := map[string]any{}
	for _, s := range switches {
		off[s] = nil
	}

	for _, values := range []struct{ unset, set map[string]any }{{without, on}, {off, nil}} {
		got, err := withValues(t, values.unset)
		if err != nil {
			t.Errorf("with %v: %v\n%s", values.unset, err, got)
		}

		if want, _ := withValues(t, values.set); got != want {
			t.Errorf("%v renders something else than the defaults", values.unset)
		}
	}
}

// required are the values that the chart has, except labels and the like, which null takes away one by one, and whether the
// schema requires them.
func required(presets, schema map[string]any) map[string]bool {
	out := map[string]bool{}

	for name, preset := range presets {
		known, _ := at(schema, "properties/"+name).(map[string]any)
		names, _ := schema["required"].([]any)

		if preset == nil || name == "resources" || name == "labels" {
			continue
		}

		out[name] = slices.Contains(names, any(name))

		below, _ := preset.(map[string]any)
		for path, isRequired := range required(below, known) {
			out[name+"/"+path] = isRequired
		}
	}

	return out
}

func decoded(t *testing.T, file string) map[string]any {
	t.Helper()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var out map[string]any
	if err := yaml.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}

	return out
}

// withValues renders the chart with a file of values, given by their paths.
func withValues(t *testing.T, values map[string]any) (string, error) {
	t.Helper()

	tree := map[string]any{}

	for path, value := range values {
		here, fields := tree, strings.Split(path, "/")
		for _, field := range fields[:len(fields)-1] {
			below, is := here[field].(map[string]any)
			if !is {
				below = map[string]any{}
				here[field] = below
			}

			here = below
		}

		if _, is := here[fields[len(fields)-1]]; !is || value != nil {
			here[fields[len(fields)-1]] = value
		}
	}

	content, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}

	return run(t, "helm", "template", "ambit", "ambit", "--namespace", "elsewhere", "--kube-version", "1.36", "--values", file)
}
