package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// folder is one that docs/install.md names.
var folder = regexp.MustCompile("`(config/(?:rbac|guard)/[a-z-]+)`")

// removed are the objects in the folders that docs/install.md has somebody delete who changes to a profile.
func removed(t *testing.T, profile string) map[key]struct{} {
	t.Helper()

	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}

	_, section, _ := strings.Cut(string(page), "## Another profile")
	_, rest, found := strings.Cut(section, "\n| `"+profile+"` | ")
	row, _, _ := strings.Cut(rest, "\n")

	if !found {
		t.Fatalf("docs/install.md does not say what to remove for the profile %s", profile)
	}

	out := map[key]struct{}{}
	if strings.HasPrefix(row, "the same") {
		out = removed(t, "delegated")
	}

	for _, match := range folder.FindAllStringSubmatch(row, -1) {
		paths, err := filepath.Glob(filepath.Join("../..", match[1], "*.yaml"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", match[1], len(paths), err)
		}

		for _, path := range paths {
			if filepath.Base(path) == "kustomization.yaml" {
				continue
			}

			objects, err := readObjects(path)
			if err != nil {
				t.Fatal(err)
			}

			for i := range objects {
				out[objects[i].key] = struct{}{}
			}
		}
	}

	return out
}

// TestChangeOfProfileLeavesNoRights holds the page to what the profiles have: who follows it keeps nothing in the whole cluster
// that the new profile does not have, and removes nothing that it has.
func TestChangeOfProfileLeavesNoRights(t *testing.T) {
	t.Parallel()

	kinds := []string{
		"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	of := func(profile string) map[key]struct{} {
		t.Helper()

		objects, err := profileObjects(files, profile)
		if err != nil {
			t.Fatal(err)
		}

		out := map[key]struct{}{}

		for i := range objects {
			if slices.Contains(kinds, objects[i].kind) {
				out[objects[i].key] = struct{}{}
			}
		}

		return out
	}

	for to, from := range map[string][]string{"delegated": {"cluster"}, "namespaced": {"cluster", "delegated"}} {
		gone, has := removed(t, to), of(to)

		for _, before := range from {
			for k := range of(before) {
				_, stays := has[k]
				if _, goes := gone[k]; goes == stays {
					t.Errorf("from %s to %s: %s is removed: %t, and the new profile has it: %t", before, to, k, goes, stays)
				}
			}
		}

		for k := range has {
			if _, goes := gone[k]; goes {
				t.Errorf("to %s: %s is removed, although the profile has it", to, k)
			}
		}
	}
}
