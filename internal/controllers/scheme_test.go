package controllers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/controllers"
)

// TestSchemeKnowsEveryKind: Ambit's kinds and OLM's are in one group and version, and one set must not hide the other.
func TestSchemeKnowsEveryKind(t *testing.T) {
	t.Parallel()

	s, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	for version, kinds := range map[string][]string{
		"v1": {"OperatorGroup"},
		"v1alpha1": {
			"ScopeTemplate", "ScopeInstance", "ClusterServiceVersion", "Subscription", "InstallPlan", "CatalogSource",
		},
	} {
		for _, kind := range kinds {
			for _, name := range []string{kind, kind + "List"} {
				if of := (schema.GroupVersion{Group: "operators.coreos.com", Version: version}); !s.Recognizes(of.WithKind(name)) {
					t.Errorf("the scheme does not know %s %s", of, name)
				}
			}
		}
	}
}
