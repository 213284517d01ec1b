package read

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhomClusterPermissionsReach has whose permissions a change of a ClusterRole or ClusterRoleBinding may change.
func TestWhomClusterPermissionsReach(t *testing.T) {
	t.Parallel()

	type told struct {
		everybody, bound, freed bool
		namespaces              []string
	}

	const ambit, person = "system:serviceaccount:ambit-system:ambit", "admin"

	meta := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "reads", ResourceVersion: version}
	}
	role := func(version string, labels map[string]string, verbs ...string) *rbacv1.ClusterRole {
		out := &rbacv1.ClusterRole{ObjectMeta: meta(version), Rules: []rbacv1.PolicyRule{{
			Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"},
		}}}
		out.Labels = labels

		return out
	}
	binds := func(subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("1"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "reads"}, Subjects: subjects,
		}
	}
	account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}
	user := rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:other:op"}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }

	crowd := slices.Repeat([]rbacv1.Subject{account}, maxBound+1)
	long := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: strings.Repeat("n", maxSubjects)}

	for name, tc := range map[string]struct {
		self string
		bind *rbacv1.ClusterRoleBinding
		// change is what happens to the binding, or to the role that is there already.
		change func(roles, bindings sink[clusterRecord]) error
		want   []told
	}{
		"a binding comes": {
			ambit, nil, func(_, b sink[clusterRecord]) error { return b.Add(binds(account, user)) },
			[]told{{namespaces: []string{"ops", "other"}}},
		},
		"a binding of people comes": {
			ambit, nil, func(_, b sink[clusterRecord]) error {
				return b.Add(binds(group("developers"), rbacv1.Subject{Kind: "User", Name: "jane"}))
			}, []told{{}},
		},
		"a binding of all accounts comes": {
			ambit, nil, func(_, b sink[clusterRecord]) error { return b.Add(binds(group("system:authenticated"))) },
			[]told{{everybody: true}},
		},
		"a binding of Ambit's own accounts comes": {
			ambit, nil, func(_, b sink[clusterRecord]) error {
				return b.Add(binds(group("system:serviceaccounts:ambit-system")))
			}, []told{{everybody: true, namespaces: []string{"ambit-system"}}},
		},
		"a binding of a group comes, in which Ambit may be": {
			person, nil, func(_, b sink[clusterRecord]) error { return b.Add(binds(group("developers"))) },
			[]told{{everybody: true}},
		},
		"a binding comes, and nobody knows who Ambit is": {
			"", nil, func(_, b sink[clusterRecord]) error { return b.Add(binds(account)) },
			[]told{{everybody: true, namespaces: []string{"ops"}}},
		},
		"a binding goes": {
			ambit, binds(account), func(_, b sink[clusterRecord]) error { return b.Delete(binds(account)) },
			[]told{{freed: true, namespaces: []string{"ops"}}},
		},
		"a binding of nobody goes": {
			ambit, binds(), func(_, b sink[clusterRecord]) error { return b.Delete(binds()) }, []told{{freed: true}},
		},
		"a binding gets a label": {
			ambit, binds(account), func(_, b sink[clusterRecord]) error {
				labelled := binds(account)
				labelled.Labels, labelled.ResourceVersion = map[string]string{"a": "b"}, "2"

				return b.Update(labelled)
			}, nil,
		},
		"a bound role gives more": {
			ambit, binds(account), func(r, _ sink[clusterRecord]) error { return r.Update(role("2", nil, "get", "list")) },
			[]told{{bound: true, namespaces: []string{"ops"}}},
		},
		"a role that nobody is bound to everywhere gives more": {
			ambit, nil, func(r, _ sink[clusterRecord]) error { return r.Update(role("2", nil, "get", "list")) },
			[]told{{bound: true}},
		},
		"a binding of more than can be looked at comes": {
			ambit, nil, func(_, b sink[clusterRecord]) error { return b.Add(binds(crowd...)) }, []told{{everybody: true}},
		},
		"a role that they are bound to gives more": {
			ambit, binds(crowd...), func(r, _ sink[clusterRecord]) error { return r.Update(role("2", nil, "get", "list")) },
			[]told{{everybody: true, bound: true}},
		},
		"a role gives more to accounts that are left out": {
			ambit, binds(long), func(r, _ sink[clusterRecord]) error { return r.Update(role("2", nil, "get", "list")) },
			[]told{{everybody: true, bound: true}},
		},
		"a binding goes of accounts that are left out": {
			ambit, binds(long), func(_, b sink[clusterRecord]) error { return b.Delete(binds(long)) },
			[]told{{everybody: true, freed: true}},
		},
		"a role gets a label": {
			ambit, binds(account), func(r, _ sink[clusterRecord]) error {
				return r.Update(role("2", map[string]string{"a": "b"}, "get"))
			}, nil,
		},
	} {
		e := &ear{}
		s := NewStore(e)
		s.Self(tc.self)

		roles := filledBy(s, projected.ClusterRole, &s.clusterRoles)
		bindings := filledBy(s, projected.ClusterRoleBinding, &s.clusterBindings)

		must(t, roles.Add(role("1", nil, "get")))

		if tc.bind != nil {
			must(t, bindings.Add(tc.bind))
		}

		e.permissions = nil
		clear(s.changedAt)

		must(t, tc.change(roles, bindings))

		var got []told
		for _, p := range e.permissions {
			got = append(got, told{p.Everybody, p.Bound, p.Freed, slices.Sorted(maps.Keys(p.Namespaces))})
		}

		if !slices.EqualFunc(got, tc.want, func(a, b told) bool {
			return a.everybody == b.everybody && a.bound == b.bound && a.freed == b.freed && slices.Equal(a.namespaces, b.namespaces)
		}) {
			t.Errorf("%s: told %+v, want %+v", name, got, tc.want)
		}

		for _, accountsOf := range []string{"ops", "third", ""} {
			holds := func(t told) bool { return t.everybody || slices.Contains(t.namespaces, accountsOf) }
			wide := slices.ContainsFunc(tc.want, holds)
			inMember := wide || slices.ContainsFunc(tc.want, func(t told) bool { return t.bound })

			if got := !s.PermissionsChangedAt(scope.Cluster, accountsOf).IsZero(); got != wide {
				t.Errorf("%s: what accounts of %q hold in the cluster changed: %t", name, accountsOf, got)
			}

			if got := !s.PermissionsChangedAt("member", accountsOf).IsZero(); got != inMember {
				t.Errorf("%s: what accounts of %q hold in a member changed: %t", name, accountsOf, got)
			}
		}
	}
}

// TestChangesOfPermissionsAreBounded: whoever may write one ClusterRoleBinding can name thousands of namespaces in it, others
// each time. What is remembered of that takes little room, and nobody's rights count as known for longer because of it.
func TestChangesOfPermissionsAreBounded(t *testing.T) {
	t.Parallel()

	s := NewStore(&ear{})
	s.Self("system:serviceaccount:ambit-system:ambit")

	bindings := filledBy(s, projected.ClusterRoleBinding, &s.clusterBindings)

	before := time.Now()
	s.noteChange(permissions{of: "ops"})

	for version := range 2 + maxChanges/maxBound {
		evil := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "evil", ResourceVersion: strconv.Itoa(version + 1)},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "reads"},
		}
		for i := range maxBound - 1 {
			evil.Subjects = append(evil.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: fmt.Sprintf("%d-%d", version, i), Name: "a",
			})
		}

		must(t, bindings.Update(evil))
	}

	if n := len(s.changedAt); n > maxChanges {
		t.Errorf("%d changes are remembered, and %d at most may be", n, maxChanges)
	}

	if at := s.PermissionsChangedAt("member", "ops"); at.Before(before) {
		t.Errorf("what accounts of ops hold changed at %s by what is remembered, and after %s in truth", at, before)
	}
}

// TestChangesOfLeftOutRulesAreNoticed: what a ClusterRole says may be too much to remember. That it says something else is
// noticed.
func TestChangesOfLeftOutRulesAreNoticed(t *testing.T) {
	t.Parallel()

	e := &ear{}
	s := NewStore(e)
	s.ruleSets = newAllowance(smallRuleSet)

	roles := filledBy(s, projected.ClusterRole, &s.clusterRoles)

	bindings := filledBy(s, projected.ClusterRoleBinding, &s.clusterBindings)

	role := func(version int, verb, label string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: "large", ResourceVersion: strconv.Itoa(version), Labels: map[string]string{"label": label},
			},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{verb},
				ResourceNames: []string{strings.Repeat("n", smallRuleSet)},
			}},
		}
	}

	must(t, roles.Add(role(1, "get", "a")))
	must(t, bindings.Add(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "1"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "large"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
	}))

	e.permissions = nil

	for i, tc := range []struct {
		verb, label string
		told        int
	}{{"get", "b", 0}, {"list", "b", 1}, {"list", "c", 1}, {"get", "c", 2}} {
		must(t, roles.Update(role(i+2, tc.verb, tc.label)))

		if got := len(e.permissions); got != tc.told {
			t.Errorf("after change %d, %d were told", i, got)
		}
	}

	if _, more := s.ClusterGrants(scope.NamespaceScopes.In("ops"), &Asked{Namespaces: []string{"ops"}}); more != 1 {
		t.Errorf("%d bindings are counted", more)
	}
}
