package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

const everywhere = ""

// clusterScopes is a random cluster with random templates and instances, as the compiler would hand them over.
func clusterScopes(t *rapid.T) ([]scope.Scope, *facts.Facts) {
	f := cluster()
	f.Key, f.Names = scope.TemplatesKey(), newNames()
	f.ClusterScoped = map[string]struct{}{"nodes": {}}

	for _, n := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "kube-system"}), 0, 5).Draw(t, "namespaces") {
		f.Namespaces[n] = facts.Namespace{
			Labels:      map[string]string{"prod": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "prod")},
			Terminating: rapid.IntRange(0, 5).Draw(t, "terminating") == 0,
		}
	}

	var (
		scopes []scope.Scope
		binds  = map[string][]scope.Binding{}
	)

	for _, name := range []string{"t1", "t2"} {
		s := explicitScope("ScopeTemplate", name)
		s.Members.Everywhere = rapid.Bool().Draw(t, "referred")

		for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
			role := fmt.Sprintf("%s-role-%d", name, i)
			rules := rapid.SliceOfN(rule(), 0, 2).Draw(t, "rules")
			s.Defines = append(s.Defines, scope.ClusterRole{Name: role, Rules: rules, Source: s.Owner.String()})
			binds[name] = append(binds[name], scope.Binding{
				Role: role, Rules: rules, Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
			})

			// Somebody else may have the name, or have made it look like Ambit's.
			if rapid.IntRange(0, 3).Draw(t, "taken") == 0 {
				f.ClusterRoles[role] = facts.ClusterRole{}
			}
		}

		scopes = append(scopes, s)
	}

	for _, name := range []string{"i1", "i2", "i3"} {
		s := explicitScope("ScopeInstance", name)
		s.Binds = binds[rapid.SampledFrom([]string{"t1", "t2", "nowhere"}).Draw(t, "template")]
		s.Members = membersOfInstance(t)
		scopes = append(scopes, s)
	}

	return scopes, f
}

func explicitScope(kind, name string) scope.Scope {
	return scope.Scope{
		Owner: scope.Owner{Group: "operators.coreos.com", Kind: kind, Name: name}, Key: scope.TemplatesKey(),
		OwnerUID: "uid-" + name, OwnerVersion: "v1alpha1",
	}
}

func membersOfInstance(t *rapid.T) scope.Members {
	var m scope.Members

	kinds := []string{"named", "selected", "both", "nothing", "everywhere", "unconfirmed", "kept"}

	switch rapid.SampledFrom(kinds).Draw(t, "members") {
	case "named":
		m.Named = someNames(t)
	case "selected":
		m.Selector = labels.SelectorFromSet(labels.Set{"prod": "yes"})
	case "both":
		m.Named, m.Selector = someNames(t), labels.SelectorFromSet(labels.Set{"prod": "no"})
	case "nothing":
		m.Selector, m.Problem = labels.Everything(), "it is empty"
	case "everywhere":
		m.Everywhere = true
	case "unconfirmed":
		m.Everywhere, m.Unconfirmed, m.Problem = true, true, "nothing is said"
	case "kept":
		m.Kept, m.Problem = true, "nothing is said any more"
	}

	return m
}

func someNames(t *rapid.T) []string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "gone", "kube-system"}), 1, 4).Draw(t, "named")
	slices.Sort(names)

	return slices.Compact(names)
}

// clusterChanges is carryOut, and tells the facts of the ClusterRoles as the watch would.
func clusterChanges(f *facts.Facts, p *plan.Plan) {
	carryOut(f, p)

	for name, role := range f.ClusterRoles {
		if role.Made {
			delete(f.ClusterRoles, name)
		}
	}

	for key := range f.Projected[everywhere] {
		if key.Kind == projected.ClusterRole {
			f.ClusterRoles[key.Name] = facts.ClusterRole{Made: true}
		}
	}
}

// TestExplicitScopesStayWithinTheirWord: a foreign ClusterRole is neither written nor bound, nothing is bound in the whole
// cluster but by a scope that says so, and nothing is written into a namespace that no scope means.
func TestExplicitScopesStayWithinTheirWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := clusterScopes(t)

		for range 2 {
			p := plan.New(scopes, f)
			for i := range p.Scopes {
				checkWithinWord(t, &p.Scopes[i], f)
			}

			clusterChanges(f, &p)
			// The world goes on: other members, other instances, other owners of names.
			next, moved := clusterScopes(t)
			f.Namespaces, scopes = moved.Namespaces, next

			for name, role := range moved.ClusterRoles {
				if _, ours := f.Projected[everywhere][facts.ProjectedKey{Kind: projected.ClusterRole, Name: name}]; !ours {
					f.ClusterRoles[name] = role
				}
			}
		}
	})
}

func checkWithinWord(t *rapid.T, s *plan.ScopePlan, f *facts.Facts) {
	in := &s.Scope.Members

	for _, c := range s.Grant {
		role := c.Key.Name
		if c.Key.Kind.IsBinding() {
			role = c.RoleRef.Name
		}

		if _, ours := f.Projected[everywhere][facts.ProjectedKey{Kind: projected.ClusterRole, Name: role}]; !ours {
			if live, taken := f.ClusterRoles[role]; taken && !live.Made {
				t.Fatalf("%s: %s %s is about ClusterRole %s, which is somebody else's", s.Scope.Owner, c.Action, c.Key.Kind, role)
			}
		}

		if c.Key.Kind == projected.Role || c.Key.Kind.IsClusterScoped() != (c.Namespace == everywhere) {
			t.Fatalf("%s makes %v in %q", s.Scope.Owner, c.Key, c.Namespace)
		}

		if c.Namespace == everywhere && !in.Everywhere {
			t.Fatalf("%s, which does not say so, writes in the whole cluster: %v", s.Scope.Owner, c.Key)
		}

		if c.Namespace == everywhere {
			continue
		}

		if ns, exists := f.Namespaces[c.Namespace]; !exists || ns.Terminating {
			t.Fatalf("%s writes into %s, which is not there", s.Scope.Owner, c.Namespace)
		}

		named := slices.Contains(in.Named, c.Namespace)
		if strings.HasPrefix(c.Namespace, "kube-") && !named && !in.Kept && !in.Unconfirmed {
			t.Fatalf("%s got into %s by a label", s.Scope.Owner, c.Namespace)
		}
	}
}

// TestSilenceNeverWidens: a scope that is found in namespaces does not come to be bound in the whole cluster, unless its
// resource says so in so many words.
func TestSilenceNeverWidens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := clusterScopes(t)
		for i := range scopes {
			if scopes[i].Owner.Kind == "ScopeInstance" {
				scopes[i].Members = scope.Members{Named: someNames(t)}
			}
		}

		p := plan.New(scopes, f)
		clusterChanges(f, &p)

		before := map[string]int{}
		for namespace, held := range f.Projected {
			if namespace != everywhere {
				before[namespace] = len(held)
			}
		}

		for i := range scopes {
			if scopes[i].Owner.Kind == "ScopeInstance" {
				scopes[i].Members = scope.Members{Everywhere: true, Unconfirmed: true, Problem: "nothing is said any more"}
			}
		}

		p = plan.New(scopes, f)
		for i := range p.Scopes {
			s := &p.Scopes[i]
			if held := holdsAny(f, s.Scope.Owner); held && (s.Everywhere || s.Selection.Problem == "" || !s.Settled()) {
				t.Fatalf("%s, which is in namespaces, comes to reach everything:\n%s", s.Scope.Owner, &p)
			}
		}

		clusterChanges(f, &p)

		for namespace, n := range before {
			if len(f.Projected[namespace]) != n {
				t.Fatalf("%s held %d objects and now holds %d", namespace, n, len(f.Projected[namespace]))
			}
		}
	})
}

func holdsAny(f *facts.Facts, owner scope.Owner) bool {
	for namespace, held := range f.Projected {
		for _, o := range held {
			if namespace != everywhere && o.Owner == owner.String() {
				return true
			}
		}
	}

	return false
}

// TestExplicitPlanIsDone: what was planned and carried out needs no plan, and nothing is left of what was deleted.
func TestExplicitPlanIsDone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := clusterScopes(t)
		settleCluster(t, scopes, f)

		next, _ := clusterScopes(t)
		settleCluster(t, next, f)
		settleCluster(t, nil, f)

		for namespace, held := range f.Projected {
			if len(held) > 0 {
				t.Fatalf("left in %q: %v", namespace, held)
			}
		}
	})
}

func settleCluster(t *rapid.T, scopes []scope.Scope, f *facts.Facts) {
	// What was replaced goes in a plan of its own.
	p := plan.New(scopes, f)
	for range 2 {
		clusterChanges(f, &p)
		f.Now = f.Now.Add(2 * plan.Propagation)
		p = plan.New(scopes, f)
	}

	if !plantest.IsEmpty(&p) {
		t.Fatalf("the plan for the planned state is not empty:\n%s", &p)
	}
}

// TestGuardedClusterRolesGrowInPlace: however much a ClusterRole holds, it is changed by one write if it holds the guard, and it
// is never changed but replaced if somebody took that from it, or makes it take rules from others.
func TestGuardedClusterRolesGrowInPlace(t *testing.T) {
	t.Parallel()

	rules := func(verb, longer string, words int) []rbacv1.PolicyRule {
		all := make([]string, words)
		for i := range all {
			all[i] = fmt.Sprint("w", i, longer)
		}

		return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: all, Resources: all}}
	}

	for size, of := range map[string]func(verb string) []rbacv1.PolicyRule{
		"few":                      func(verb string) []rbacv1.PolicyRule { return rules(verb, "", 2) },
		"more than are remembered": func(verb string) []rbacv1.PolicyRule { return rules(verb, strings.Repeat("x", 1<<10), 90) },
		"more than are compared":   func(verb string) []rbacv1.PolicyRule { return rules(verb, "", 101) },
	} {
		for taken, tc := range map[string]struct {
			by     func(*projected.Object)
			writes plan.Action
		}{
			"as it was made":     {func(*projected.Object) {}, plan.Update},
			"other rules":        {func(o *projected.Object) { o.Rules = append(o.Rules[1:], o.Rules[0]) }, plan.Update},
			"without the guard":  {func(o *projected.Object) { o.Rules = scope.WithoutGuard(o.Rules) }, plan.Create},
			"without any":        {func(o *projected.Object) { o.Rules = nil }, plan.Create},
			"taking from others": {func(o *projected.Object) { o.Aggregated = true }, plan.Create},
		} {
			f := cluster()
			f.Key, f.Names = scope.TemplatesKey(), newNames()
			s := explicitScope("ScopeTemplate", "t")
			s.Members.Everywhere = true

			planned := func(verb string) []plan.Change {
				s.Defines = []scope.ClusterRole{{Name: "r", Rules: of(verb), Source: s.Owner.String(), Guarded: true}}
				p := plan.New([]scope.Scope{s}, f)

				return p.Scopes[0].Grant
			}

			made := planned("get")
			if len(made) != 1 || made[0].Action != plan.Create {
				t.Fatalf("%s: it begins with %v", size, made)
			}

			o := made[0].Object()
			tc.by(&o)
			is := live(&o)
			f.Projected[everywhere] = map[facts.ProjectedKey]*facts.Projected{made[0].Key: &is}

			if got := planned("list"); len(got) != 1 || got[0].Action != tc.writes {
				t.Errorf("%s rules, %s: it writes %v, want one %s", size, taken, got, tc.writes)
			}
		}
	}
}

// TestNoNamespaceJoinsByAForgedBinding: an instance that lost its namespaces stays bound where it is. A tenant who was in one
// of them knows a name that Ambit gave there, and may make a binding of that name, but none to a ClusterRole of a template.
func TestNoNamespaceJoinsByAForgedBinding(t *testing.T) {
	t.Parallel()

	f := cluster()
	f.Key, f.Names = scope.TemplatesKey(), newNames()
	namespaces(f, "a", "b")

	template, in := explicitScope("ScopeTemplate", "t"), explicitScope("ScopeInstance", "i")
	template.Members.Everywhere = true
	template.Defines = []scope.ClusterRole{{Name: "r-0123456789", Guarded: true}}
	in.Binds = []scope.Binding{{Role: "r-0123456789", Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}}
	in.Members.Named = []string{"a"}

	p := plan.New([]scope.Scope{template, in}, f)
	clusterChanges(f, &p)

	forged := live(&projected.Object{
		Kind: projected.RoleBinding, Name: "known", Slot: "known", ScopeHash: in.Owner.Hash(), Owner: in.Owner.String(),
		OwnerRefs: []projected.OwnerRef{{Kind: in.Owner.Kind, Name: in.Owner.Name, UID: in.OwnerUID}},
		RoleRef:   rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "own"},
	})
	f.Projected["b"] = map[facts.ProjectedKey]*facts.Projected{{Kind: projected.RoleBinding, Name: "known"}: &forged}
	in.Members = scope.Members{Kept: true, Problem: "nothing is said any more"}

	p = plan.New([]scope.Scope{template, in}, f)
	for i := range p.Scopes {
		if s := &p.Scopes[i]; s.Scope.Members.Kept && !slices.Equal(s.Members, []string{"a"}) {
			t.Errorf("it is bound in %v", s.Members)
		}
	}

	// Nor does it keep an instance from the whole cluster that never had namespaces.
	delete(f.Projected, "a")

	in.Members = scope.Members{Everywhere: true, Unconfirmed: true}

	p = plan.New([]scope.Scope{template, in}, f)
	for i := range p.Scopes {
		if s := &p.Scopes[i]; s.Scope.Members.Unconfirmed && !s.Everywhere {
			t.Errorf("it is bound in %v", s.Members)
		}
	}
}
