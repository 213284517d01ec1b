package plan_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func nothingMissing(int, string) bool { return false }

// those are the members of scopes of which something is so.
func those(p *plan.Plan, is func(index int, namespace string) bool) plan.Members {
	out := plan.Members{}

	for i := range p.Scopes {
		for _, namespace := range p.Scopes[i].Members {
			if is(i, namespace) {
				out[plan.Member{Scope: i, Namespace: namespace}] = struct{}{}
			}
		}
	}

	return out
}

func TestWatchList(t *testing.T) {
	t.Parallel()

	settled := func(list string) facts.ConfigMap {
		return facts.ConfigMap{HasList: true, List: list, ListHash: scope.ListHash(list, 0), Applied: now, Created: true}
	}
	two := []scope.Scope{newScope("s1", "b"), newScope("s2", "a", "b")}
	barred := func(reported ...string) []scope.Scope {
		s1, s2 := newScope("s1", "b"), newScope("s2", "a", "b")
		s1.Barred, s2.Barred, s1.Reported = true, true, reported

		return []scope.Scope{s1, s2}
	}

	refused := func() []scope.Scope {
		out := barred()
		for i := range out {
			out[i].MayNotList = true
		}

		return out
	}

	for name, tc := range map[string]struct {
		reason  string
		scopes  []scope.Scope
		live    *facts.ConfigMap
		missing func(int, string) bool
		action  plan.ListAction
		value   string
	}{
		"union": {"scopes that name one ConfigMap share it", two, nil, nothingMissing, plan.ApplyList, "a,b,ops"},
		"own": {"the operator namespace is always a member", []scope.Scope{newScope("s")}, nil,
			nothingMissing, plan.ApplyList, "ops"},
		"kept": {"a list that is right is not written", two, new(settled("a,b,ops")), nothingMissing, plan.KeepList, "a,b,ops"},
		"drift": {
			"a list that somebody changed is", two,
			&facts.ConfigMap{HasList: true, List: "evil", ListHash: scope.ListHash("a,b,ops", 0), Applied: now},
			nothingMissing, plan.ApplyList, "a,b,ops",
		},
		"not served": {
			"a member without its permissions does not enter", two, new(settled("ops")),
			func(_ int, ns string) bool { return ns == "a" }, plan.ApplyList, "b,ops",
		},
		"not served by one of two": {
			"every scope that shares the list must have its permissions there", two, new(settled("ops")),
			func(i int, ns string) bool { return i == 1 && ns == "b" }, plan.ApplyList, "a,ops",
		},
		"once in": {
			"a member that is in the list stays", two, new(settled("a,ops")),
			func(int, string) bool { return true }, plan.KeepList, "a,ops",
		},
		"no member any more": {
			"whoever is in the list and no member leaves it", []scope.Scope{newScope("s")}, new(settled("a,ops")),
			nothingMissing, plan.ApplyList, "ops",
		},
		"immutable": {
			"an immutable ConfigMap cannot be written", two, &facts.ConfigMap{HasList: true, List: "x", Immutable: true},
			nothingMissing, plan.BlockedList, "a,b,ops",
		},
		"nobody may write": {
			"readers would begin with the operator namespace alone, and once more soon after", barred(), nil,
			nothingMissing, plan.KeepList, "",
		},
		"nobody may write, other keys": {
			"nor is it there in the ConfigMap of somebody else", barred(), &facts.ConfigMap{OtherKeys: true},
			nothingMissing, plan.KeepList, "",
		},
		"one may write": {
			"what it projects is settled", append(barred()[:1], newScope("s2", "a")), nil, nothingMissing, plan.ApplyList, "a,ops",
		},
		"left by the one that may write": {
			"operators are not kept there by somebody who may not send them there, and where they have nothing",
			append(refused()[:1], newScope("s2", "a")), new(settled("a,b,ops")), nothingMissing, plan.ApplyList, "a,ops",
		},
		"left by the one that may write, and nobody was heard about the other": {
			"operators do not begin again because an answer is late",
			append(barred()[:1], newScope("s2", "a")), new(settled("a,b,ops")), nothingMissing, plan.KeepList, "a,b,ops",
		},
		"nobody may write, deleted": {
			"readers that begin again would find none", barred("a", "ops"), nil, nothingMissing, plan.ApplyList, "a,ops",
		},
		"nobody may write, changed": {
			"whoever left is not in it", barred(), new(settled("a,ops,z")), nothingMissing, plan.ApplyList, "a,ops",
		},
		"last scope": {
			"a ConfigMap of Ambit's making goes with its last scope", nil, new(settled("ops")),
			nothingMissing, plan.DeleteList, "",
		},
		"last scope, other keys": {
			"other keys survive", nil,
			&facts.ConfigMap{HasList: true, List: "ops", ListHash: "x", Applied: now, Created: true, OtherKeys: true},
			nothingMissing, plan.ReleaseList, "",
		},
		"last scope, adopted": {
			"a ConfigMap that was there before survives", nil,
			&facts.ConfigMap{HasList: true, List: "ops", ListHash: "x", Applied: now}, nothingMissing, plan.ReleaseList, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			namespaces(f, "a", "b")

			if tc.live != nil {
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = *tc.live
			}

			p := plan.New(tc.scopes, f)
			if len(p.Lists) != 1 {
				t.Fatalf("%s: %d lists", tc.reason, len(p.Lists))
			}

			w := plan.ResolveList(&p.Lists[0], those(&p, tc.missing), nil)
			if w.Action != tc.action || w.Value != tc.value {
				t.Errorf("%s: got %s %q, want %s %q", tc.reason, w.Action, w.Value, tc.action, tc.value)
			}
		})
	}
}

func TestRepairingAListIsNoChange(t *testing.T) {
	t.Parallel()

	earlier := now.Add(-time.Hour)
	hash := scope.ListHash("ops", 0)

	for name, tc := range map[string]struct {
		reason string
		live   *facts.ConfigMap
		since  time.Time
		// unknown says that no status speaks of the list yet.
		unknown bool
	}{
		"of somebody else": {
			"one that is taken over is as old as who wrote it says",
			&facts.ConfigMap{HasList: true, List: "ops", Written: earlier}, earlier, true,
		},
		"of nobody": {
			"where that is not recorded, readers may not know it",
			&facts.ConfigMap{HasList: true, List: "ops"}, time.Time{}, true,
		},
		"another one of somebody else": {
			"nobody knows the list that takes the place of another",
			&facts.ConfigMap{HasList: true, List: "ops,z", Written: earlier}, time.Time{}, true,
		},
		"changed": {
			"a new list begins with its write",
			&facts.ConfigMap{HasList: true, List: "a", ListHash: scope.ListHash("a", 0), Applied: earlier}, time.Time{}, false,
		},
		"edited": {
			"a list that somebody edited is as old as before",
			&facts.ConfigMap{HasList: true, List: "x", ListHash: hash, Applied: earlier}, earlier, false,
		},
		"edited anew": {
			"also the second time",
			&facts.ConfigMap{HasList: true, List: "x", ListHash: hash, Applied: now, Since: earlier}, earlier, false,
		},
		"key taken away": {
			"so is one whose key somebody took away",
			&facts.ConfigMap{ListHash: hash, Applied: now}, now.Add(-time.Hour), false,
		},
		"of a time to come": {
			"whoever may edit the ConfigMap can write any time into it, and the API server knows better",
			&facts.ConfigMap{HasList: true, List: "x", ListHash: hash, Applied: earlier, Since: now.AddDate(73, 0, 0)}, earlier, false,
		},
		"nobody knows whose": {
			"one is written again of which the API server has forgotten that Ambit wrote it",
			&facts.ConfigMap{HasList: true, List: "ops", ListHash: hash, Since: now.AddDate(73, 0, 0)}, now.Add(-time.Hour), false,
		},
		"unmarked": {"so is one that lost its marks", &facts.ConfigMap{HasList: true, List: "ops", Applied: earlier}, earlier, false},
		"deleted":  {"and one that was deleted, by what status says", nil, now.Add(-time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			if tc.live != nil {
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = *tc.live
			}

			s := newScope("s")
			if !tc.unknown {
				s.Reported = []string{"ops"}
			}

			p := plan.New([]scope.Scope{s}, f)
			if w := plan.ResolveList(&p.Lists[0], nil, nil); w.Action != plan.ApplyList || !w.Since.Equal(tc.since) {
				t.Errorf("%s: got %s since %s, want since %s", tc.reason, w.Action, w.Since, tc.since)
			}
		})
	}
}

// TestWhoMayNotWriteTheListKeepsItsMembers: a scope whose account lost the right to write the list it shares keeps the members in
// which it has something.
func TestWhoMayNotWriteTheListKeepsItsMembers(t *testing.T) {
	t.Parallel()

	f := cluster()
	namespaces(f, "a", "b")
	f.OperatorNamespace.Accounts["op"] = struct{}{}
	f.OperatorNamespace.Bindings["op"] = facts.Binding{
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
	}

	scopes := []scope.Scope{newScope("may", "a"), newScope("mayNot", "b")}
	for i := range scopes {
		scopes[i].Accounts = scope.Accounts{All: true}
	}

	p := plan.New(scopes, f)
	carryOut(f, &p)

	scopes[1].Barred, scopes[1].MayNotList = true, true

	p = plan.New(scopes, f)
	if w := plan.ResolveList(&p.Lists[0], nil, nil); w.Action != plan.KeepList || w.Value != "a,b,ops" {
		t.Errorf("the list is to be %q (%s), want it to stay", w.Value, w.Action)
	}
}
