package plan_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// served is a cluster in which a scope with two Roles is served in the namespaces a and b.
func served() (scope.Scope, *facts.Facts) {
	f, s := cluster(), newScope("s", "a", "b")
	namespaces(f, "a", "b")

	ops := &f.OperatorNamespace
	ops.Accounts["op"] = struct{}{}
	ops.Workloads = []facts.Workload{{Kind: facts.Deployment, Name: "op", Template: facts.Template{
		Labels: labels.Set{"intent": "projected"}, Account: "op",
	}}}

	for _, name := range []string{"one", "two"} {
		ops.Roles[name] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{name}, Verbs: []string{"get"}}}
		ops.Bindings[name] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
		}
	}

	p := plan.New([]scope.Scope{s}, f)
	carryOut(f, &p)

	return s, f
}

// TestWhatIsKnownToBeGoneTakesAMemberOut holds when a listed member leaves because something was refused there.
func TestWhatIsKnownToBeGoneTakesAMemberOut(t *testing.T) {
	t.Parallel()

	deleteAll := func(f *facts.Facts, kind projected.Kind, slots ...string) {
		for key, live := range f.Projected["a"] {
			for _, slot := range slots {
				if key.Kind == kind && projected.Prefix(kind, live.Slot) == slot+"-" {
					delete(f.Projected["a"], key)
				}
			}
		}
	}

	for name, tc := range map[string]struct {
		reason string
		change func(*facts.Facts)
		want   string
	}{
		"a change": {
			"what is refused now was never there",
			func(f *facts.Facts) { deleteAll(f, projected.RoleBinding, "one") }, "a,b,ops",
		},
		"all bindings": {
			"nobody holds anything there", func(f *facts.Facts) { deleteAll(f, projected.RoleBinding, "one", "two") }, "b,ops",
		},
		"all roles": {
			"a binding without its Role gives nothing", func(f *facts.Facts) { deleteAll(f, projected.Role, "one", "two") }, "b,ops",
		},
		"one role": {
			"the binding that is there gave something before", func(f *facts.Facts) { deleteAll(f, projected.Role, "two") }, "b,ops",
		},
		"a part, seen": {
			"somebody was seen to delete it",
			func(f *facts.Facts) {
				for key, live := range f.Projected["a"] {
					if key.Kind == projected.RoleBinding && projected.Prefix(key.Kind, live.Slot) == "one-" {
						f.Lost = map[string]map[facts.Slot]struct{}{"a": {{ScopeHash: live.ScopeHash, Kind: key.Kind, Slot: live.Slot}: {}}}
					}
				}

				deleteAll(f, projected.RoleBinding, "one")
			}, "b,ops",
		},
		"taken over": {
			"what IBM's operator projected is in its place",
			func(f *facts.Facts) {
				deleteAll(f, projected.RoleBinding, "one", "two")
				f.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{"a": {{Kind: projected.Role, Name: "x"}: {}}}
			}, "a,b,ops",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := served()
			tc.change(f)

			p := plan.New([]scope.Scope{s}, f)
			inA := those(&p, func(_ int, namespace string) bool { return namespace == "a" })

			if w := plan.ResolveList(&p.Lists[0], inA, inA); w.Value != tc.want {
				t.Errorf("%s: the list becomes %q, want %q", tc.reason, w.Value, tc.want)
			}

			if w := plan.ResolveList(&p.Lists[0], inA, nil); w.Value != "a,b,ops" {
				t.Errorf("%s: what fails for a moment takes it out: %q", tc.reason, w.Value)
			}
		})
	}
}

// TestCopiesBelongToTheirAuthorization holds to which authorization, and that whatever else owns them is replaced.
func TestCopiesBelongToTheirAuthorization(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"
	mine := facts.Authorization{Name: "x.s", UID: "mine", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "s"}
	f.Authorizations = map[string][]facts.Authorization{"a": {
		{Name: "a", UID: "another's", Account: "another"},
		{Name: "b.t", UID: "for another", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "t"},
		{Name: "c", UID: "for all", Account: "writer"},
		{Name: "d.s+1", UID: "a part", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "s"},
		mine,
	}}

	p := plan.New([]scope.Scope{s}, f)

	for i := range p.Scopes[0].Grant {
		if c := &p.Scopes[0].Grant[i]; c.Namespace != "a" || c.Action != plan.Update || c.Owner == nil || c.Owner.UID != mine.UID {
			t.Errorf("%s %s in %s goes with %+v", c.Action, c.Key.Name, c.Namespace, c.Owner)
		}
	}

	if n := len(p.Scopes[0].Grant); n != 4 {
		t.Errorf("%d copies come to belong to the authorization, want 4", n)
	}

	carryOut(f, &p)

	if p := plan.New([]scope.Scope{s}, f); !p.Empty() {
		t.Errorf("it does not come to rest: %+v", p.Scopes[0].Grant)
	}

	// Without a delegate, the copies are not to go when somebody takes that authorization back.
	own := s
	own.Delegate = ""
	p = plan.New([]scope.Scope{own}, f)

	if g, r := len(p.Scopes[0].Grant), len(p.Scopes[0].Retire); g != 4 || r != 0 {
		t.Errorf("%d copies come in the place of those that belong to an authorization, and %d go, want 4 and none yet", g, r)
	}

	for i := range p.Scopes[0].Grant {
		if c := &p.Scopes[0].Grant[i]; c.Action != plan.Create || c.Owner != nil {
			t.Errorf("%s %s goes with %+v", c.Action, c.Key.Name, c.Owner)
		}
	}

	// The authorization is gone, and garbage collection about to take what belongs to it: nothing unties it.
	f.Authorizations = nil

	if p := plan.New([]scope.Scope{s}, f); !p.Empty() {
		t.Errorf("copies are untied from an authorization that is gone: %+v", p.Scopes[0].Grant)
	}
}

// TestTerminatingMemberWithoutAuthorizationKeepsNothing holds that the end of a namespace does not outlast its owner's
// authorization.
func TestTerminatingMemberWithoutAuthorizationKeepsNothing(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"
	f.Authorizations = map[string][]facts.Authorization{"a": {{Name: "c", UID: "u", Account: "writer"}}}
	p := plan.New([]scope.Scope{s}, f)
	carryOut(f, &p)

	f.Namespaces["a"] = facts.Namespace{Terminating: true}

	if p := plan.New([]scope.Scope{s}, f); len(p.Scopes[0].Prune) != 0 {
		t.Errorf("operators lose what they need to finish: %+v", p.Scopes[0].Prune)
	}

	f.Authorizations = nil

	if p := plan.New([]scope.Scope{s}, f); len(p.Scopes[0].Prune) != 4 {
		t.Errorf("of four copies, %d go", len(p.Scopes[0].Prune))
	}
}
