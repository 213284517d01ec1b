package scope_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOwnerKey holds that the owner in an annotation leads to the key that its resource is reconciled with.
func TestOwnerKey(t *testing.T) {
	t.Parallel()

	name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`)

	rapid.Check(t, func(t *rapid.T) {
		namespace := name.Draw(t, "namespace")
		kind := rapid.SampledFrom([]string{scope.KindCSV, scope.KindGroup, "NamespaceScope", "ScopeTemplate"}).Draw(t, "kind")
		owner := scope.Owner{Kind: kind, Namespace: namespace, Name: name.Draw(t, "name")}

		want := scope.NamespaceScopes.In(namespace)
		if kind == scope.KindCSV || kind == scope.KindGroup {
			want = scope.Installs.In(namespace)
		}

		if kind == "ScopeTemplate" {
			owner.Namespace, want = "", scope.TemplatesKey()
		}

		if got := scope.OwnerKey(owner.String()); got != want {
			t.Fatalf("%s leads to %q, want %q", owner, got, want)
		}
	})
}

func TestOwnerKeyOfNonsense(t *testing.T) {
	t.Parallel()

	for _, annotation := range []string{"", "x", "x/y", "/y/z", "x/y/", "x/y/z/a", "//", "ClusterServiceVersion/ns"} {
		if got := scope.OwnerKey(annotation); !got.IsZero() {
			t.Errorf("%q leads to %q", annotation, got)
		}
	}
}
