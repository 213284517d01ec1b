package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

const (
	inAByAccount = `{"targetNamespaces":["a>","ops>"],"serviceAccountName":"scoped"}`
	refused      = "Failed InstallComponentFailed"
)

// gives grants the account of the group what it must hold in a place, and waits until the API server goes by it.
func (w *world) gives(name string, place authority.Place) {
	w.Helper()

	rules := slices.Concat(place.Rules, place.Handed)
	account := testbed.Account(w.ns(ops), "scoped")

	if place.Namespace == "" {
		role := testbed.ClusterRole(w.ns(name))
		role.Rules = rules
		w.Make(role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.ns(name)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns(name)},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		})
	} else {
		role := testbed.Role(place.Namespace, name)
		role.Rules = rules

		binding := w.binding(ops, name, "Role", name, account)
		binding.Namespace = place.Namespace
		w.Make(role, binding)
	}

	i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.ResourceNames) == 0 })
	first := &rules[i]
	w.Eventually("the account may what it was granted in "+place.Namespace, func() error {
		if !w.AllowedIn(account.Namespace, account.Name, place.Namespace, first.Verbs[0], first.APIGroups[0], first.Resources[0]) {
			return errNotYet
		}

		return nil
	})
}

// needs are what the account must hold for the operator of these cases, in every place.
func (w *world) needs(targets ...string) []authority.Place {
	w.Helper()

	names := make([]string, 0, len(targets))
	for _, short := range targets {
		names = append(names, w.ns(short))
	}

	return install.Needs(w.versionCalled("op.v1"), w.ns(ops), names)
}

// installsAs are who wrote something that is no status and no list of what a group provides.
func (w *world) installsAs() []string {
	w.Helper()

	var out []string

	for _, what := range w.wroteAs {
		who, words, _ := strings.Cut(what, ": ")
		if !strings.HasSuffix(words, "/status") && !strings.Contains(words, " operatorgroups ") {
			out = append(out, w.called(who))
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// TestScopedInstall: an account without rights installs nothing, is told of all that it lacks at the first try, and installs once
// it holds just that. Everything is written as it.
func TestScopedInstall(t *testing.T) {
	t.Parallel()

	for _, profile := range []string{"cluster", "delegated"} {
		for name, tc := range map[string]struct {
			edit func(*olmv1alpha1.ClusterServiceVersion)
			says []string
			// everywhere says that it has permissions in the cluster, too.
			everywhere string
		}{
			"permissions": {edit: func(*olmv1alpha1.ClusterServiceVersion) {}, says: []string{"in namespace ops", "in namespace a"}},
			"permissions in the cluster": {
				edit: func(c *olmv1alpha1.ClusterServiceVersion) {
					c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []olmv1alpha1.StrategyDeploymentPermissions{{
						ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{testbed.Rule("get nodes")},
					}}
				},
				says: []string{"in the cluster", "in namespace ops", "in namespace a"}, everywhere: "*,",
			},
			"webhooks": {edit: asking("v.example.com"), says: []string{"in the cluster", "in namespace ops", "in namespace a"}},
		} {
			t.Run(profile+", "+name, func(t *testing.T) {
				t.Parallel()

				w := groupedWith(t, profile)
				w.group("group", inAByAccount)
				w.csv("*", tc.edit)
				w.reconcileGroup()
				is(w, "phase without the account", w.phase(), refused)
				w.names("the message", w.message(), "please make sure the service account exists", "sa=scoped")
				w.saysOfGroup("OperatorGroupServiceAccount: True ServiceAccountNotFound")

				w.Make(testbed.Account(w.ns(ops), "scoped"))
				w.reconcileGroup()
				is(w, "phase without rights", w.phase(), refused)
				w.names("the message", w.message(), append(tc.says, "service account ops/scoped may not",
					"to see all of it, with what grants it: ambit preflight csv/op.v1 -n ops")...)
				is(w, "what the operator is told", w.told(), "-")
				is(w, "where it has permissions", w.served(), []string{})
				is(w, "what was written", w.installsAs(), []string(nil))

				for i, place := range w.needs(ops, "a") {
					is(w, "phase while something is missing", w.phase(), refused)
					w.gives(fmt.Sprintf("needed-%d", i), place)
				}

				w.reconcileGroup()
				is(w, "phase", w.phase(), installing)
				is(w, "where it has permissions with rights", strings.Join(w.served(), ","), tc.everywhere+"a,ops")
				is(w, "as whom it was written", w.installsAs(), []string{"system:serviceaccount:ops:scoped"})
			})
		}
	}
}

// TestScopedTargets: the account needs its rights in each target. One that gives none keeps no other from being served once the
// operator is there, and is served when it gives them.
func TestScopedTargets(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", inAByAccount)
	w.csv("*")

	for i, place := range w.needs(ops, "a") {
		w.gives(fmt.Sprintf("needed-%d", i), place)
	}

	w.installed()

	w.regroup(`{"targetNamespaces":["a>","b>","ops>"],"serviceAccountName":"scoped"}`)
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "service account ops/scoped may not", "in namespace b")
	is(w, "what the operator is told", w.told(), "a,ops")
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})

	for _, place := range w.needs("b") {
		if place.Namespace == w.ns("b") {
			w.gives("needed-b", place)
		}
	}

	w.reconcileGroup()
	is(w, "phase with rights", w.phase(), installing)
	is(w, "what the operator is told with rights", w.told(), "a,b,ops")
	is(w, "where it has permissions with rights", w.served(), []string{"a", "b", "ops"})
}

// TestGroupsNeedAnAccount: where Ambit writes as accounts only, a group that names none installs nothing, and says what to do.
func TestGroupsNeedAnAccount(t *testing.T) {
	t.Parallel()

	w := groupedWith(t, "delegated")
	w.group("group", inA)
	w.csv("*")
	w.reconcileGroup()

	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "names no service account", "set spec.serviceAccountName to an account of namespace ops")
	is(w, "where it has permissions", w.served(), []string{})
	is(w, "what the operator is told", w.told(), "-")
	is(w, "what was written", w.installsAs(), []string(nil))
}

// TestUserRolesByAnAccount: what the account of a group may not make for people is told, keeps the operator from nothing, and is
// made once it may.
func TestUserRolesByAnAccount(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("things", "Thing")
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
	w.csv("*", w.owning("things", "Thing"))

	for i, place := range w.needs(ops) {
		w.gives(fmt.Sprintf("needed-%d", i), place)
	}

	w.reconcileGroup()
	is(w, "phase", w.phase(), installing)
	is(w, "ClusterRoles", w.forUsers(), []string{})

	condition, message := w.groupCondition("UserRolesProvided")
	is(w, "UserRolesProvided", condition, "False AuthorizationRequired")
	w.names("the message", message, "service account ops/scoped may not", "create clusterroles")

	w.gives("users", authority.Place{
		Rules: []rbacv1.PolicyRule{testbed.Rule("create,patch,escalate clusterroles")},
	})
	w.reconcileGroup()
	is(w, "ClusterRoles with rights", w.forUsers(), provided)
	is(w, "how many the group has", len(w.groupRoles(ops, "group")), 3)

	condition, _ = w.groupCondition("UserRolesProvided")
	is(w, "UserRolesProvided with rights", condition, "-")
}
