package scope_test

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestKeysAreWrittenAsEver: the names of copies in clusters hold a hash of what a key is written as. A change of one of these
// would make Ambit take its own copies for somebody else's.
func TestKeysAreWrittenAsEver(t *testing.T) {
	t.Parallel()

	for key, want := range map[scope.Key]string{
		scope.NamespaceScopes.In("ops"): "ops",
		scope.Installs.In("ops"):        "ops/installs",
		scope.Catalogs.In("ops"):        "ops/catalogs",
		scope.TemplatesKey():            "(cluster)",
	} {
		if got := key.String(); got != want {
			t.Errorf("the key of a %s is written %q, and was %q", key.Family, got, want)
		}
	}
}

// TestKeysAreSorted: by namespace first, so that what belongs to one stands together.
func TestKeysAreSorted(t *testing.T) {
	t.Parallel()

	want := []scope.Key{
		scope.TemplatesKey(), scope.NamespaceScopes.In("a"), scope.Installs.In("a"), scope.Catalogs.In("a"),
		scope.NamespaceScopes.In("a-b"), scope.NamespaceScopes.In("b"),
	}

	got := slices.Clone(want)
	slices.Reverse(got)

	if slices.SortFunc(got, scope.Key.Compare); !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}

// TestMirrors: a scope makes nothing in the namespace that it mirrors. What is installed holds permissions in its own namespace,
// as in every target.
func TestMirrors(t *testing.T) {
	t.Parallel()

	for key, want := range map[scope.Key]bool{
		scope.NamespaceScopes.In("ops"): true, scope.NamespaceScopes.In("other"): false, scope.Installs.In("ops"): false,
		scope.TemplatesKey(): false,
	} {
		s := scope.Scope{Key: key}
		if got := s.Mirrors("ops"); got != want {
			t.Errorf("a %s of %q mirrors namespace ops: %t", key.Family, key.Namespace, got)
		}

		if explicit := key.Family != scope.NamespaceScopes; s.Explicit() != explicit {
			t.Errorf("a %s is explicit: %t", key.Family, !explicit)
		}
	}
}
