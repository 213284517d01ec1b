package plan_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// left is a cluster in which the namespace a has left the scope, and something waits there.
func left() (scope.Scope, *facts.Facts) {
	s, f := served()
	s.Members.Named = []string{"b"}
	s.Reported = []string{"a", "b", "ops"}
	f.FinishGrace = time.Minute
	f.Waiting = map[facts.WaitingKey]facts.Waiting{waits(s): {Objects: []string{"widgets.example.com one"}, Count: 1}}

	return s, f
}

func waits(s scope.Scope) facts.WaitingKey {
	return facts.WaitingKey{Scope: s.Owner.Hash(), Namespace: "a"}
}

func listOf(p *plan.Plan) string { return plan.ResolveList(&p.Lists[0], nil, nil).Value }

// TestAMemberThatLeftFinishes holds when a namespace that left keeps what it has, and what ends that.
func TestAMemberThatLeftFinishes(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason    string
		change    func(*scope.Scope, *facts.Facts)
		finishing bool
	}{
		"something waits": {"operators finish", func(*scope.Scope, *facts.Facts) {}, true},
		"nothing waits": {"there is nothing to finish", func(s *scope.Scope, f *facts.Facts) {
			f.Waiting[waits(*s)] = facts.Waiting{Kept: []string{"widgets.example.com two"}, KeptCount: 1}
		}, false},
		"nobody may look": {"something may wait", func(s *scope.Scope, f *facts.Facts) {
			f.Waiting[waits(*s)] = facts.Waiting{Unseen: "it may not be listed"}
		}, true},
		"nobody may look, for long": {"nobody keeps permissions a minute for nothing", func(s *scope.Scope, f *facts.Facts) {
			s.Finishing = map[string]time.Time{"a": f.Now.Add(-5 * time.Second)}
			f.Waiting[waits(*s)] = facts.Waiting{Unseen: "it may not be listed"}
		}, false},
		"not all may be seen, and something waits": {"the time is not over", func(s *scope.Scope, f *facts.Facts) {
			s.Finishing = map[string]time.Time{"a": f.Now.Add(-59 * time.Second)}
			f.Waiting[waits(*s)] = facts.Waiting{Unseen: "it may not be listed", Objects: []string{"widgets one"}, Count: 1}
		}, true},
		"it was not looked at yet": {"something may wait", func(_ *scope.Scope, f *facts.Facts) { clear(f.Waiting) }, true},
		"nobody looks at all":      {"nothing is known to wait", func(_ *scope.Scope, f *facts.Facts) { f.Waiting = nil }, false},
		"no grace is given":        {"the flag is 0", func(_ *scope.Scope, f *facts.Facts) { f.FinishGrace = 0 }, false},
		"it left a while ago": {"the time is not over", func(s *scope.Scope, f *facts.Facts) {
			s.Finishing = map[string]time.Time{"a": f.Now.Add(-59 * time.Second)}
		}, true},
		"the time is over": {"the status says since when", func(s *scope.Scope, f *facts.Facts) {
			s.Finishing = map[string]time.Time{"a": f.Now.Add(-time.Minute)}
		}, false},
		"the time is over for many": {"the status had no room for this one", func(s *scope.Scope, f *facts.Facts) {
			s.FinishingSince = f.Now.Add(-time.Minute)
		}, false},
		"the time is over as is remembered": {"nobody gives more by writing into the status", func(s *scope.Scope, f *facts.Facts) {
			s.Finishing = map[string]time.Time{"a": f.Now.Add(time.Hour)}
			f.Finishing = map[facts.WaitingKey]time.Time{waits(*s): f.Now.Add(-time.Minute)}
		}, false},
		"the list forgot it": {"who is out does not come in again", func(_ *scope.Scope, f *facts.Facts) {
			cm := f.OperatorNamespace.ConfigMaps["namespace-scope"]
			cm.List, cm.ListHash = "b,ops", scope.ListHash("b,ops", cm.Generation)
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = cm
		}, false},
		"the scope is deleted": {"all of it goes", func(s *scope.Scope, f *facts.Facts) { s.Deleted = f.Now }, false},
		"the authorization is gone": {"its owner took it back", func(_ *scope.Scope, f *facts.Facts) {
			changeCopies(f, func(_ facts.ProjectedKey, live *facts.Projected) { live.Owners = "authorization" })
		}, false},
		"it is closed": {"nothing can be done there", func(_ *scope.Scope, f *facts.Facts) {
			f.Namespaces["a"] = facts.Namespace{Closed: "it may not be read"}
		}, false},
		"nobody holds anything there": {"there is nothing to keep", func(_ *scope.Scope, f *facts.Facts) {
			maps.DeleteFunc(f.Projected["a"], func(k facts.ProjectedKey, _ *facts.Projected) bool {
				return k.Kind == projected.RoleBinding
			})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := left()
			tc.change(&s, f)

			p := plan.New([]scope.Scope{s}, f)
			want := "b,ops"

			if tc.finishing {
				want = "a,b,ops"
			}

			if s.Deleting() {
				want = ""
			}

			if got := listOf(&p); got != want {
				t.Errorf("%s: the list is %q, want %q", tc.reason, got, want)
			}

			is := &p.Scopes[0]
			if is.IsFinishing("a") != tc.finishing || (len(is.Prune) == 0) != tc.finishing {
				t.Errorf("%s: finishing %+v, pruned %+v", tc.reason, is.Finishing, is.Prune)
			}

			if len(is.Revoke)+len(is.Grant) > 0 {
				t.Errorf("%s: revoked %+v, granted %+v", tc.reason, is.Revoke, is.Grant)
			}

			if tc.finishing && (p.Again.IsZero() || p.Again.After(f.Now.Add(5*time.Second))) {
				t.Errorf("%s: it is looked again at %s", tc.reason, p.Again)
			}
		})
	}
}

// TestWhatBeganIsKnown holds that a namespace began to finish if the plan before did not have it, and that an Ambit which has
// just started takes none for one that did: the status had no room to tell.
func TestWhatBeganIsKnown(t *testing.T) {
	t.Parallel()

	s, f := left()
	other := facts.WaitingKey{Scope: waits(s).Scope, Namespace: "c"}

	for _, tc := range []struct {
		reason string
		before map[facts.WaitingKey]time.Time
		want   bool
	}{
		{"nothing is remembered", nil, false},
		{"nothing of this scope is", map[facts.WaitingKey]time.Time{{Scope: "other", Namespace: "a"}: f.Now}, false},
		{"it is remembered", map[facts.WaitingKey]time.Time{waits(s): f.Now, other: f.Now}, false},
		{"another one is", map[facts.WaitingKey]time.Time{other: f.Now}, true},
	} {
		f.Finishing = tc.before

		p := plan.New([]scope.Scope{s}, f)
		if got := p.Scopes[0].Finishing; len(got) != 1 || got[0].Began != tc.want {
			t.Errorf("%s: %+v", tc.reason, got)
		}
	}
}

// TestARevocationDoesNotWaitForFinishing holds that what is taken away at the source, and what somebody makes of a copy, goes
// at once, and that nothing comes to a namespace that left.
func TestARevocationDoesNotWaitForFinishing(t *testing.T) {
	t.Parallel()

	source := func(f *facts.Facts, resources ...string) {
		if f.OperatorNamespace.Roles["one"] = nil; len(resources) == 0 {
			return
		}

		f.OperatorNamespace.Roles["one"] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get"}}}
	}

	for name, tc := range map[string]struct {
		change          func(*facts.Facts)
		deleted, shrunk int
	}{
		"nothing":         {func(*facts.Facts) {}, 0, 0},
		"a binding":       {func(f *facts.Facts) { delete(f.OperatorNamespace.Bindings, "one") }, 2, 0},
		"a role":          {func(f *facts.Facts) { delete(f.OperatorNamespace.Roles, "one") }, 2, 0},
		"an account":      {func(f *facts.Facts) { delete(f.OperatorNamespace.Accounts, "op") }, 4, 0},
		"a rule":          {func(f *facts.Facts) { source(f) }, 0, 1},
		"another rule":    {func(f *facts.Facts) { source(f, "other") }, 0, 1},
		"one rule more":   {func(f *facts.Facts) { source(f, "one", "other") }, 0, 0},
		"a binding grows": {func(f *facts.Facts) { f.OperatorNamespace.Bindings["three"] = f.OperatorNamespace.Bindings["two"] }, 0, 0},
		"a subject comes": {func(f *facts.Facts) {
			changeCopies(f, func(key facts.ProjectedKey, live *facts.Projected) {
				if key.Kind == projected.RoleBinding {
					live.Digest = projected.Digest{1}
				}
			})
		}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := left()
			tc.change(f)

			p := plan.New([]scope.Scope{s}, f)
			deleted, updates := revokedInA(t, &p)
			shrunk := 0

			for _, c := range updates {
				if len(c.Rules) == 0 && c.Rules != nil {
					shrunk++
				}
			}

			if deleted != tc.deleted || shrunk != tc.shrunk {
				t.Errorf("revoked %+v", p.Scopes[0].Revoke)
			}
		})
	}
}

// revokedInA are how many objects a plan revokes in a by deleting them, and the updates by which it revokes something there. What
// only revokes gives nothing, and prunes nothing.
func revokedInA(t *testing.T, p *plan.Plan) (deleted int, updates []plan.Change) {
	t.Helper()

	for _, c := range p.Scopes[0].Revoke {
		switch {
		case c.Namespace != "a":
		case c.Action == plan.Delete:
			deleted++
		case c.Action == plan.Update:
			updates = append(updates, c)
		}
	}

	if len(p.Scopes[0].Prune) > 0 {
		t.Errorf("pruned %+v", p.Scopes[0].Prune)
	}

	for _, c := range p.Scopes[0].Grant {
		if c.Namespace == "a" {
			t.Errorf("granted %+v", c)
		}
	}

	return deleted, updates
}

// TestARevocationDoesNotWaitForANamespace holds that what is taken away at the source goes at once from a member that is being
// deleted, which a pod that does not end keeps for as long as somebody likes; that nothing comes there, and that the rest stays.
func TestARevocationDoesNotWaitForANamespace(t *testing.T) {
	t.Parallel()

	rules := func(f *facts.Facts, resources ...string) {
		f.OperatorNamespace.Roles["one"] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get"}}}
	}

	for name, tc := range map[string]struct {
		change           func(*facts.Facts)
		deleted, updated int
	}{
		"nothing":          {func(*facts.Facts) {}, 0, 0},
		"a binding":        {func(f *facts.Facts) { delete(f.OperatorNamespace.Bindings, "one") }, 2, 0},
		"a role":           {func(f *facts.Facts) { delete(f.OperatorNamespace.Roles, "one") }, 2, 0},
		"an account":       {func(f *facts.Facts) { delete(f.OperatorNamespace.Accounts, "op") }, 4, 0},
		"another rule":     {func(f *facts.Facts) { rules(f, "other") }, 0, 1},
		"one rule more":    {func(f *facts.Facts) { rules(f, "one", "other") }, 0, 0},
		"it is made anew":  {func(f *facts.Facts) { changeBindings(f, `[]`) }, 0, 0},
		"a subject leaves": {func(f *facts.Facts) { changeBindings(f, `[{"kind":"ServiceAccount","name":"z"}]`) }, 0, 2},
	} {
		for _, delegate := range []string{"", "delegate"} {
			t.Run(name+delegate, func(t *testing.T) {
				t.Parallel()

				s, f := served()
				s.Delegate = delegate
				f.Namespaces["a"] = facts.Namespace{Terminating: true, Deleted: f.Now.Add(-time.Hour)}
				tc.change(f)

				p := plan.New([]scope.Scope{s}, f)
				deleted, updates := revokedInA(t, &p)

				if deleted != tc.deleted || len(updates) != tc.updated {
					t.Errorf("revoked %+v", p.Scopes[0].Revoke)
				}
			})
		}
	}
}

// changeBindings has the bindings in a say something else, and name these subjects.
func changeBindings(f *facts.Facts, subjects string) {
	changeCopies(f, func(key facts.ProjectedKey, live *facts.Projected) {
		if key.Kind == projected.RoleBinding {
			content := *live.Content
			content.Digest, content.Subjects = projected.Digest{1}, subjects
			live.Content = &content
		}
	})
}

// TestADeletedMemberFinishes holds when a namespace that is being deleted keeps what it has, and that the copies there are held
// as long as it does and no longer.
func TestADeletedMemberFinishes(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason     string
		change     func(*scope.Scope, *facts.Facts)
		held, gone int
		listed     bool
	}{
		"something waits": {"operators finish", func(*scope.Scope, *facts.Facts) {}, 4, 0, true},
		"it left before": {"it is no member, and finishes", func(s *scope.Scope, _ *facts.Facts) {
			s.Members.Named = []string{"b"}
		}, 4, 0, true},
		"held already": {"nothing is to be done", func(_ *scope.Scope, f *facts.Facts) { holdCopies(f, false) }, 0, 0, true},
		"being deleted": {"Kubernetes deletes the copies, and they stay", func(_ *scope.Scope, f *facts.Facts) {
			holdCopies(f, true)
		}, 0, 0, true},
		"nothing waits": {"the copies go with the namespace", func(s *scope.Scope, f *facts.Facts) {
			f.Waiting[waits(*s)] = facts.Waiting{}
		}, 0, 0, false},
		"nothing waits any more": {"what was held is let go", func(s *scope.Scope, f *facts.Facts) {
			holdCopies(f, true)
			f.Waiting[waits(*s)] = facts.Waiting{}
		}, 0, 4, false},
		"the time is over": {"what was held is let go", func(_ *scope.Scope, f *facts.Facts) {
			holdCopies(f, true)
			f.Now = f.Now.Add(time.Minute)
		}, 0, 4, false},
		"the scope is deleted": {"what was held is let go", func(s *scope.Scope, f *facts.Facts) {
			holdCopies(f, true)
			s.Deleted = f.Now
		}, 0, 4, false},
		"no grace is given any more": {"what was held is let go", func(_ *scope.Scope, f *facts.Facts) {
			holdCopies(f, true)
			f.FinishGrace = 0
		}, 0, 4, false},
		"a delegate writes": {"its rights may be among what is deleted", func(s *scope.Scope, _ *facts.Facts) {
			s.Delegate = "delegate"
		}, 0, 0, false},
		"Ambit's rights may be gone": {"nobody could let go of the copies", func(_ *scope.Scope, f *facts.Facts) {
			f.MayHold = false
		}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := left()
			s.Members.Named, f.MayHold = []string{"a", "b"}, true
			f.Namespaces["a"] = facts.Namespace{Terminating: true, Deleted: f.Now.Add(-time.Second)}
			tc.change(&s, f)

			p := plan.New([]scope.Scope{s}, f)
			held, gone := 0, 0

			for _, c := range p.Scopes[0].Hold {
				if c.Namespace == "a" && c.Action == plan.Hold {
					held++
				}
			}

			for _, c := range p.Scopes[0].Prune {
				if c.Namespace == "a" && c.Action == plan.Empty {
					gone++
				}
			}

			if held != tc.held || gone != tc.gone {
				t.Errorf("%s: held %+v, pruned %+v", tc.reason, p.Scopes[0].Hold, p.Scopes[0].Prune)
			}

			if listed := strings.HasPrefix(listOf(&p), "a,"); listed != tc.listed {
				t.Errorf("%s: the list is %q", tc.reason, listOf(&p))
			}
		})
	}
}

// holdCopies makes the copies in a those that were held, and deleted after that.
func holdCopies(f *facts.Facts, deleted bool) {
	changeCopies(f, func(_ facts.ProjectedKey, live *facts.Projected) { live.Held, live.Terminating = true, deleted })
}

// changeCopies puts changed records in the place of those of the copies in a.
func changeCopies(f *facts.Facts, change func(facts.ProjectedKey, *facts.Projected)) {
	for key, live := range f.Projected["a"] {
		changed := *live
		change(key, &changed)
		f.Projected["a"][key] = &changed
	}
}
