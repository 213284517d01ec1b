package predict_test

import (
	"reflect"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// authorizer refuses what it is told to.
type authorizer struct {
	members           map[string]bool
	operatorNamespace bool
}

func (j authorizer) Change(_ *plan.ScopePlan, c *plan.Change) *predict.Refusal {
	if j.members[c.Namespace] && c.Key.Kind == projected.Role {
		return &predict.Refusal{Reason: "AuthorizationRequired"}
	}

	return nil
}

func (j authorizer) OperatorNamespace(*scope.Scope, []rbacv1.PolicyRule) *predict.Refusal {
	if j.operatorNamespace {
		return &predict.Refusal{Reason: "AuthorizationRequired"}
	}

	return nil
}

func world(subset bool, members ...string) ([]scope.Scope, *facts.Facts) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	operand := labels.Set{"intent": "projected"}
	template := facts.Template{Labels: operand, Account: "op", Reads: []string{"list"}}
	began := facts.Birth{Created: now.Add(-time.Hour)}

	f := &facts.Facts{Now: now, RestartInterval: 10 * time.Second, Namespaces: map[string]facts.Namespace{"ops": {}}}
	for _, name := range append([]string{"old"}, members...) {
		f.Namespaces[name] = facts.Namespace{}
	}

	f.OperatorNamespace = facts.OperatorNamespace{
		Name: "ops", Accounts: map[string]struct{}{"op": {}},
		Roles: map[string][]rbacv1.PolicyRule{
			"r": {{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		},
		Bindings: map[string]facts.Binding{"b": {
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
		}},
		Workloads: []facts.Workload{{
			Kind: facts.Deployment, Name: "op", Template: template, Birth: began,
			// It restarted a moment ago, so the next restart waits.
			Restarted: now.Add(-time.Second),
		}},
		Pods: []facts.Pod{{
			PodRef: facts.PodRef{Name: "op-1"}, Template: template, Birth: began, Began: now.Add(-time.Hour),
			Controller: facts.WorkloadRef{Kind: facts.Deployment, Name: "op"},
		}},
		ConfigMaps: map[string]facts.ConfigMap{"list": {
			List: "old,ops", HasList: true, ListHash: scope.ListHash("old,ops", 1), Generation: 1, Created: true,
			Applied: now.Add(-2 * time.Hour), Version: 5, ListVersion: 5,
		}},
	}

	return []scope.Scope{{
		Owner:             scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"},
		OperatorNamespace: "ops", WatchList: "list", AllowSubset: subset,
		Members: scope.Members{Named: members}, Accounts: scope.Accounts{OfOperands: true}, Operands: operand.AsSelectorPreValidated(),
	}}, f
}

func TestForecast(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason     string
		subset     bool
		authorizer authorizer
		list       string
		made       int
		refused    int
		restarts   int
		failed     []string
	}{
		"everything": {
			"all members join, and the reader restarts although it did a moment ago",
			false, authorizer{}, "a,b,ops", 4, 0, 1, nil,
		},
		"one refused": {
			"what is refused in one namespace keeps it out of the list, and stops no other",
			false, authorizer{members: map[string]bool{"a": true}}, "b,ops", 2, 2, 1, []string{"a"},
		},
		"subset": {
			"with allowSubsetProjection the list does not name it either where nothing is left that could be projected",
			true, authorizer{members: map[string]bool{"a": true}}, "b,ops", 2, 2, 1, []string{"a"},
		},
		"no list": {"a list that may not be written restarts nobody", false, authorizer{operatorNamespace: true},
			"old,ops", 4, 0, 0, []string{"ops"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			scopes, f := world(tc.subset, "a", "b")
			before := *f
			out := predict.Of(scopes, f, tc.authorizer)

			if len(out.Lists) != 1 || out.Lists[0].After != tc.list {
				t.Errorf("%s: lists %+v", tc.reason, out.Lists)
			}

			made, refused := 0, 0

			for i := range out.Changes {
				if out.Changes[i].Refusal == nil {
					made++
				} else {
					refused++
				}
			}

			if made != tc.made || refused != tc.refused || len(out.Restarts) != tc.restarts {
				t.Errorf("%s: made %d, refused %d, restarts %+v", tc.reason, made, refused, out.Restarts)
			}

			var failed []string
			for _, m := range out.Scopes[0].Failed {
				failed = append(failed, m.Namespace)
			}

			if !reflect.DeepEqual(failed, tc.failed) {
				t.Errorf("%s: failed %v", tc.reason, failed)
			}

			if out.Refused() != (tc.refused > 0 || tc.authorizer.operatorNamespace) || !reflect.DeepEqual(before, *f) {
				t.Errorf("%s: refused %v, or the facts were changed", tc.reason, out.Refused())
			}
		})
	}
}

// TestUnreadMembersOfNoNamespace holds that members of a scope that belongs to no namespace are not called failed, nor served: no
// list and no status names those that are.
func TestUnreadMembersOfNoNamespace(t *testing.T) {
	t.Parallel()

	f := &facts.Facts{
		OperatorNamespace: facts.OperatorNamespace{Name: scope.Cluster},
		Namespaces: map[string]facts.Namespace{
			"named": {Closed: "it may not be read"}, "selected": {Closed: "it may not be read", Labels: labels.Set{"in": "yes"}},
		},
	}
	s := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeInstance", Name: "one"}, OperatorNamespace: scope.Cluster,
		Members: scope.Members{Named: []string{"gone", "named"}, Selector: labels.SelectorFromSet(labels.Set{"in": "yes"})},
		Binds: []scope.Binding{{
			Role: "r", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		}},
	}

	out := predict.Of([]scope.Scope{s}, f, authorizer{members: map[string]bool{}})
	got := &out.Scopes[0]

	if !reflect.DeepEqual(got.Unread, []string{"named", "selected"}) || len(got.Served) > 0 || len(out.Changes) > 0 ||
		len(got.Failed) != 1 || got.Failed[0].Namespace != "gone" {
		t.Errorf("unread %v, served %v, failed %v, changes %v", got.Unread, got.Served, got.Failed, out.Changes)
	}
}

func TestUnreadMembers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason      string
		selected    bool
		list        string
		reported    []string
		after       string
		unread      []string
		failed      int
		restarts    int
		terminating bool
		leaves      bool
	}{
		"listed":   {reason: "one that is in the list stays there", list: "a,ops", unread: []string{"a"}},
		"selected": {reason: "however it became a member", selected: true, list: "a,ops", unread: []string{"a"}},
		"reported": {
			reason: "one that the status names goes into the list again",
			list:   "ops", reported: []string{"a", "ops"}, after: "a,ops", unread: []string{"a"}, restarts: 1,
		},
		"new": {reason: "of one that is new nothing can be told", list: "ops", failed: 1},
		"terminating": {
			reason: "one that is on its way out leaves", list: "a,ops", after: "ops", terminating: true, failed: 1, restarts: 1,
		},
		"leaving": {reason: "and so does one that is no member", list: "a,ops", after: "ops", leaves: true, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			scopes, f := world(false, "a")
			f.Namespaces["a"] = facts.Namespace{Labels: labels.Set{"in": "yes"}, Closed: "it may not be read", Terminating: tc.terminating}
			f.OperatorNamespace.ConfigMaps["list"] = facts.ConfigMap{
				List: tc.list, HasList: true, ListHash: scope.ListHash(tc.list, 1), Generation: 1, Applied: f.Now.Add(-2 * time.Hour),
			}
			scopes[0].Reported = tc.reported

			if tc.selected {
				scopes[0].Members = scope.Members{Selector: labels.SelectorFromSet(labels.Set{"in": "yes"})}
			}

			if tc.leaves {
				scopes[0].Members = scope.Members{}
			}

			out := predict.Of(scopes, f, authorizer{members: map[string]bool{"a": true}})

			after := ""
			for i := range out.Lists {
				after = out.Lists[i].After
			}

			s := &out.Scopes[0]
			if after != tc.after || len(out.Changes) != 0 || len(s.Failed) != tc.failed || len(out.Restarts) != tc.restarts ||
				!reflect.DeepEqual(s.Unread, tc.unread) || !reflect.DeepEqual(s.Served, []string{"ops"}) || out.Refused() {
				t.Errorf("%s: %+v, unread %v, served %v, failed %v", tc.reason, out, s.Unread, s.Served, s.Failed)
			}

			if f.Namespaces["a"].Closed == "" {
				t.Errorf("%s: the facts were changed", tc.reason)
			}
		})
	}
}

func TestNothingToForecast(t *testing.T) {
	t.Parallel()

	scopes, f := world(false)
	f.OperatorNamespace.ConfigMaps["list"] = facts.ConfigMap{
		List: "ops", HasList: true, ListHash: scope.ListHash("ops", 1), Generation: 1, Applied: f.Now.Add(-2 * time.Hour),
	}

	if out := predict.Of(scopes, f, authorizer{}); !out.Empty() || out.Refused() || len(out.Scopes[0].Served) != 1 {
		t.Errorf("got %+v", out)
	}
}

func TestManagerOf(t *testing.T) {
	t.Parallel()

	got := predict.ManagerOf("ambit-system", []string{
		"manager", "--leader-elect", "--namespaces=$(OPERATOR_NAMESPACE)", "--require-service-account", "--restart-interval=30s",
		"--default-service-account=writer", "--finish-grace=20s",
	})
	want := predict.Manager{
		Namespace: "ambit-system", DefaultDelegate: "writer", NeedDelegate: true, Namespaces: []string{"ambit-system"},
		RestartInterval: 30 * time.Second, FinishGrace: 20 * time.Second,
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}

	named := &operatorv1.NamespaceScope{Spec: operatorv1.NamespaceScopeSpec{ServiceAccountName: "own"}}
	if s := got.Compile([]client.Object{named, &operatorv1.NamespaceScope{}}); s[0].Delegate != "own" || s[0].DelegateByDefault ||
		s[1].Delegate != "writer" || !s[1].DelegateByDefault {
		t.Errorf("got %+v", s)
	}
}
