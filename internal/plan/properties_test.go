package plan_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

// world is a random cluster with random scopes.
func world(t *rapid.T) ([]scope.Scope, *facts.Facts) {
	f := cluster()
	some := func(what string, from ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(from), 0, 4).Draw(t, what)
	}
	names := []string{"a", "b", "c", "d", "kube-system"}

	for _, n := range some("namespaces", names...) {
		f.Namespaces[n] = facts.Namespace{
			Labels:      map[string]string{"prod": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "prod")},
			Terminating: rapid.IntRange(0, 5).Draw(t, "terminating") == 0,
		}
	}

	for _, a := range some("accounts", "x", "y", "z", "default") {
		f.OperatorNamespace.Accounts[a] = struct{}{}
	}

	for _, r := range some("roles", "r1", "r2", "r3") {
		f.OperatorNamespace.Roles[r] = rapid.SliceOfN(rule(), 0, 3).Draw(t, "rules")
	}

	for _, b := range some("bindings", "b1", "b2", "b3", "b4") {
		f.OperatorNamespace.Bindings[b] = facts.Binding{
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: rapid.SampledFrom([]string{"Role", "ClusterRole"}).Draw(t, "kind"),
				Name: rapid.SampledFrom([]string{"r1", "r2", "r3", "view"}).Draw(t, "role"),
			},
			Subjects: rapid.SliceOfN(subject(), 0, 4).Draw(t, "subjects"),
		}
	}

	for i, a := range some("workloads", "x", "y", "z", "missing") {
		addWorkload(t, f, i, a)
	}

	scopes := make([]scope.Scope, 0, 3)

	// Two scopes may have one name, in the two groups.
	for _, n := range slices.Compact(slices.Sorted(slices.Values(some("scopes", "s1", "s1 older", "s2", "s3")))) {
		name, older := strings.CutSuffix(n, " older")
		s := newScope(name, slices.Compact(slices.Sorted(slices.Values(some("members", names...))))...)
		s.WatchList = rapid.SampledFrom([]string{"list1", "list2"}).Draw(t, "list")

		if older {
			s.Owner.Group = "namespacescope.ibm.com"
		}

		s.Accounts.Named = slices.Compact(slices.Sorted(slices.Values(some("named accounts", "x", "y", "nobody"))))

		s.Accounts.All = rapid.IntRange(0, 3).Draw(t, "all accounts") == 0

		if rapid.Bool().Draw(t, "selects") {
			s.Members.Selector = labels.SelectorFromSet(labels.Set{"prod": "yes"})
		}

		scopes = append(scopes, s)
	}

	return scopes, f
}

func addWorkload(t *rapid.T, f *facts.Facts, i int, account string) {
	template := facts.Template{Labels: labels.Set{}, Account: account, Reads: []string{"list1"}}
	if rapid.Bool().Draw(t, "labelled") {
		template.Labels["intent"] = "projected"
	}

	name, born := fmt.Sprintf("w%d", i), facts.Birth{Created: now.Add(-time.Minute)}
	f.OperatorNamespace.Workloads = append(f.OperatorNamespace.Workloads, facts.Workload{
		Kind: facts.Deployment, Name: name, Template: template, Birth: born,
		OwnedByOLM: rapid.Bool().Draw(t, "olm"),
	})
	f.OperatorNamespace.Pods = append(f.OperatorNamespace.Pods, facts.Pod{
		PodRef: facts.PodRef{Name: name + "-pod"}, Template: template, Birth: born, Began: now.Add(-time.Minute),
		Controller: facts.WorkloadRef{Kind: facts.Deployment, Name: name},
	})
}

func rule() *rapid.Generator[rbacv1.PolicyRule] {
	return rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs:         rapid.SliceOfN(rapid.SampledFrom([]string{"get", "*", "escalate", "use"}), 1, 3).Draw(t, "verbs"),
			APIGroups:     rapid.SliceOfN(rapid.SampledFrom([]string{"", "apps", "*"}), 1, 2).Draw(t, "groups"),
			Resources:     rapid.SliceOfN(rapid.SampledFrom([]string{"pods", "*", "nodes"}), 1, 2).Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two"}), 0, 2).Draw(t, "names"),
		}
	})
}

func subject() *rapid.Generator[rbacv1.Subject] {
	return rapid.SampledFrom([]rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "ops", Name: "x"},
		{Kind: "ServiceAccount", Namespace: "ops", Name: "y"},
		{Kind: "ServiceAccount", Namespace: "elsewhere", Name: "x"},
		{Kind: "Group", Name: "system:serviceaccounts"},
		{Kind: "Group", Name: "system:serviceaccounts:ops"},
		{Kind: "Group", Name: "system:serviceaccounts:elsewhere"},
		{Kind: "Group", Name: "system:authenticated"},
		{Kind: "User", Name: "system:serviceaccount:ops:z"},
		{Kind: "User", Name: "alice"},
	})
}

// TestProjectionNeverExceedsItsSource: every copy holds a source's own rules, for accounts that the source names.
func TestProjectionNeverExceedsItsSource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := world(t)

		p := plan.New(scopes, f)
		for i := range p.Scopes {
			for j := range p.Scopes[i].Copies {
				checkCopy(t, f, &p.Scopes[i].Copies[j].Object)
			}
		}
	})
}

func checkCopy(t *rapid.T, f *facts.Facts, o *projected.Object) {
	source, ok := projected.ParseSource(o.Source)
	if !ok || source.Namespace != "ops" {
		t.Fatalf("%s has no source in its operator namespace: %q", o.Name, o.Source)
	}

	if o.Kind == projected.Role {
		if !reflect.DeepEqual(o.Rules, f.OperatorNamespace.Roles[source.Name]) {
			t.Fatalf("%s has other rules than its source: %v", o.Name, o.Rules)
		}

		return
	}

	binding := f.OperatorNamespace.Bindings[source.Name]
	if o.RoleRef.Kind == "ClusterRole" && o.RoleRef != binding.RoleRef {
		t.Fatalf("%s refers to %v, its source to %v", o.Name, o.RoleRef, binding.RoleRef)
	}

	wantName := projected.Slot(o.ScopeHash, projected.Source{Kind: "Role", Namespace: "ops", Name: binding.RoleRef.Name})
	if o.RoleRef.Kind == "Role" && o.RoleRef.Name != wantName {
		t.Fatalf("%s refers to Role %s, which is not the copy of %s", o.Name, o.RoleRef.Name, binding.RoleRef.Name)
	}

	for _, s := range o.Subjects {
		if _, exists := f.OperatorNamespace.Accounts[s.Name]; s.Kind != "ServiceAccount" || s.Namespace != "ops" || !exists {
			t.Fatalf("%s names %v, which is no account of its operator namespace", o.Name, s)
		}

		if !slices.ContainsFunc(binding.Subjects, func(b rbacv1.Subject) bool { return covers(b, s.Name) }) {
			t.Fatalf("%s names %s, its source does not: %v", o.Name, s.Name, binding.Subjects)
		}
	}
}

// covers says whether a subject of a source stands for an account of ops. It is written anew here, by the rule that the
// API server goes by.
func covers(s rbacv1.Subject, account string) bool {
	switch s.Kind + " " + s.Name {
	case "ServiceAccount " + account:
		return s.Namespace == "ops"
	case "Group system:serviceaccounts", "Group system:serviceaccounts:ops", "User system:serviceaccount:ops:" + account:
		return true
	}

	return false
}

// TestOrderDoesNotMatter: the same facts in another order give the same plan.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := world(t)
		want := plan.New(slices.Clone(scopes), f)

		shuffled := *f
		shuffled.OperatorNamespace.Workloads = rapid.Permutation(f.OperatorNamespace.Workloads).Draw(t, "workloads'")
		shuffled.OperatorNamespace.Pods = rapid.Permutation(f.OperatorNamespace.Pods).Draw(t, "pods'")
		shuffled.Namespaces = maps.Clone(f.Namespaces)
		got := plan.New(rapid.Permutation(scopes).Draw(t, "scopes'"), &shuffled)

		if want.String() != got.String() {
			t.Fatalf("the order changed the plan:\n%s\n%s", &want, &got)
		}
	})
}

// TestPlannedStateNeedsNoPlan: once a plan is carried out, and the restarts that its lists lead to, nothing is left to do.
func TestPlannedStateNeedsNoPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scopes, f := world(t)
		f.Names = newNames()
		settle(t, scopes, f)

		// The same for the deletion of one scope after the other.
		for i := range rapid.IntRange(0, len(scopes)).Draw(t, "deleted") {
			beginAnew(t, f)

			scopes[i].Deleted, scopes[i].Members = f.Now, scope.Members{}
			hash := scopes[i].Owner.Hash()
			settle(t, scopes, f)

			for namespace, held := range f.Projected {
				for key, o := range held {
					if o.ScopeHash == hash {
						t.Fatalf("%v is left in %s", key, namespace)
					}
				}
			}
		}
	})
}

// beginAnew has some of the pods replaced by others that have not begun, begin now, or end, and some marks lost.
func beginAnew(t *rapid.T, f *facts.Facts) {
	for i := range f.OperatorNamespace.Pods {
		p := &f.OperatorNamespace.Pods[i]

		switch rapid.IntRange(0, 5).Draw(t, "pod") {
		case 0:
			p.Began = time.Time{}
		case 1:
			p.Created, p.Began = f.Now, f.Now
		case 2:
			p.Ending = true
		default:
		}
	}

	for i := range f.OperatorNamespace.Workloads {
		w := &f.OperatorNamespace.Workloads[i]
		w.Idle = rapid.IntRange(0, 5).Draw(t, "idle") == 0

		if rapid.IntRange(0, 5).Draw(t, "unmarked") == 0 {
			w.Restarted, w.RestartWait = time.Time{}, 0
		}
	}
}

func settle(t *rapid.T, scopes []scope.Scope, f *facts.Facts) {
	for range 3 {
		p := plan.New(scopes, f)
		if plantest.IsEmpty(&p) && p.Again.IsZero() {
			return
		}

		carryOut(f, &p)
		f.Now = f.Now.Add(2 * time.Minute)
	}

	p := plan.New(scopes, f)
	if !plantest.IsEmpty(&p) {
		t.Fatalf("the plan for the planned state is not empty:\n%s", &p)
	}
}
