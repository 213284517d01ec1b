package reconcile_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	inAByAccount = `{"targetNamespaces":["a>","ops>"],"serviceAccountName":"scoped"}`
	refused      = "Failed InstallComponentFailed"
	// everywhere is the target that stands for all namespaces.
	everywhere = ""
)

// gives grants the account of the group what it must hold in a place, and waits until the API server goes by it.
func (w *world) gives(name string, place authority.Place) {
	w.Helper()
	w.givesTo(ops, name, place)
}

func (w *world) givesTo(short, name string, place authority.Place) {
	w.Helper()

	rules := slices.Concat(place.Rules, place.Handed)
	account := testbed.Account(w.ns(short), "scoped")

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
		if short != everywhere {
			short = w.ns(short)
		}

		names = append(names, short)
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

	for _, profile := range accountProfiles {
		for name, tc := range map[string]struct {
			edit func(*olmv1alpha1.ClusterServiceVersion)
			// group is a and ops, unless something else is said, and targets are its targets.
			group   string
			targets []string
			says    []string
			served  []string
		}{
			"permissions": {
				edit: func(*olmv1alpha1.ClusterServiceVersion) {}, says: []string{"in namespace ops", "in namespace a"},
				served: []string{"a", "ops"},
			},
			"permissions in the cluster": {
				edit: inCluster("get nodes"), says: []string{"in the cluster", "in namespace ops", "in namespace a"},
				served: []string{"*", "a", "ops"},
			},
			"permissions of a group for all namespaces": {
				edit: inCluster("get nodes"), group: `{"serviceAccountName":"scoped"}`, targets: []string{everywhere},
				says:   []string{"in namespace ops", "clusterroles", "in the cluster", "nodes", "secrets"},
				served: []string{"*"},
			},
			"webhooks": {
				edit: asking("v.example.com"), says: []string{"in the cluster", "in namespace ops", "in namespace a"},
				served: []string{"a", "ops"},
			},
		} {
			t.Run(profile+", "+name, func(t *testing.T) {
				t.Parallel()

				if tc.group == "" {
					tc.group, tc.targets = inAByAccount, []string{ops, "a"}
				}

				w := groupedWith(t, profile)
				w.group("group", tc.group)
				w.csv("*", tc.edit)
				w.reconcileGroup()
				is(w, "phase without the account", w.phase(), refused)
				w.names("the message", w.message(), "please make sure the service account exists", "sa=scoped operatorgroup=ops/group")
				w.saysOfGroup("OperatorGroupServiceAccount: True ServiceAccountNotFound")

				account := testbed.Account(w.ns(ops), "scoped")
				w.groupAsks(func(w *world) { w.Make(account) })
				w.reconcileGroup()
				is(w, "phase without rights", w.phase(), refused)
				w.names("the message", w.message(), append(tc.says, "service account ops/scoped may not",
					"to see all of it, with what grants it: ambit preflight csv/op.v1 -n ops")...)
				is(w, "what the operator is told", w.told(), "-")
				is(w, "where it has permissions", w.served(), []string{})
				is(w, "what was written", w.installsAs(), []string(nil))

				for i, place := range w.needs(tc.targets...) {
					is(w, "phase while something is missing", w.phase(), refused)
					w.gives(fmt.Sprintf("needed-%d", i), place)
				}

				w.reconcileGroup()
				is(w, "phase", w.phase(), installing)
				is(w, "where it has permissions with rights", w.served(), tc.served)
				is(w, "as whom it was written", w.installsAs(), []string{"system:serviceaccount:ops:scoped"})

				ref := w.statusOf(w.groupNamed(ops, "group")).ServiceAccountRef
				is(w, "the account in the status of the group", ref != nil && ref.Name == "scoped" && ref.UID == account.UID, true)
			})
		}
	}
}

// accountProfiles are those in which groups may name accounts.
var accountProfiles = []string{"cluster", "delegated"}

// givesNeeds grants the account of the group what it must hold for the operator in targets, and in the namespace ops if that is
// one of them.
func (w *world) givesNeeds(targets ...string) {
	w.Helper()

	for i, place := range w.needs(targets...) {
		if place.Namespace != w.ns(ops) || slices.Contains(targets, ops) {
			w.gives(fmt.Sprintf("needed-%s-%d", targets[0], i), place)
		}
	}
}

// TestScopedInstallInDoubt: where an install has begun, and the API server does not say for a while what the account may do,
// nothing of what is there is taken away, and the rest follows.
func TestScopedInstallInDoubt(t *testing.T) {
	t.Parallel()

	for _, profile := range accountProfiles {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()

			w := byAccountWith(t, profile)
			w.refuses = refusingAll("create rolebindings a", http.StatusInternalServerError)
			w.groupOnce()
			is(w, "what is told while a target is late", w.phase(), installing)

			begun := w.served()
			if !slices.Contains(begun, ops) {
				t.Fatalf("it has begun in %q only", begun)
			}

			w.refuses = refusing("ask selfsubjectrulesreviews", http.StatusInternalServerError)
			w.Make(testbed.Role(w.ns(ops), "other")) // What was answered before is asked anew.
			is(w, "deletions in doubt", deletions(w.groupOnce().writes), []string{})
			is(w, "where it has permissions in doubt", w.served(), begun)

			w.refuses = nil
			w.reconcileGroup()
			is(w, "phase", w.phase(), installing)
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})
		})
	}
}

// TestScopedTargets: the account needs its rights in each target. One that gives none keeps no other from being served once the
// operator is there, nor its pods from being told of one that goes, and is served when it gives them.
func TestScopedTargets(t *testing.T) {
	t.Parallel()

	for _, profile := range accountProfiles {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, profile)
			w.Make(testbed.Account(w.ns(ops), "scoped"))
			w.group("group", inAByAccount)
			w.csv("*")
			w.givesNeeds(ops)
			w.reconcileGroup()
			is(w, "phase without rights in a target", w.phase(), refused)
			w.names("the message", w.message(), "in namespace a")
			is(w, "where it has permissions", w.served(), []string{})

			w.groupAsks(func(w *world) { w.givesNeeds("a") })
			w.installed()

			w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>","b>","ops>"],"serviceAccountName":"scoped"}`) })
			w.reconcileGroup()
			is(w, "phase", w.phase(), refused)
			w.names("the message", w.message(), "service account ops/scoped may not", "in namespace b")
			is(w, "what the operator is told", w.told(), "a,ops")
			is(w, "what its version says", w.watchesAs(), "a,ops")
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})

			w.groupAsks(func(w *world) { w.givesNeeds("b") })
			w.reconcileGroup()
			is(w, "phase with rights", w.phase(), installing)
			is(w, "what the operator is told with rights", w.annotated(), "a,b,ops")
			is(w, "where it has permissions with rights", w.served(), []string{"a", "b", "ops"})

			w.rollOut()
			w.regroup(`{"targetNamespaces":["a>","c>","ops>"],"serviceAccountName":"scoped"}`)
			w.reconcileGroup()
			is(w, "phase while another one is refused", w.phase(), refused)
			w.names("the message", w.message(), "in namespace c")
			is(w, "what the operator is told while another one is refused", w.told(), "a,ops")
		})
	}
}

// TestScopedTargetThatIsMissing: a target that does not exist is asked about once it does, and keeps the operator from no other.
func TestScopedTargetThatIsMissing(t *testing.T) {
	t.Parallel()

	w := groupedWith(t, "delegated")
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", `{"targetNamespaces":["a>","late>","ops>"],"serviceAccountName":"scoped"}`)
	w.csv("*")
	w.givesNeeds(ops)
	w.givesNeeds("a")
	w.installed()
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})

	w.groupAsks(func(w *world) { w.namespaces("late") })
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "may not", "in namespace late")
	is(w, "where it has permissions once it exists", w.served(), []string{"a", "ops"})

	w.groupAsks(func(w *world) { w.givesNeeds("late") })
	w.reconcileGroup()
	is(w, "phase with rights", w.phase(), installing)
	is(w, "where it has permissions with rights", w.served(), []string{"a", "late", "ops"})
}

// TestRightsWithdrawn: what was installed stays, what would be new is refused, and it goes on when the rights are back.
func TestRightsWithdrawn(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
	w.csv("*")
	w.gives("needed", w.needs(ops)[0])
	w.installed()

	binding := w.binding(ops, "needed", "Role", "needed", testbed.Account(w.ns(ops), "scoped"))
	w.May(w.ns(ops), "scoped", w.ns(ops), "create deployments")
	w.Remove(binding)
	w.MayNot(w.ns(ops), "scoped", w.ns(ops), "create deployments")

	// What is installed runs on; nothing has to be written for it.
	w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.DisplayName = "other words" })
	w.reconcileGroup()
	is(w, "phase without rights", w.phase(), succeeded)

	w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
		rules := &c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules
		*rules = append(*rules, testbed.Rule("delete secrets"))
	})
	w.reconcileGroup()
	is(w, "phase of what would be new", w.phase(), refused)
	w.names("the message", w.message(), "may not")
	is(w, "where it has permissions", w.served(), []string{"ops"})
	is(w, "that it may delete Secrets", w.Allowed(w.ns(ops), "op", w.ns(ops), "delete secrets"), false)

	binding.ResourceVersion, binding.UID = "", ""
	w.groupAsks(func(w *world) { w.Make(binding) })
	w.May(w.ns(ops), "scoped", w.ns(ops), "create deployments")
	w.reconcileGroup()
	is(w, "phase with the rights of before", w.phase(), refused)
	w.names("the message", w.message(), "may not delete secrets in namespace ops;")

	w.groupAsks(func(w *world) {
		w.gives("more", authority.Place{Namespace: w.ns(ops), Rules: []rbacv1.PolicyRule{testbed.Rule("delete secrets")}})
	})
	w.reconcileGroup()
	is(w, "phase with all rights", w.phase(), succeeded)
	w.May(w.ns(ops), "op", w.ns(ops), "delete secrets")
}

// TestGroupsNeedAnAccount: where Ambit writes as accounts only, a group that names none installs nothing, says what to do,
// and installs once it names one.
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

	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.givesNeeds(ops)
	w.givesNeeds("a")
	w.groupAsks(func(w *world) { w.regroup(inAByAccount) })
	w.installed()
}

// TestUserRolesByAnAccount: the account of a group that may make the ClusterRoles of an API makes them, though it may not make
// those of the group; what it may not make or put right keeps the operator from nothing, is told, and done once it may.
func TestUserRolesByAnAccount(t *testing.T) {
	t.Parallel()

	for _, profile := range accountProfiles {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, profile)
			crd := w.definition("things", "Thing")
			w.Make(testbed.Account(w.ns(ops), "scoped"))
			w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
			w.csv("*", w.owning("things", "Thing"))
			w.givesNeeds(ops)
			w.installed()
			is(w, "ClusterRoles", w.forUsers(), []string{})
			w.tellsOfUserRoles("service account ops/scoped may not", "create clusterroles")

			// It cannot hold what takes its rules from others, and so may not make the ClusterRoles of the group.
			w.groupAsks(func(w *world) {
				w.gives("users", authority.Place{
					Rules: []rbacv1.PolicyRule{testbed.Rule("create clusterroles")},
					Handed: []rbacv1.PolicyRule{
						{APIGroups: []string{w.long(apiGroup)}, Resources: []string{"things"}, Verbs: []string{"*"}},
						{
							APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
							ResourceNames: []string{crd}, Verbs: []string{"get"},
						},
					},
				})
			})
			w.reconcileGroup()
			is(w, "ClusterRoles with rights", w.forUsers(), provided)
			is(w, "how many the group has", len(w.groupRoles(ops, "group")), 0)

			edit := w.things("edit")
			w.groupAsks(func(w *world) { w.Change(edit, func() { edit.Rules[0].Verbs = append(edit.Rules[0].Verbs, "get") }) })
			w.reconcileGroup()
			w.tellsOfUserRoles("patch clusterroles")
			is(w, "ClusterRoles that somebody changed", slices.Contains(w.forUsers(),
				"v1-edit: create,update,patch,delete,get things, part of edit"), true)
			is(w, "phase", w.phase(), succeeded)

			w.groupAsks(func(w *world) {
				w.gives("right", authority.Place{Rules: []rbacv1.PolicyRule{testbed.Rule("patch clusterroles")}})
			})
			w.reconcileGroup()
			is(w, "ClusterRoles that were put right", w.forUsers(), provided)

			// Those of the group are refused still, and that alone is told.
			message := w.tellsOfUserRoles("everything")
			is(w, "that something is told of what is right", strings.Contains(message, "patch"), false)
			is(w, "as whom it was written", w.installsAs(), []string{"system:serviceaccount:ops:scoped"})

			w.groupAsks(func(w *world) {
				w.gives("all", authority.Place{Rules: []rbacv1.PolicyRule{testbed.Rule("escalate clusterroles")}})
			})
			w.reconcileGroup()
			is(w, "how many the group has in the end", len(w.groupRoles(ops, "group")), 3)

			condition, _ := w.groupCondition("UserRolesProvided")
			is(w, "UserRolesProvided in the end", condition, "-")
		})
	}
}

// tellsOfUserRoles fails the case unless the group says that it lacks ClusterRoles, with these words. It returns what it says.
func (w *world) tellsOfUserRoles(words ...string) string {
	w.Helper()

	condition, message := w.groupCondition("UserRolesProvided")
	is(w, "UserRolesProvided", condition, "False AuthorizationRequired")
	w.names("the message", message, words...)

	return message
}

// TestRefusalsThatAreNoRight: an admission policy or a quota refuses a write of an operator that runs. That is what the version
// says, whatever else the account lacks.
func TestRefusalsThatAreNoRight(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
	w.csv("*")
	w.gives("needed", w.needs(ops)[0])
	w.installed()

	w.Remove(w.binding(ops, "needed", "Role", "needed", testbed.Account(w.ns(ops), "scoped")))
	w.MayNot(w.ns(ops), "scoped", w.ns(ops), "create deployments")
	w.refuses = refusing("patch deployments ops/op", http.StatusForbidden)

	w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "registry.example.com/op:2"
	})
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "writing Deployment ops/op: refused")
}
