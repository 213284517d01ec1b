package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ibmName is the name that IBM's operator gives to its copy of a Role without a dot.
func ibmName(role, account string) string {
	sum := sha256.Sum256([]byte(role + account + "ops"))

	return role + "-" + hex.EncodeToString(sum[:7])
}

// TestWhatIBMsOperatorMadeIsDistinguishedFromForgeries holds that its work is found among any number of objects that bear its
// marks, also a Role whose binding or whose source is gone, and that looking for it costs as much as there is to look at, and not
// its square.
//
// No test runs beside it: what that allocates would count, too.
func TestWhatIBMsOperatorMadeIsDistinguishedFromForgeries(t *testing.T) {
	const forged, accounts = 3000, 300

	f := cluster()
	namespaces(f, "served", "evil")

	for i := range accounts {
		f.OperatorNamespace.Accounts[fmt.Sprintf("account-%d", i)] = struct{}{}
	}

	role := func(name string) facts.ProjectedKey { return facts.ProjectedKey{Kind: projected.Role, Name: name} }
	binding := func(name string) facts.ProjectedKey {
		return facts.ProjectedKey{Kind: projected.RoleBinding, Name: name}
	}
	marked := facts.Legacy{Mark: facts.LegacyMark("list", "ops"), Labelled: true, List: "list"}
	bound := func(account, operatorNamespace string) facts.Legacy {
		i := marked
		i.Account, i.AccountNamespace = account, operatorNamespace

		return i
	}

	f.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{
		"served": {
			role(ibmName("r", "gone")):         marked,
			binding(ibmName("r", "gone")):      bound("gone", "ops"),
			role(ibmName("s", "account-7")):    marked,
			binding(ibmName("s", "elsewhere")): bound("elsewhere", "other"),
		},
		"evil": {},
	}

	for i := range forged {
		name := fmt.Sprintf("forged%d-0123456789abcd", i)
		f.Legacy["evil"][role(name)] = marked
		f.Legacy["evil"][binding(name)] = bound(fmt.Sprintf("made-up-%d", i), "ops")
	}

	s := newScope("s", "served", "evil")
	s.WatchList, s.Accounts = "list", scope.Accounts{}

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	p := plan.New([]scope.Scope{s}, f)

	runtime.ReadMemStats(&after)

	if got := len(p.Scopes[0].Legacy); got != 3 {
		t.Errorf("%d objects go, want 3: %v", got, p.Scopes[0].Legacy)
	}

	if got := len(p.Scopes[0].ForeignLegacy); got != 2*forged+1 {
		t.Errorf("%d objects are left alone, want %d", got, 2*forged+1)
	}

	// It is about 4 MiB. Each name with each account would be a hundred times as much.
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20 {
		t.Errorf("the plan took %d MiB", took)
	}
}

// TestWhatOfIBMsOperatorGoes: only what that operator itself wrote for this list goes, once all scopes of the list are served
// there.
func TestWhatOfIBMsOperatorGoes(t *testing.T) {
	t.Parallel()

	key := facts.ProjectedKey{Kind: projected.RoleBinding, Name: ibmName("r", "op")}

	for reason, tc := range map[string]struct {
		change  func(*takeOver)
		goes    bool
		foreign bool
	}{
		"a binding": {func(*takeOver) {}, true, false},
		"a Role": {func(w *takeOver) {
			w.key.Kind, w.live.Account, w.live.AccountNamespace = projected.Role, "", ""
		}, true, false},
		"with other labels":  {func(w *takeOver) { w.live.Labelled = false }, false, true},
		"for another list":   {func(w *takeOver) { w.live.List = "other" }, false, true},
		"for nobody":         {func(w *takeOver) { w.live.Account = "" }, false, true},
		"for somebody else":  {func(w *takeOver) { w.live.Account = "mallory" }, false, true},
		"for one of another": {func(w *takeOver) { w.live.AccountNamespace = "a" }, false, true},
		"with another name":  {func(w *takeOver) { w.key.Name = "r-0123456789abcd" }, false, true},
		"with a name of no parts": {
			func(w *takeOver) { w.key.Name = "-0123456789abcd" }, false, true,
		},
		"of a kind that it never made": {
			func(w *takeOver) { w.key.Kind = projected.ClusterRole }, false, true,
		},
		"marked for another list": {
			func(w *takeOver) { w.live.Mark = "other" }, false, false,
		},
		"where another scope of the list is not served yet": {
			func(w *takeOver) {
				more := newScope("t", "a")
				more.WatchList, more.Accounts = "list", scope.Accounts{Named: []string{"op"}}
				w.scopes = append(w.scopes, more)
				w.bind()
			}, false, false,
		},
		"where one of another list is not": {
			func(w *takeOver) {
				more := newScope("t", "a")
				more.Accounts = scope.Accounts{Named: []string{"op"}}
				w.scopes = append(w.scopes, more)
				w.bind()
			}, true, false,
		},
		"in a moment, once the authorizer knows": {
			func(w *takeOver) {
				w.facts.Granted = w.facts.Now.Add(time.Millisecond - plan.Propagation)
			}, false, false,
		},
		"now that it does": {
			func(w *takeOver) {
				w.facts.Granted = w.facts.Now.Add(-plan.Propagation)
			}, true, false,
		},
		"in a moment, once what is being written is": {
			func(w *takeOver) { w.facts.Granting = map[string]struct{}{"a": {}} }, false, false,
		},
		"while something is being written elsewhere": {
			func(w *takeOver) { w.facts.Granting = map[string]struct{}{"b": {}} }, true, false,
		},
		"where nobody works, at once": {
			func(w *takeOver) {
				w.scopes[0].Members.Named = nil
				w.facts.Granted = w.facts.Now
			}, true, false,
		},
	} {
		w := &takeOver{facts: cluster(), key: key, live: facts.Legacy{
			Mark: facts.LegacyMark("list", "ops"), Labelled: true, List: "list", Account: "op", AccountNamespace: "ops", Version: 5,
		}}
		namespaces(w.facts, "a")
		w.facts.OperatorNamespace.Accounts["op"] = struct{}{}

		s := newScope("s", "a")
		s.WatchList, s.Accounts = "list", scope.Accounts{}
		w.scopes = []scope.Scope{s}

		tc.change(w)
		w.facts.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{"a": {w.key: w.live}}

		all := plan.New(w.scopes, w.facts).Scopes
		got := all[slices.IndexFunc(all, func(s plan.ScopePlan) bool { return s.Scope.Owner.Name == "s" })]

		if (len(got.Legacy) == 1) != tc.goes || (len(got.ForeignLegacy) == 1) != tc.foreign {
			t.Errorf("%s: %v go, and of others are %v", reason, got.Legacy, got.ForeignLegacy)
		}

		if tc.goes && (got.Legacy[0].Action != plan.Delete || got.Legacy[0].Key != w.key || got.Legacy[0].Version != 5) {
			t.Errorf("%s: %+v", reason, got.Legacy[0])
		}
	}
}

// takeOver is an object that IBM's operator made in a member.
type takeOver struct {
	scopes []scope.Scope
	facts  *facts.Facts
	key    facts.ProjectedKey
	live   facts.Legacy
}

// bind gives the operator something to project.
func (w *takeOver) bind() {
	w.facts.OperatorNamespace.Bindings["b"] = facts.Binding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
	}
}

// TestWhoRemovesWhatIBMsOperatorMade: of the scopes that share a list, it is one that is served there, whose account has rights
// there; and one that is being deleted removes nothing while another one stays, or it would wait for rights that it never needed.
func TestWhoRemovesWhatIBMsOperatorMade(t *testing.T) {
	t.Parallel()

	key := facts.ProjectedKey{Kind: projected.RoleBinding, Name: ibmName("r", "op")}
	live := facts.Legacy{
		Mark: facts.LegacyMark("list", "ops"), Labelled: true, List: "list", Account: "op", AccountNamespace: "ops", Version: 5,
	}
	named := func(name string, members ...string) scope.Scope {
		s := newScope(name, members...)
		s.WatchList, s.Accounts = "list", scope.Accounts{}

		return s
	}
	deleted := func(s scope.Scope) scope.Scope {
		s.Deleted = time.Now()

		return s
	}

	for reason, tc := range map[string]struct {
		scopes []scope.Scope
		want   string
	}{
		"the first of those that are served there":          {[]scope.Scope{named("s"), named("t", "a"), named("u", "a")}, "t"},
		"the first, where none is":                          {[]scope.Scope{named("s"), named("t")}, "s"},
		"one that stays":                                    {[]scope.Scope{deleted(named("s", "a")), named("t")}, "t"},
		"one that is deleted, where none stays":             {[]scope.Scope{deleted(named("s", "a")), deleted(named("t"))}, "s"},
		"one of the list, whoever else is served there":     {[]scope.Scope{newScope("s", "a"), named("t")}, "t"},
		"one that is served there before one that is first": {[]scope.Scope{named("s", "b"), named("t", "a", "b")}, "t"},
	} {
		f := cluster()
		namespaces(f, "a", "b")
		f.OperatorNamespace.Accounts["op"] = struct{}{}

		foreign := key
		foreign.Name = "my-own"
		f.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{"a": {key: live, foreign: live}}

		for _, s := range plan.New(tc.scopes, f).Scopes {
			want := 0
			if s.Scope.Owner.Name == tc.want {
				want = 1
			}

			if len(s.Legacy) != want || len(s.ForeignLegacy) != want {
				t.Errorf("%s: scope %s removes %v and leaves %v", reason, s.Scope.Owner.Name, s.Legacy, s.ForeignLegacy)
			}
		}
	}
}
