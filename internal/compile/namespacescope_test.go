package compile_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
)

func scopeOf(spec operatorv1.NamespaceScopeSpec) *operatorv1.NamespaceScope {
	return &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s"}, Spec: spec}
}

func TestNamespaceScopeDefaults(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		spec   operatorv1.NamespaceScopeSpec
	}{
		"nothing": {"an empty spec has the defaults", operatorv1.NamespaceScopeSpec{}},
		"empty labels": {
			"empty labels mean the default, never every workload",
			operatorv1.NamespaceScopeSpec{RestartLabels: map[string]operatorv1.LabelValue{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := compile.NamespaceScope(scopeOf(tc.spec))
			if s.WatchList != "namespace-scope" {
				t.Errorf("%s: watch list %q", tc.reason, s.WatchList)
			}

			if s.Operands.Matches(labels.Set{}) || !s.Operands.Matches(labels.Set{"intent": "projected"}) {
				t.Errorf("%s: operands %s", tc.reason, s.Operands)
			}
		})
	}
}

func TestNamespaceScopeNamesCountOnce(t *testing.T) {
	t.Parallel()

	s := compile.NamespaceScope(scopeOf(operatorv1.NamespaceScopeSpec{
		NamespaceMembers:      []string{"b", "a", "b"},
		ServiceAccountMembers: []string{"y", "x", "y"},
	}))

	if want := []string{"a", "b"}; !reflect.DeepEqual(s.Members.Named, want) {
		t.Errorf("members %v, want %v", s.Members.Named, want)
	}

	if want := []string{"x", "y"}; !reflect.DeepEqual(s.Accounts.Named, want) {
		t.Errorf("accounts %v, want %v", s.Accounts.Named, want)
	}
}

func TestNamespaceScopeBadSelectorKeepsTheRest(t *testing.T) {
	t.Parallel()

	s := compile.NamespaceScope(scopeOf(operatorv1.NamespaceScopeSpec{
		NamespaceMembers:  []string{"a"},
		NamespaceSelector: &operatorv1.NamespaceSelector{Raw: []byte(`{"matchLabels":{"a":"b"},"c":"d"}`)},
	}))

	if s.Members.Selector != nil || s.Members.Problem == "" || len(s.Members.Named) != 1 {
		t.Errorf("a selector that cannot be read selects nothing, says so, and leaves the names: %+v", s.Members)
	}
}

func TestNamespaceScopeDeletedHasNoMembers(t *testing.T) {
	t.Parallel()

	nss := scopeOf(operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{"a"}})
	now := metav1.Now()
	nss.DeletionTimestamp = &now

	if s := compile.NamespaceScope(nss); !s.Deleting() || len(s.Members.Named) != 0 {
		t.Errorf("a deleted scope has no members: %+v", s)
	}
}
