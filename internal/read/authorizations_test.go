package read_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// lists is an API server that lists some objects, whatever the labels; without Roles where those may not be listed.
type lists struct {
	client.Reader

	roles    []rbacv1.Role
	bindings []rbacv1.RoleBinding
	refuses  error
}

func (l *lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *rbacv1.RoleList:
		list.Items = l.roles

		return l.refuses
	case *rbacv1.RoleBindingList:
		list.Items = l.bindings
	}

	return nil
}

// TestWhatAuthorizationsGrant holds what is known of the rules of an authorization, whether a watch has told of them, in any
// order, or the API server is asked.
func TestWhatAuthorizationsGrant(t *testing.T) {
	t.Parallel()

	const granted = `[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}]`

	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	first := grant.Grant{Namespace: "a", To: "ops", Account: "ambit", Rules: rules}
	second := grant.Grant{Namespace: "a", To: "ops", Account: "ambit", Rules: rules, Scope: scope.Owner{Name: "s", Namespace: "ops"}}
	other := scope.Owner{Name: "t", Namespace: "ops"}

	for name, tc := range map[string]struct {
		reason string
		change func(*rbacv1.Role, *rbacv1.RoleBinding)
		want   string
	}{
		"its Role": {"that is what it grants", func(*rbacv1.Role, *rbacv1.RoleBinding) {}, granted},
		"a Role without marks": {
			"anybody's Role may be called so", func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Labels = nil }, "",
		},
		"a Role for others": {
			"it belongs to another authorization",
			func(r *rbacv1.Role, _ *rbacv1.RoleBinding) {
				r.Labels = map[string]string{scope.LabelManagedBy: grant.ManagedBy, scope.LabelAuthorizationTo: "o"}
			}, "",
		},
		"a ClusterRole": {
			"what that grants is not known", func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.RoleRef.Kind = "ClusterRole" }, "",
		},
		"more than is kept": {
			"the owner of a namespace decides how much that is",
			func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules = slices.Repeat(rules, 1000) }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			role, binding := first.Role(), first.RoleBinding()
			tc.change(role, binding)

			for _, order := range [][]client.Object{{role, binding}, {binding, role}} {
				once := read.NewOnce([]string{"ops"})
				for _, obj := range order {
					once.Add(obj)
				}

				f, _ := once.Store.Facts(scope.NamespaceScopes.In("ops"), time.Now())
				if got := f.Authorizations["a"]; len(got) != 1 || got[0].Rules != tc.want {
					t.Errorf("%s: got %+v, want %q", tc.reason, got, tc.want)
				}
			}

			live := &lists{
				roles: []rbacv1.Role{*role, *second.Role()}, bindings: []rbacv1.RoleBinding{*binding, *second.RoleBinding()},
			}

			got, err := read.Authorizations(t.Context(), live, "a", second.Scope)
			if err != nil || len(got) != 2 || got[0].Rules != tc.want || got[1].Rules != granted {
				t.Errorf("%s: the API server said %+v, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}

	refused := &lists{bindings: []rbacv1.RoleBinding{*first.RoleBinding(), *second.RoleBinding()}, refuses: errors.New("refused")}
	if got, err := read.Authorizations(t.Context(), refused, "a", second.Scope); !errors.Is(err, refused.refuses) {
		t.Errorf("it is not said that what two of them grant is unknown: %+v, %v", got, err)
	}

	refused.bindings = refused.bindings[:1]
	if got, err := read.Authorizations(t.Context(), refused, "a", second.Scope); err != nil || len(got) != 1 {
		t.Errorf("what one alone grants decides nothing: %+v, %v", got, err)
	}

	refused.bindings[0] = *second.RoleBinding()
	if got, err := read.Authorizations(t.Context(), refused, "a", other); !errors.Is(err, refused.refuses) {
		t.Errorf("it is not said that what another scope's grants is unknown: %+v, %v", got, err)
	}
}

// TestAuthorizationsWithLongNames: the names of authorizations hold those of a namespace and of a scope, and are longer than any
// of these.
func TestAuthorizationsWithLongNames(t *testing.T) {
	t.Parallel()

	to := strings.Repeat("n", validation.DNS1123LabelMaxLength)
	longest := grant.Grant{
		Namespace: "a", To: to, Account: strings.Repeat("x", validation.DNS1123SubdomainMaxLength), Part: true, Installs: true,
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		Scope: scope.Owner{
			Group: namespacescopev1alpha1.GroupVersion.Group, Namespace: to,
			Name: strings.Repeat("s", validation.DNS1123SubdomainMaxLength),
		},
	}

	once := read.NewOnce([]string{to})
	once.Add(longest.Role())
	once.Add(longest.RoleBinding())

	f, _ := once.Store.Facts(scope.NamespaceScopes.In(to), time.Now())
	if got := f.Authorizations["a"]; len(got) != 1 || got[0].Rules == "" {
		t.Errorf("got %+v of an authorization with a name of %d characters", got, len(longest.Name()))
	}
}

// TestHowMuchIsKeptOfAuthorizations: whoever administers a namespace may write as many Roles of authorizations there as there is
// room for, and large ones. What is kept of them takes little memory, is never what a Role was before, and makes room for
// others where it gets less.
func TestHowMuchIsKeptOfAuthorizations(t *testing.T) {
	t.Parallel()

	const many, large, limit = 100, 30 << 10, 128 << 10

	once := read.NewOnce([]string{"ops"})
	add := func(i, size int) {
		g := grant.Grant{Namespace: "a", To: "ops", Account: "ambit", Scope: scope.Owner{Name: fmt.Sprint("s", i), Namespace: "ops"}}
		g.Rules = []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{strings.Repeat("x", size) + strconv.Itoa(i)},
		}}

		once.Add(g.Role())
		once.Add(g.RoleBinding())
	}

	for i := range many {
		add(i, large)
	}

	for _, step := range []struct {
		what    string
		i, size int
		want    []string
	}{
		{"they are written again", 0, large, []string{"s0", "s1", "s2", "s3"}},
		{"one grants less", 0, 1, []string{"s0", "s1", "s2", "s3"}},
		{"so there is room for another", 50, large, []string{"s0", "s1", "s2", "s3", "s50"}},
		{"the first grants more", 0, large, []string{"s1", "s2", "s3", "s50"}},
	} {
		add(step.i, step.size)

		f, _ := once.Store.Facts(scope.NamespaceScopes.In("ops"), time.Now())

		var (
			kept []string
			sum  int
		)

		for _, a := range f.Authorizations["a"] {
			if sum += len(a.Rules); a.Rules != "" {
				kept = append(kept, a.ScopeName)
			}
		}

		slices.Sort(kept)

		if len(f.Authorizations["a"]) != many || sum > limit || !slices.Equal(kept, step.want) {
			t.Errorf("%s: of %d authorizations, the rules of %v are kept, %d bytes", step.what, len(f.Authorizations["a"]), kept, sum)
		}
	}
}
