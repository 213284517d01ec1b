package docs_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAnotherProfileLeavesNothing holds docs/install.md against config: with kubectl, whoever changes the profile removes by hand
// what the new one does not have, so the page names every folder of the others and of the components.
func TestAnotherProfileLeavesNothing(t *testing.T) {
	t.Parallel()

	profiles := []string{"cluster", "delegated", "namespaced"}
	has, everything := map[string]map[string]bool{}, map[string]bool{}

	for _, profile := range profiles {
		has[profile] = map[string]bool{}
		addFolders(t, "config/"+profile, has[profile])
		maps.Copy(everything, has[profile])
	}

	components, err := filepath.Glob(filepath.Join(root, "config/components/*"))
	if err != nil {
		t.Fatal(err)
	}

	for _, component := range components {
		addFolders(t, "config/components/"+filepath.Base(component), everything)
	}

	text, err := os.ReadFile("install.md")
	if err != nil {
		t.Fatal(err)
	}

	_, section, _ := strings.Cut(string(text), "\n## Another profile\n")
	section, _, _ = strings.Cut(section, "\n## ")

	for _, profile := range profiles {
		_, row, found := strings.Cut(section, "\n| `"+profile+"` |")
		if !found {
			t.Fatalf("docs/install.md does not say what to remove after a change to %s", profile)
		}

		row, _, _ = strings.Cut(row, "\n")
		names := regexp.MustCompile("`(config/[^`]+)`").FindAllStringSubmatch(row, -1)

		for folder := range everything {
			named := slices.ContainsFunc(names, func(name []string) bool { return name[1] == folder })
			if named == has[profile][folder] {
				t.Errorf("a change to %s: docs/install.md says to remove %s: %t; the profile has it: %t", profile, folder, named, named)
			}
		}
	}
}

// addFolders adds the folders with rights and with policies of which a kustomization is made.
func addFolders(t *testing.T, folder string, to map[string]bool) {
	t.Helper()

	raw, err := os.ReadFile(filepath.Join(root, folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var kustomization struct {
		Resources []string `json:"resources"`
	}

	if err := yaml.Unmarshal(raw, &kustomization); err != nil {
		t.Fatal(err)
	}

	for _, resource := range kustomization.Resources {
		below := path.Join(folder, resource)

		switch {
		case strings.HasSuffix(resource, ".yaml"):
			if strings.HasPrefix(folder, "config/rbac/") || strings.HasPrefix(folder, "config/guard/") {
				to[folder] = true
			}
		default:
			addFolders(t, below, to)
		}
	}
}
