package scope_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestReconcileKeys holds that the owner in an annotation leads to its operator namespace, and that operator namespaces of
// different sorts are never the same.
func TestReconcileKeys(t *testing.T) {
	t.Parallel()

	name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`)

	rapid.Check(t, func(t *rapid.T) {
		namespace := name.Draw(t, "namespace")
		kind := rapid.SampledFrom([]string{scope.KindCSV, scope.KindGroup, "NamespaceScope", "ScopeTemplate"}).Draw(t, "kind")
		owner := scope.Owner{Kind: kind, Namespace: namespace, Name: name.Draw(t, "name")}

		want := namespace
		if kind == scope.KindCSV || kind == scope.KindGroup {
			want = scope.InstallKey(namespace)
		}

		if kind == "ScopeTemplate" {
			owner.Namespace, want = "", scope.Cluster
		}

		if got := scope.OwnerKey(owner.String()); got != want {
			t.Fatalf("%s leads to %q, want %q", owner, got, want)
		}

		key := scope.InstallKey(namespace)
		if back, is := scope.InstallNamespace(key); !is || back != namespace || key == namespace || key == scope.Cluster {
			t.Fatalf("key %q is that of %q (%t)", key, back, is)
		}

		if _, is := scope.InstallNamespace(namespace); is {
			t.Fatalf("the namespace %s is taken for an install key", namespace)
		}

		s := scope.Scope{OperatorNamespace: want}
		if s.Explicit() != (want != namespace) || s.Installed() != (want == key) {
			t.Fatalf("key %q: explicit %t, installed %t", want, s.Explicit(), s.Installed())
		}
	})
}

func TestOwnerKeyOfNonsense(t *testing.T) {
	t.Parallel()

	for _, annotation := range []string{"", "x", "x/y", "/y/z", "x/y/", "x/y/z/a", "//", "ClusterServiceVersion/ns"} {
		if got := scope.OwnerKey(annotation); got != "" {
			t.Errorf("%q leads to %q", annotation, got)
		}
	}

	for _, key := range []string{scope.Cluster, "ns", ""} {
		if got, is := scope.InstallNamespace(key); is {
			t.Errorf("%q is an install key in %q", key, got)
		}
	}
}
