package scope_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestHomes holds that the owner in an annotation leads to its home, and that homes of different sorts are never the same.
func TestHomes(t *testing.T) {
	t.Parallel()

	name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`)

	rapid.Check(t, func(t *rapid.T) {
		namespace := name.Draw(t, "namespace")
		kind := rapid.SampledFrom([]string{scope.KindCSV, scope.KindGroup, "NamespaceScope", "ScopeTemplate"}).Draw(t, "kind")
		owner := scope.Owner{Kind: kind, Namespace: namespace, Name: name.Draw(t, "name")}

		want := namespace
		if kind == scope.KindCSV || kind == scope.KindGroup {
			want = scope.InstallHome(namespace)
		}

		if kind == "ScopeTemplate" {
			owner.Namespace, want = "", scope.Cluster
		}

		if got := scope.OwnerHome(owner.String()); got != want {
			t.Fatalf("%s leads to %q, want %q", owner, got, want)
		}

		home := scope.InstallHome(namespace)
		if back, is := scope.InstallNamespace(home); !is || back != namespace || home == namespace || home == scope.Cluster {
			t.Fatalf("home %q is that of %q (%t)", home, back, is)
		}

		if _, is := scope.InstallNamespace(namespace); is {
			t.Fatalf("the namespace %s is taken for a home of installs", namespace)
		}

		s := scope.Scope{Home: want}
		if s.Explicit() != (want != namespace) || s.Installed() != (want == home) {
			t.Fatalf("home %q: explicit %t, installed %t", want, s.Explicit(), s.Installed())
		}
	})
}

func TestOwnerHomeOfNonsense(t *testing.T) {
	t.Parallel()

	for _, annotation := range []string{"", "x", "x/y", "/y/z", "x/y/", "x/y/z/a", "//", "ClusterServiceVersion/ns"} {
		if got := scope.OwnerHome(annotation); got != "" {
			t.Errorf("%q leads to %q", annotation, got)
		}
	}

	for _, home := range []string{scope.Cluster, "ns", ""} {
		if got, is := scope.InstallNamespace(home); is {
			t.Errorf("%q is a home of installs in %q", home, got)
		}
	}
}
