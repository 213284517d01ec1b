package plan_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const grace = 10 * time.Second

// following says of the pod of reader that it has taken in a list.
func following(f *facts.Facts, list string) {
	f.FollowGrace = grace
	f.OperatorNamespace.Followers = map[types.UID]facts.Follower{
		"u": {List: "namespace-scope", TakenIn: scope.TakenIn(list)},
	}
}

func TestReadersThatFollowAreNotRestarted(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		change func(*facts.Facts)
		want   string
		again  time.Duration
	}{
		"taken in": {"it serves the list as it is", func(f *facts.Facts) { following(f, "a,ops") }, "", 0},
		"taking in": {
			"a change of a file takes its time", func(f *facts.Facts) { following(f, "ops") }, "", 150 * time.Second,
		},
		"stopped following": {
			"it said so of an earlier list, and of none since",
			func(f *facts.Facts) { following(f, "ops"); f.Now = now.Add(150 * time.Second) }, "Deployment w", 0,
		},
		"stopped following, and the list is of a time to come": {
			"whoever may edit the ConfigMap can write any time into it",
			func(f *facts.Facts) {
				following(f, "ops")
				f.Now = now.Add(150 * time.Second)
				list := f.OperatorNamespace.ConfigMaps["namespace-scope"]
				list.Since = now.AddDate(73, 0, 0)
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = list
			}, "Deployment w", 0,
		},
		"another list": {
			"who follows one list may read another as others do",
			func(f *facts.Facts) {
				f.OperatorNamespace.Followers = map[types.UID]facts.Follower{"u": {List: "other", TakenIn: scope.TakenIn("a,ops")}}
			}, "Deployment w", 0,
		},
		"another pod": {
			"what one pod says is said for that pod alone",
			func(f *facts.Facts) {
				following(f, "a,ops")
				f.OperatorNamespace.Pods[0].UID = "v"
			}, "Deployment w", 0,
		},
		"one of two": {
			"a workload restarts for the pod that does not follow",
			func(f *facts.Facts) {
				following(f, "a,ops")
				second := f.OperatorNamespace.Pods[0]
				second.PodRef = facts.PodRef{Name: "q", UID: "v"}
				f.OperatorNamespace.Pods = append(f.OperatorNamespace.Pods, second)
			}, "Deployment w", 0,
		},
		"bare pod": {
			"it is not evicted",
			func(f *facts.Facts) {
				following(f, "a,ops")
				f.OperatorNamespace.Workloads, f.OperatorNamespace.Pods[0].Controller = nil, facts.WorkloadRef{}
			}, "", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			namespaces(f, "a")
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
				HasList: true, List: "a,ops", ListHash: scope.ListHash("a,ops", 0), Applied: now, ListVersion: listVersion,
			}
			reader(f)
			tc.change(f)

			got := plan.New([]scope.Scope{newScope("s", "a")}, f)
			if s := restarts(&got); s != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, s, tc.want)
			}

			if at := now.Add(tc.again); tc.again != 0 && !got.Again.Equal(at) {
				t.Errorf("%s: again at %s, want %s", tc.reason, got.Again, at)
			}
		})
	}
}

// leavingMember is a scope whose member a has left: the list still names it, and so do the copies. Its reader follows.
func leavingMember(t *testing.T) (*facts.Facts, []scope.Scope) {
	t.Helper()

	f := cluster()
	namespaces(f, "a")
	f.Names = newNames()
	f.OperatorNamespace.Accounts["default"] = struct{}{}
	f.OperatorNamespace.Roles["r"] = []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	}
	f.OperatorNamespace.Bindings["b"] = facts.Binding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "default"}},
	}
	reader(f)

	for range 3 {
		p := plan.New([]scope.Scope{newScope("s", "a")}, f)
		carryOut(f, &p)
	}

	reader(f) // as if it had begun before all that

	if len(f.Projected["a"]) != 2 {
		t.Fatalf("member a holds %d copies", len(f.Projected["a"]))
	}

	following(f, "a,ops")

	return f, []scope.Scope{newScope("s")}
}

func prunes(p *plan.Plan) (now, held int) { return len(p.Scopes[0].Prune), len(p.Scopes[0].Held) }

func TestPermissionsStayUntilReadersHaveLetGo(t *testing.T) {
	t.Parallel()

	f, scopes := leavingMember(t)

	p := plan.New(scopes, f)
	if n, held := prunes(&p); n != 0 || held != 2 || !p.Again.Equal(f.Now.Add(grace)) || p.Scopes[0].Settled() {
		t.Fatalf("while the list is still to be written: %d pruned, %d held, again %s", n, held, p.Again)
	}

	carryOut(f, &p)

	if f.OperatorNamespace.ConfigMaps["namespace-scope"].List != "ops" {
		t.Fatal("the list waits for readers, who wait for the list")
	}

	f.Leaving = map[string]time.Time{"a": now}

	p = plan.New(scopes, f)
	if n, held := prunes(&p); n != 0 || held != 2 {
		t.Fatalf("before the reader has taken in the list: %d pruned, %d held", n, held)
	}

	following(f, "ops")

	p = plan.New(scopes, f)
	if n, held := prunes(&p); n != 2 || held != 0 {
		t.Fatalf("once it has: %d pruned, %d held", n, held)
	}
}

func TestPermissionsStayNoLongerThanTheGraceTime(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*facts.Facts){
		"a reader that hangs": func(*facts.Facts) {},
		"a list that changes again and again": func(f *facts.Facts) {
			cm := f.OperatorNamespace.ConfigMaps["namespace-scope"]
			cm.Applied = f.Now
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = cm
		},
		"a list that somebody keeps writing": func(f *facts.Facts) {
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
				HasList: true, List: "a,ops", ListHash: "x", Applied: f.Now,
			}
		},
		"a list that cannot be written": func(f *facts.Facts) {
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{HasList: true, List: "a,ops", Immutable: true}
		},
		"an Ambit that began anew": func(f *facts.Facts) { f.Leaving = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f, scopes := leavingMember(t)
			p := plan.New(scopes, f)
			carryOut(f, &p)

			f.Leaving, f.Now = map[string]time.Time{"a": now}, now.Add(grace)
			change(f)

			p = plan.New(scopes, f)
			if n, held := prunes(&p); n != 2 || held != 0 {
				t.Errorf("%d pruned, %d held", n, held)
			}
		})
	}
}

func TestPermissionsGoAtOnceWhereNobodyFollows(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*facts.Facts){
		"nobody": func(f *facts.Facts) { f.OperatorNamespace.Followers = nil },
		"a Lease of a pod that is gone": func(f *facts.Facts) {
			f.OperatorNamespace.Pods, f.OperatorNamespace.Workloads = nil, nil
		},
		"a pod that ends":        func(f *facts.Facts) { f.OperatorNamespace.Pods[0].Ending = true },
		"another list":           func(f *facts.Facts) { f.OperatorNamespace.Followers["u"] = facts.Follower{List: "x"} },
		"operators that go, too": func(f *facts.Facts) { f.OperatorNamespace.Terminating = true },
		"no grace is wanted":     func(f *facts.Facts) { f.FollowGrace = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f, scopes := leavingMember(t)
			change(f)

			p := plan.New(scopes, f)
			if n, held := prunes(&p); n != 2 || held != 0 {
				t.Errorf("%d pruned, %d held", n, held)
			}
		})
	}
}

// TestRevocationsDoNotWaitForReaders: what was revoked at the source goes at once, also in a namespace that left a moment before.
func TestRevocationsDoNotWaitForReaders(t *testing.T) {
	t.Parallel()

	rules := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}
	}

	for name, tc := range map[string]struct {
		change        func(*facts.Facts)
		revoked, held int
	}{
		"nothing":           {func(*facts.Facts) {}, 0, 2},
		"the binding":       {func(f *facts.Facts) { delete(f.OperatorNamespace.Bindings, "b") }, 2, 0},
		"the role":          {func(f *facts.Facts) { delete(f.OperatorNamespace.Roles, "r") }, 2, 0},
		"the account":       {func(f *facts.Facts) { delete(f.OperatorNamespace.Accounts, "default") }, 2, 0},
		"all of its rules":  {func(f *facts.Facts) { f.OperatorNamespace.Roles["r"] = rules("list") }, 1, 2},
		"and it gains some": {func(f *facts.Facts) { f.OperatorNamespace.Roles["r"] = rules("get", "list") }, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f, scopes := leavingMember(t)
			p := plan.New(scopes, f)
			carryOut(f, &p)

			f.Leaving = map[string]time.Time{"a": now}
			tc.change(f)

			p = plan.New(scopes, f)
			now, held := prunes(&p)

			if n := len(p.Scopes[0].Revoke); n != tc.revoked || held != tc.held || now != 0 {
				t.Errorf("%d revoked, want %d; %d held, want %d; %d pruned", n, tc.revoked, held, tc.held, now)
			}
		})
	}
}

// TestDeletedScopeWaitsForReaders: also where the list goes with its last scope.
func TestDeletedScopeWaitsForReaders(t *testing.T) {
	t.Parallel()

	f, scopes := leavingMember(t)
	scopes[0].Deleted = now

	p := plan.New(scopes, f)
	if n, held := prunes(&p); n != 0 || held == 0 {
		t.Fatalf("before the list is gone: %d pruned, %d held", n, held)
	}

	carryOut(f, &p)

	p = plan.New(scopes, f)
	if s := restarts(&p); s != "" || !p.Again.Equal(now.Add(grace)) {
		t.Errorf("while the reader may still let go: restarts %q, again %s", s, p.Again)
	}

	following(f, "")

	p = plan.New(scopes, f)
	if n, held := prunes(&p); n == 0 || held != 0 {
		t.Errorf("once the reader serves nothing: %d pruned, %d held", n, held)
	}

	if s := restarts(&p); s != "" {
		t.Errorf("a reader that serves nothing is restarted: %q", s)
	}
}

// TestDeletedScopeWaitsNoLongerThanTheGraceTime: a reader that hangs keeps nobody's scope.
func TestDeletedScopeWaitsNoLongerThanTheGraceTime(t *testing.T) {
	t.Parallel()

	f, scopes := leavingMember(t)
	scopes[0].Deleted = now
	p := plan.New(scopes, f)
	carryOut(f, &p)

	f.Leaving, f.Now = map[string]time.Time{"a": now}, now.Add(grace)

	p = plan.New(scopes, f)
	if n, held := prunes(&p); n == 0 || held != 0 {
		t.Errorf("%d pruned, %d held", n, held)
	}

	if s := restarts(&p); s != "Deployment w evicting p/u" {
		t.Errorf("restarts %q", s)
	}
}
