package consent_test

import (
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func TestChoose(t *testing.T) {
	t.Parallel()

	gone := metav1.Now()

	for name, tc := range map[string]struct {
		reason string
		scopes []string
		asked  string
		want   string
		err    error
	}{
		"none":           {"without a scope there is nothing to be a member of", nil, "", "", consent.ErrNoScope},
		"none, asked":    {"also when one is asked for", nil, "a", "", consent.ErrNoScope},
		"the only one":   {"one is enough to know", []string{"a"}, "", "a", nil},
		"the usual name": {"the usual name is meant", []string{"a", "namespacescope"}, "", "namespacescope", nil},
		"asked":          {"what is asked for is meant", []string{"a", "namespacescope"}, "a", "a", nil},
		"asked wrongly":  {"the only one is not what was asked for", []string{"a"}, "b", "", consent.ErrScopeNotThere},
		"several":        {"nobody guesses", []string{"a", "b"}, "", "", consent.ErrSeveralScopes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var scopes []operatorv1.NamespaceScope
			for _, s := range tc.scopes {
				scopes = append(scopes, operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Name: s}})
			}

			got, err := consent.Choose(scopes, "ops", tc.asked)
			if !errors.Is(err, tc.err) || err == nil && got.Name != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}

	leaving := []operatorv1.NamespaceScope{{ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &gone}}}
	if _, err := consent.Choose(leaving, "ops", ""); err == nil {
		t.Error("a scope on its way out takes no members")
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()

	before := []string{"b", "a", "b"}

	if got, differs := consent.With(before, "c"); !differs || !slices.Equal(got, []string{"b", "a", "b", "c"}) {
		t.Errorf("a member comes last, the order of the others stays: %v", got)
	}

	if got, differs := consent.With(before, "a"); differs || !slices.Equal(got, before) {
		t.Errorf("a member is a member once: %v", got)
	}

	if got, differs := consent.Without(before, "b"); !differs || !slices.Equal(got, []string{"a"}) {
		t.Errorf("a member that was listed twice goes twice: %v", got)
	}

	if got, differs := consent.Without(before, "c"); differs || !slices.Equal(got, before) {
		t.Errorf("who is no member cannot go: %v", got)
	}
}

// TestGrantIsNobodysCopy holds a grant against everything by which the manager knows its own.
func TestGrantIsNobodysCopy(t *testing.T) {
	t.Parallel()

	if consent.FieldManager == scope.FieldManager || consent.ManagedBy == scope.ManagedBy {
		t.Error("the manager would take a grant for its own")
	}

	g := consent.Grant{Namespace: "member", To: "ops", Account: "ambit", Scope: "s"}

	for _, obj := range []metav1.Object{g.Role(), g.RoleBinding()} {
		if obj.GetLabels()[scope.LabelScope] != "" || obj.GetAnnotations()[scope.AnnotationOwner] != "" ||
			obj.GetAnnotations()[scope.AnnotationSource] != "" || obj.GetLabels()[scope.LabelManagedBy] == scope.ManagedBy {
			t.Errorf("%v bears marks of a copy", obj)
		}

		if !consent.IsGrant(obj, "ops") || consent.IsGrant(obj, "other") || consent.IsGrant(&rbacv1.Role{}, "") {
			t.Errorf("%v is a grant to ops and to nobody else", obj)
		}
	}

	other := consent.Grant{Namespace: "member", To: "ops-s", Account: "ambit"}
	if g.Name() == other.Name() {
		t.Errorf("two grants are called %s", g.Name())
	}
}
