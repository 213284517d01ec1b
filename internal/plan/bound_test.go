package plan_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhatScopesAskForIsBounded: all scopes of an operator namespace together have so many objects in members, the first by name.
func TestWhatScopesAskForIsBounded(t *testing.T) {
	t.Parallel()

	const roles = 100

	f := cluster()
	f.OperatorNamespace.Accounts["op"] = struct{}{}

	for i := range roles {
		name := fmt.Sprintf("role-%d", i)
		f.OperatorNamespace.Roles[name] = []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
		}}
		f.OperatorNamespace.Bindings[name] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
		}
	}

	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf("m%04d", i))
	}

	namespaces(f, members...)

	scopes := []scope.Scope{newScope("second", members...), newScope("first", members...)}
	for i := range scopes {
		scopes[i].Accounts = scope.Accounts{Named: []string{"op"}}
	}

	p := plan.New(scopes, f)
	total := 0

	for i := range p.Scopes {
		s := &p.Scopes[i]
		total += len(s.Grant)

		if !slices.Equal(slices.Concat(s.Members, s.Beyond), members) {
			t.Errorf("scope %s has %d members, and %d beyond", s.Scope.Owner.Name, len(s.Members), len(s.Beyond))
		}
	}

	if total > plan.MaxObjects || total <= plan.MaxObjects-2*roles {
		t.Errorf("%d objects are planned, want as many as fit into %d", total, plan.MaxObjects)
	}

	if first := p.Scopes[0]; first.Scope.Owner.Name != "first" || len(first.Beyond) > 0 {
		t.Errorf("of the first scope, %d members are left out", len(first.Beyond))
	}

	if again := plan.New([]scope.Scope{scopes[0]}, f); len(again.Scopes[0].Beyond) > 0 {
		t.Errorf("alone, %d members are left out of it", len(again.Scopes[0].Beyond))
	}
}

// TestWhatScopesProjectIsBounded: scopes may be many that project the same, also into no namespace at all, and a binding may name
// a group that stands for all accounts. All together project so much, the first by name; one that is left out has no members.
func TestWhatScopesProjectIsBounded(t *testing.T) {
	t.Parallel()

	const bindings, accounts, count = 1000, 1000, 200

	bind := func(f *facts.Facts, subject rbacv1.Subject) {
		for i := range bindings {
			f.OperatorNamespace.Bindings[fmt.Sprintf("binding-%d", i)] = facts.Binding{
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{subject},
			}
		}
	}

	for name, tc := range map[string]struct {
		subject rbacv1.Subject
		of      scope.Accounts
		served  int
	}{
		"many scopes": {
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op-1"}, scope.Accounts{Named: []string{"op-1"}},
			plan.MaxProjected / (1 + 2*bindings),
		},
		"a group of many accounts": {
			rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:ops"},
			scope.Accounts{All: true}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			namespaces(f, "a")
			bind(f, tc.subject)

			for i := range accounts {
				f.OperatorNamespace.Accounts[fmt.Sprint("op-", i)] = struct{}{}
			}

			var scopes []scope.Scope

			for i := range count {
				s := newScope(fmt.Sprintf("s%03d", i), "a")
				s.Accounts = tc.of
				scopes = append(scopes, s)
			}

			p := plan.New(scopes, f)
			copies := 0

			for i := range p.Scopes {
				s := &p.Scopes[i]
				copies += len(s.Copies)

				if is := len(s.Copies) > 0; is != (i < tc.served) || is != slices.Equal(s.Members, []string{"a"}) ||
					is == slices.Equal(s.Beyond, []string{"a"}) {
					t.Errorf("scope %d has %d copies, members %v, and beyond %v", i, len(s.Copies), s.Members, s.Beyond)
				}
			}

			if copies != tc.served*bindings {
				t.Errorf("%d copies, want %d", copies, tc.served*bindings)
			}
		})
	}
}

// TestWorkloadsOfOlderScopesAreCounted: each of many scopes may want each of many workloads, and is told into how many of them an
// older one injects.
func TestWorkloadsOfOlderScopesAreCounted(t *testing.T) {
	t.Parallel()

	const workloads, count = 1000, 200

	f := cluster()
	operands := labels.Set{"intent": "projected"}

	for i := range workloads {
		f.OperatorNamespace.Workloads = append(f.OperatorNamespace.Workloads, facts.Workload{
			Kind: facts.Deployment, Name: fmt.Sprint("d", i), Template: facts.Template{Labels: operands, Account: "default"},
			PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
		})
	}

	var scopes []scope.Scope

	for i := range count {
		s := newScope(fmt.Sprintf("s%03d", i))
		s.WatchList, s.InjectWorkloads = fmt.Sprint("list-", i), &scope.WorkloadInjection{Variable: "NAMESPACES"}
		scopes = append(scopes, s)
	}

	p := plan.New(scopes, f)
	if first := &p.Scopes[0]; len(first.Injectables) != workloads || first.OlderCount != 0 {
		t.Errorf("the first one injects into %d, and has %d of others", len(first.Injectables), first.OlderCount)
	}

	for i := range p.Scopes[1:] {
		if s := &p.Scopes[1+i]; len(s.Injectables) > 100 || s.OlderCount != workloads {
			t.Errorf("scope %d names %d of %d", i, len(s.Injectables), s.OlderCount)
		}
	}
}
