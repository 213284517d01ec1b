package plan_test

import (
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func gets(resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get"}}
}

// change is one to a Role, or to another kind of object with these rules.
func change(action plan.Action, kind projected.Kind, rules ...rbacv1.PolicyRule) plan.Change {
	return plan.Change{
		Action: action, Namespace: "a", Key: facts.ProjectedKey{Kind: kind, Name: "live-0123"},
		Copy: &plan.Copy{Object: projected.Object{Kind: kind, Slot: "slot-0123456789", Name: "slot-0123456789", Rules: rules}},
	}
}

// TestFits: by the time an object is updated it may have been changed. Whoever is bound to it must not gain by the update.
func TestFits(t *testing.T) {
	t.Parallel()

	role := func(rules ...rbacv1.PolicyRule) *rbacv1.Role { return &rbacv1.Role{Rules: rules} }
	clusterRole := func(rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole { return &rbacv1.ClusterRole{Rules: rules} }
	deleted := role(gets("pods", "secrets"))
	deleted.DeletionTimestamp = new(metav1.Now())

	many := make([]string, 0, rights.Max+1)
	for i := range rights.Max + 1 {
		many = append(many, fmt.Sprint("r", i))
	}

	update := func(kind projected.Kind, edit func(*plan.Change)) plan.Change {
		c := change(plan.Update, kind, gets("pods"))
		if edit != nil {
			edit(&c)
		}

		return c
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
	to := func(c *plan.Change) { c.RoleRef = ref }

	for reason, tc := range map[string]struct {
		change plan.Change
		live   scope.Object
		want   bool
	}{
		"a role that holds more loses it":  {update(projected.Role, nil), role(gets("pods", "secrets")), true},
		"one that holds the same keeps it": {update(projected.Role, nil), role(gets("pods")), true},
		"one that holds less would gain":   {update(projected.Role, nil), role(gets("secrets")), false},
		"one that holds nothing as well":   {update(projected.Role, nil), role(), false},
		"one that is being deleted":        {update(projected.Role, nil), deleted, false},
		"of one that stands for too many rights nothing is known": {
			update(projected.Role, nil), role(gets("pods"), gets(many...)), false,
		},
		"what stands for as many as are compared is": {update(projected.Role, nil), role(gets(append(many[1:], "pods")[1:]...)), true},
		"one that is left with fewer rules than its copy": {
			update(projected.Role, func(c *plan.Change) { c.Rules = []rbacv1.PolicyRule{gets("secrets")} }), role(gets("secrets")), true,
		},
		"a change without a copy": {update(projected.Role, func(c *plan.Change) { c.Copy = nil }), role(gets("pods")), false},
		"a binding of the same role": {
			update(projected.RoleBinding, to), &rbacv1.RoleBinding{RoleRef: ref}, true,
		},
		"a binding of another one": {update(projected.RoleBinding, nil), &rbacv1.RoleBinding{RoleRef: ref}, false},
		"a ClusterRole that people are bound to by its name": {
			update(projected.ClusterRole, func(c *plan.Change) { c.Copy.Fixed = true }), clusterRole(), true,
		},
		"a ClusterRole that nobody else can bind": {
			update(projected.ClusterRole, func(c *plan.Change) { c.Copy.Guarded = true }), clusterRole(scope.GuardRule()), true,
		},
		"one that lost the rule which keeps others from it": {
			update(projected.ClusterRole, func(c *plan.Change) { c.Copy.Guarded = true }), clusterRole(), false,
		},
		"one that holds that rule, and is to hold it no more": {
			update(projected.ClusterRole, nil), clusterRole(scope.GuardRule()), false,
		},
	} {
		if got := tc.change.Fits(tc.live); got != tc.want {
			t.Errorf("%s: fits %t", reason, got)
		}
	}
}

// TestShrinks: only what takes rules from a role has to come before what gives rules to others.
func TestShrinks(t *testing.T) {
	t.Parallel()

	with := func(edit func(*plan.Change)) plan.Change {
		c := change(plan.Update, projected.ClusterRole)
		edit(&c)

		return c
	}

	for reason, tc := range map[string]struct {
		change plan.Change
		want   bool
	}{
		"a Role never gains in place":  {change(plan.Update, projected.Role), true},
		"nor before it is there":       {change(plan.Create, projected.Role), false},
		"a binding has no rules":       {change(plan.Update, projected.RoleBinding), false},
		"but may be of fewer":          {plan.Change{Action: plan.Update, Loses: true}, true},
		"a fixed ClusterRole may gain": {with(func(c *plan.Change) { c.Copy.Fixed = true }), false},
		"as a guarded one":             {with(func(c *plan.Change) { c.Copy.Guarded = true }), false},
		"unless it is left with others": {
			with(func(c *plan.Change) { c.Copy.Guarded, c.Rules = true, []rbacv1.PolicyRule{gets("pods")} }), true,
		},
	} {
		if got := tc.change.Shrinks(); got != tc.want {
			t.Errorf("%s: it shrinks: %t", reason, got)
		}
	}
}

// TestShownNames: how the name of a new object ends nobody knows before it is there, so users are shown how it begins.
func TestShownNames(t *testing.T) {
	t.Parallel()

	made, there := change(plan.Create, projected.Role), change(plan.Update, projected.Role)
	fixed := change(plan.Create, projected.ClusterRole)
	fixed.Copy.Fixed = true

	for want, c := range map[string]*plan.Change{"slot-*": &made, "live-0123": &there} {
		if got := c.ShownName(); got != want {
			t.Errorf("%s is shown as %s, want %s", c.Action, got, want)
		}
	}

	if got := fixed.ShownName(); got != "live-0123" {
		t.Errorf("a fixed name is known, and shown as %s", got)
	}

	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "slot-0123456789"}
	of := func(copied bool, refersTo string) *plan.Change {
		c := change(plan.Create, projected.RoleBinding)
		c.Copy.OfCopy, c.Copy.RoleRef = copied, ref
		c.RoleRef = ref
		c.RoleRef.Name = refersTo

		return &c
	}

	for reason, tc := range map[string]struct {
		change *plan.Change
		want   string
	}{
		"a role that comes with it": {of(true, "slot-0123456789"), "slot-*"}, "one that is there": {of(true, "slot-0123"), "slot-0123"},
		"somebody else's": {of(false, "slot-0123456789"), "slot-0123456789"},
		"without a copy":  {&plan.Change{RoleRef: ref}, "slot-0123456789"},
	} {
		if got := tc.change.ShownRoleRef(); got.Name != tc.want || got.Kind != "Role" {
			t.Errorf("%s is shown as %v, want %s", reason, got, tc.want)
		}
	}
}

// TestForeignBindings: a binding of somebody else's to a copy is named, in its namespace, with the scope whose copy it is.
func TestForeignBindings(t *testing.T) {
	t.Parallel()

	s, f := served()

	var copied facts.ProjectedKey

	for key := range f.Projected["a"] {
		if key.Kind == projected.Role {
			copied = key
		}
	}

	delete(f.Projected["b"], copied)
	f.Foreign = map[string][]facts.ForeignBinding{
		"a": {
			{Kind: projected.RoleBinding, Name: "z", Role: copied}, {Kind: projected.RoleBinding, Name: "y", Role: copied},
			{Kind: projected.RoleBinding, Name: "of none", Role: facts.ProjectedKey{Kind: projected.Role, Name: "none"}},
			{
				Kind: projected.RoleBinding, Name: "of a ClusterRole",
				Role: facts.ProjectedKey{Kind: projected.ClusterRole, Name: copied.Name},
			},
		},
		"b": {{Kind: projected.RoleBinding, Name: "of what is elsewhere", Role: copied}},
	}

	p := plan.New([]scope.Scope{s}, f)
	if got := fmt.Sprint(p.Scopes[0].ForeignBindings); got != "[a/y a/z]" {
		t.Errorf("copies are bound by %s", got)
	}
}

// TestForeignClusterRoles: a ClusterRole with a name that is known beforehand is not made where somebody else has one so called.
func TestForeignClusterRoles(t *testing.T) {
	t.Parallel()

	install := scope.Scope{
		Owner: scope.Owner{Group: "operators.coreos.com", Kind: "OperatorGroup", Namespace: "ops", Name: "group"},
		Key:   scope.Installs.In("ops"), Created: now, Members: scope.Members{Everywhere: true},
		Defines: []scope.ClusterRole{
			{Name: "z", Fixed: true}, {Name: "admin", Fixed: true}, {Name: "free", Fixed: true}, {Name: "other"},
		},
	}
	f := cluster()
	f.Key, f.Names = scope.Installs.In("ops"), newNames()
	f.ClusterRoles = map[string]facts.ClusterRole{"admin": {}, "z": {}, "free": {Made: true}, "other": {}}

	s := plan.New([]scope.Scope{install}, f).Scopes[0]
	if fmt.Sprint(s.Foreign) != "[admin z]" || len(s.Copies) != 2 {
		t.Errorf("of others are %v, and %d are made", s.Foreign, len(s.Copies))
	}
}

// TestStaysInALeavingNamespace: what was projected stays in a namespace that is being deleted, so that operators can finish
// there, as long as the scope wants it; labels never choose a system namespace.
func TestStaysInALeavingNamespace(t *testing.T) {
	t.Parallel()

	team := map[string]string{"team": "a"}

	for reason, tc := range map[string]struct {
		named              bool
		selector           map[string]string
		name               string
		terminating, stays bool
	}{
		"named":                       {named: true, name: "a", terminating: true, stays: true},
		"selected":                    {selector: team, name: "a", terminating: true, stays: true},
		"selected by other labels":    {selector: map[string]string{"team": "b"}, name: "a", terminating: true},
		"selected by nothing":         {selector: map[string]string{}, name: "a", terminating: true},
		"neither":                     {name: "a", terminating: true},
		"a system namespace, labels":  {selector: team, name: "kube-a", terminating: true},
		"a system namespace, named":   {named: true, name: "kube-a", terminating: true, stays: true},
		"Ambit's own, by labels":      {selector: team, name: "ambit-system", terminating: true},
		"one that is no longer there": {name: "a"},
	} {
		f, s := cluster(), newScope("s", tc.name)
		namespaces(f, tc.name)
		s.Accounts = scope.Accounts{Named: []string{"op"}}
		f.OperatorNamespace.Accounts["op"] = struct{}{}
		f.OperatorNamespace.Bindings["b"] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
		}

		p := plan.New([]scope.Scope{s}, f)
		carryOut(f, &p)

		if len(f.Projected[tc.name]) != 1 {
			t.Fatalf("%s: there is %v", reason, f.Projected)
		}

		f.Namespaces[tc.name] = facts.Namespace{Labels: team, Terminating: tc.terminating}
		if s.Members = (scope.Members{}); tc.named {
			s.Members.Named = []string{tc.name}
		}

		if tc.selector != nil {
			s.Members.Selector = labels.SelectorFromSet(tc.selector)
		}

		f.Now = f.Now.Add(time.Hour)

		p = plan.New([]scope.Scope{s}, f)
		if got := p.Scopes[0]; (len(got.Prune) == 0) != tc.stays {
			t.Errorf("%s: pruned are %v", reason, got.Prune)
		}
	}
}

// TestOwnersOfACopy: a copy goes with the last authorization by which it could be written, and with no other.
func TestOwnersOfACopy(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"

	writes := `[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["create"]},`
	enough := writes + `{"apiGroups":[""],"resources":["one","two"],"verbs":["get"]}]`
	little := writes + `{"apiGroups":[""],"resources":["two"],"verbs":["get"]}]`
	one := `[{"apiGroups":[""],"resources":["one"],"verbs":["get"]}]`
	of := func(name, account, scopeName, rules string) facts.Authorization {
		a := facts.Authorization{Name: name, UID: "uid-" + name, Account: account, ScopeName: scopeName, Rules: rules}
		if scopeName != "" {
			a.ScopeGroup = s.Owner.Group
		}

		return a
	}

	for reason, tc := range map[string]struct {
		there []facts.Authorization
		want  string
	}{
		"none":                             {nil, "[]"},
		"the only one, whatever it allows": {[]facts.Authorization{of("a", "writer", "", little)}, "[a]"},
		"another account's":                {[]facts.Authorization{of("a", "other", "", enough)}, "[]"},
		"another scope's, which is enough": {[]facts.Authorization{of("a", "writer", "t", enough)}, "[a]"},
		"another scope's, which is not":    {[]facts.Authorization{of("a", "writer", "t", little)}, "[]"},
		"those of other scopes that are enough together, the first": {
			[]facts.Authorization{of("a", "writer", "t", little), of("b", "writer", "u", one)}, "[a]",
		},
		"those of other scopes that are not enough together": {
			[]facts.Authorization{of("a", "writer", "t", little), of("b", "writer", "u", little)}, "[]",
		},
		"those of other scopes": {
			[]facts.Authorization{of("a", "writer", "t", little), of("b", "writer", "u", enough)}, "[b]",
		},
		"another scope's beside one for this": {
			[]facts.Authorization{of("a", "writer", "t", enough), of("b", "writer", "s", little)}, "[b]",
		},
		"those that are enough": {
			[]facts.Authorization{of("a", "writer", "", enough), of("b", "writer", "", little), of("c", "writer", "s", enough)}, "[c a]",
		},
		"where none is enough, the first for this scope": {
			[]facts.Authorization{of("a", "writer", "", little), of("c", "writer", "s", little)}, "[c]",
		},
		"one that only adds comes last": {
			[]facts.Authorization{of("a+part", "writer", "s", little), of("b", "writer", "", little)}, "[b]",
		},
		"rules that cannot be read allow nothing": {
			[]facts.Authorization{of("a", "writer", "", "no rules"), of("b", "writer", "", enough)}, "[b]",
		},
		"whoever may hand out everything holds enough": {
			[]facts.Authorization{
				of("a", "writer", "", little),
				of("b", "writer", "", writes+`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}]`),
			}, "[b]",
		},
		"whoever may not create holds nothing": {
			[]facts.Authorization{
				of("a", "writer", "", `[{"apiGroups":[""],"resources":["one","two"],"verbs":["get"]}]`), of("b", "writer", "", enough),
			}, "[b]",
		},
		"of many, five": {
			[]facts.Authorization{
				of("a", "writer", "", enough), of("b", "writer", "", enough), of("c", "writer", "", enough), of("d", "writer", "", enough),
				of("e", "writer", "", enough), of("f", "writer", "", enough),
			}, "[a b c d e]",
		},
	} {
		p := plan.New([]scope.Scope{s}, f)
		sp := &p.Scopes[0]

		for i := range sp.Copies {
			if sp.Copies[i].Kind != projected.Role || len(sp.Copies[i].Rules) == 0 || sp.Copies[i].Rules[0].Resources[0] != "one" {
				continue
			}

			names := []string{}
			for _, owner := range sp.OwnersIn("a", tc.there, &sp.Copies[i]) {
				names = append(names, owner.Name)

				if owner.UID != "uid-"+owner.Name || owner.Namespace != "a" || owner.Kind != "RoleBinding" {
					t.Errorf("%s: %+v is no owner", reason, owner)
				}
			}

			if got := fmt.Sprint(names); got != tc.want {
				t.Errorf("%s: it goes with %s, want %s", reason, got, tc.want)
			}
		}
	}
}
