package main

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOwnRightsAreNotProjected: a scope of the legacy group projects every account of its namespace, which may be Ambit's. What
// Ambit needs there, such as its lease and the key of its names, is of no use in a member, and no owner should have to grant it.
func TestOwnRightsAreNotProjected(t *testing.T) {
	t.Parallel()

	paths, err := filepath.Glob(filepath.Join(files, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	bindings := 0

	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			t.Fatal(err)
		}

		for i := range objects {
			if objects[i].kind != "RoleBinding" {
				continue
			}

			bindings++

			obj := unstructured.Unstructured{Object: objects[i].content}
			if obj.GetAnnotations()[scope.AnnotationProject] != scope.ProjectDisabled {
				t.Errorf("%s: %s would be projected", path, objects[i].key)
			}
		}
	}

	if bindings == 0 {
		t.Error("there is no RoleBinding in the profiles, which cannot be")
	}
}
