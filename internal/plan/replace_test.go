package plan_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// rbac is what a cluster of facts grants: the planner sees digests, and the API server content.
type rbac struct {
	*facts.Facts

	t        *rapid.T
	roles    map[string]map[string][]rbacv1.PolicyRule
	bindings map[string]map[string]projected.Object
	// names are all that ever were.
	names map[string]struct{}
}

func newRBAC(t *rapid.T, f *facts.Facts) *rbac {
	return &rbac{
		Facts: f, t: t, roles: map[string]map[string][]rbacv1.PolicyRule{}, bindings: map[string]map[string]projected.Object{},
		names: map[string]struct{}{},
	}
}

// granted are the rules of an account in a namespace.
func (r *rbac) granted(namespace, account string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule

	for _, b := range r.bindings[namespace] {
		for _, s := range b.Subjects {
			if s.Name == account {
				out = append(out, r.roles[namespace][b.RoleRef.Name]...)
			}
		}
	}

	return out
}

// write does one write of a plan, and holds that nobody gains by it who bound a Role before.
func (r *rbac) write(c *plan.Change) {
	if r.roles[c.Namespace] == nil {
		r.roles[c.Namespace], r.bindings[c.Namespace] = map[string][]rbacv1.PolicyRule{}, map[string]projected.Object{}
	}

	full := c.Namespace + "/" + string(c.Key.Kind) + "/" + c.Key.Name
	o := c.Object()

	switch c.Action {
	case plan.Hold:
	case plan.Create:
		if _, was := r.names[full]; was {
			r.t.Fatalf("%s is made under a name that somebody may have bound", full)
		}

		r.names[full] = struct{}{}
	case plan.Update:
		if ok, more := validation.Covers(r.roles[c.Namespace][c.Key.Name], o.Rules); !c.Key.Kind.IsBinding() && !ok {
			r.t.Fatalf("%s gains rules in place: %v", full, more)
		}
	case plan.Delete, plan.Empty:
		delete(r.roles[c.Namespace], c.Key.Name)
		delete(r.bindings[c.Namespace], c.Key.Name)
	}

	if !c.Action.TakesAway() && c.Key.Kind == projected.Role {
		r.roles[c.Namespace][c.Key.Name] = o.Rules
	} else if !c.Action.TakesAway() {
		r.bindings[c.Namespace][c.Key.Name] = o
	}

	carryOutChange(r.Facts, c)
}

// carryOut makes the writes of a plan in the order of the applier, looking after each.
func (r *rbac) carryOut(p *plan.Plan, look func()) {
	for i := range p.Scopes {
		s := &p.Scopes[i]
		for _, phase := range []struct {
			changes       []plan.Change
			bindingsFirst bool
		}{{s.Revoke, true}, {s.Grant, false}, {s.Prune, true}, {s.Retire, true}} {
			for _, first := range []bool{true, false} {
				for j := range phase.changes {
					if c := &phase.changes[j]; c.Key.Kind.IsBinding() == (first == phase.bindingsFirst) {
						r.write(c)
						look()
					}
				}
			}
		}
	}
}

// tamper does to a copy what somebody may do who holds its rules: take rules from it, take it away, or take its marks.
func (r *rbac) tamper(namespace string) {
	keys := slices.SortedFunc(maps.Keys(r.Projected[namespace]), func(a, b facts.ProjectedKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})

	for _, key := range keys {
		live := *r.Projected[namespace][key]

		switch rapid.IntRange(0, 9).Draw(r.t, "tampered with") {
		case 0:
			delete(r.Projected[namespace], key)
			delete(r.roles[namespace], key.Name)
			delete(r.bindings[namespace], key.Name)
		case 1:
			live.ScopeHash, live.Owner, live.Source, live.Slot, live.Digest = "", "", "", "", projected.Digest{1}
			r.Projected[namespace][key] = &live
		case 2:
			live.Terminating, live.Held = true, true
			r.Projected[namespace][key] = &live
		case 3:
			if key.Kind != projected.Role {
				continue
			}

			rules := r.roles[namespace][key.Name]
			rules = rules[:rapid.IntRange(0, len(rules)).Draw(r.t, "rules left")]
			raw, err := json.Marshal(rules)

			if err != nil {
				r.t.Fatal(err)
			}

			r.roles[namespace][key.Name] = rules
			live.Rules, live.Digest, live.Empty = string(raw), projected.Digest{2}, len(rules) == 0
			r.Projected[namespace][key] = &live
		}
	}
}

func oneOperator(t *rapid.T, names *projected.Names) (*rbac, []scope.Scope) {
	f := cluster()
	f.Names = names
	namespaces(f, "a", "b")

	f.OperatorNamespace.Accounts["x"] = struct{}{}
	f.OperatorNamespace.Bindings["b1"] = facts.Binding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r1"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "x"}},
	}

	s := newScope("s1", "a", "b")
	s.Accounts.Named = []string{"x"}

	return newRBAC(t, f), []scope.Scope{s}
}

func someRules(t *rapid.T) []rbacv1.PolicyRule {
	return rapid.SliceOfN(rule(), 1, 4).Draw(t, "rules")
}

// TestNobodyGainsByARole: whatever becomes of the source, and whatever somebody does to the copies in between, no write gives
// rules to a Role that somebody may have bound before. In the end everything is as it should be.
func TestNobodyGainsByARole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, scopes := oneOperator(t, newNames())

		for range 4 {
			r.OperatorNamespace.Roles["r1"] = someRules(t)
			p := plan.New(scopes, r.Facts)
			r.carryOut(&p, func() {})
			r.tamper("a")
			r.Now = r.Now.Add(time.Minute)
		}

		for range 5 {
			p := plan.New(scopes, r.Facts)
			r.carryOut(&p, func() {})
			r.Now = r.Now.Add(time.Minute)
		}

		if p := plan.New(scopes, r.Facts); !p.Scopes[0].Settled() {
			t.Fatalf("it does not come to rest:\n%s", &p)
		}

		for _, namespace := range []string{"a", "b"} {
			same(t, namespace, r.granted(namespace, "x"), r.OperatorNamespace.Roles["r1"])
		}
	})
}

func same(t *rapid.T, namespace string, got, want []rbacv1.PolicyRule) {
	if ok, missing := validation.Covers(got, want); !ok {
		t.Fatalf("in %s these are missing: %v", namespace, missing)
	}

	if ok, more := validation.Covers(want, got); !ok {
		t.Fatalf("in %s these are too many: %v", namespace, more)
	}
}

// TestChangeHasNoGapAndNoLeak: while a Role changes, its account keeps at every moment what it had and is to have, and gets
// nothing that it neither had nor is to have. After the first writes it has nothing any more that it is not to have.
func TestChangeHasNoGapAndNoLeak(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, scopes := oneOperator(t, newNames())
		before, after := someRules(t), someRules(t)

		for _, rules := range [][]rbacv1.PolicyRule{before, after} {
			r.OperatorNamespace.Roles["r1"] = rules

			for range 3 {
				p := plan.New(scopes, r.Facts)
				r.carryOut(&p, func() {
					if len(r.granted("a", "x")) == 0 {
						return // It is not served yet.
					}

					for _, atom := range breakdown(before) {
						covered, _ := validation.Covers(rules, []rbacv1.PolicyRule{atom})
						if held, _ := validation.Covers(r.granted("a", "x"), []rbacv1.PolicyRule{atom}); covered && !held {
							t.Fatalf("a gap: %v is missing for a moment", atom)
						}
					}

					if ok, more := validation.Covers(append(append([]rbacv1.PolicyRule{}, before...), after...), r.granted("a", "x")); !ok {
						t.Fatalf("a leak: %v", more)
					}
				})

				r.Now = r.Now.Add(time.Minute)
			}

			same(t, "a", r.granted("a", "x"), rules)
		}
	})
}

func breakdown(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule

	for _, r := range rules {
		out = append(out, validation.BreakdownRule(r)...)
	}

	return out
}

// TestWritesOfAChange counts them: what is taken away costs one, and comes first; what is added costs four.
func TestWritesOfAChange(t *testing.T) {
	t.Parallel()

	get := func(resources ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: resources}}
	}

	for reason, tc := range map[string]struct {
		before, after                  []rbacv1.PolicyRule
		revoke, create, update, retire int
	}{
		"a rule is taken away":          {get("pods", "secrets"), get("pods"), 1, 0, 0, 0},
		"all are taken away":            {get("pods"), nil, 1, 0, 0, 0},
		"a rule is added":               {get("pods"), get("pods", "secrets"), 0, 2, 0, 2},
		"one goes and one comes":        {get("pods", "nodes"), get("pods", "secrets"), 1, 2, 0, 2},
		"the same in other words":       {get("pods", "secrets"), append(get("pods"), get("secrets")...), 0, 0, 1, 0},
		"a wildcard becomes one of its": {get("*"), get("pods"), 1, 0, 0, 0},
	} {
		rapid.Check(t, func(rt *rapid.T) {
			r, scopes := oneOperator(rt, newNames())
			scopes[0].Members.Named = []string{"a"}
			r.OperatorNamespace.Roles["r1"] = tc.before
			p := plan.New(scopes, r.Facts)
			r.carryOut(&p, func() {})

			r.Now, r.OperatorNamespace.Roles["r1"] = r.Now.Add(time.Minute), tc.after
			p = plan.New(scopes, r.Facts)
			s := &p.Scopes[0]
			created, updated := 0, 0

			for i := range s.Grant {
				if s.Grant[i].Action == plan.Create {
					created++
				} else {
					updated++
				}
			}

			revoked := len(s.Revoke)
			r.carryOut(&p, func() {})

			r.Now = r.Now.Add(time.Minute)
			r.Granting = map[string]struct{}{"a": {}, r.Key.Namespace: {}}

			if p = plan.New(scopes, r.Facts); len(p.Scopes[0].Retire) > 0 {
				rt.Fatalf("%s: retires %d while a write is under way", reason, len(p.Scopes[0].Retire))
			}

			r.Granting = nil
			p = plan.New(scopes, r.Facts)

			if retired := len(p.Scopes[0].Retire); revoked != tc.revoke || created != tc.create || updated != tc.update ||
				retired != tc.retire {
				rt.Fatalf("%s: revokes %d, creates %d, updates %d, retires %d", reason, revoked, created, updated, retired)
			}
		})
	}
}

// TestDeletedCopiesGiveNothing: a tenant can delete every copy that comes, and keep each by a finalizer. None of them is to give
// anything until others come in their place, since none ever stays.
func TestDeletedCopiesGiveNothing(t *testing.T) {
	t.Parallel()

	s, f := served()
	f.Names, f.Projected = newNames(), map[string]map[facts.ProjectedKey]*facts.Projected{}

	p := plan.New([]scope.Scope{s}, f)
	carryOut(f, &p)

	for range 3 {
		holdCopies(f, true)

		held := maps.Clone(f.Projected["a"])
		p = plan.New([]scope.Scope{s}, f)
		carryOut(f, &p)

		for key := range held {
			if live := f.Projected["a"][key]; live != nil && !live.Empty {
				t.Errorf("%s %s gives what it gave", key.Kind, key.Name)
			}
		}

		if made := len(f.Projected["a"]); made != len(held) {
			t.Errorf("there are %d copies instead of %d", made, len(held))
		}
	}
}
