package attacks_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// A role that grows after it was projected, to a wildcard or to one of the verbs by which everything else can be had, does
// not grow in members whose owners did not grant that much. What was projected before stays as it was, and status names the
// rest.
func TestRoleThatGrowsAfterItWasProjected(t *testing.T) {
	for name, grown := range map[string]string{
		"a wildcard":  "* *",
		"escalate":    "escalate roles",
		"bind":        "bind clusterroles",
		"impersonate": "impersonate serviceaccounts",
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			ops, member := w.Namespace("home"), w.Namespace("member")
			w.Operator(ops, "op", "get secrets")
			w.Delegate(ops, []string{"get secrets"}, member)

			nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
			w.Reports(nss, yes, "Reconciled")

			source := testbed.Role(ops, "op-role")
			w.Change(source, func() { source.Rules = append(source.Rules, testbed.Rule(grown)) })
			w.Reports(nss, no, "AuthorizationRequired")

			verb, resource, _ := strings.Cut(strings.ReplaceAll(grown, "*", "delete"), " ")
			if resource == "delete" {
				resource = "pods"
			}

			if err := denied(w, ops, "op", member, verb+" "+resource); err != nil {
				t.Error(err)
			}

			w.May(ops, "op", member, "get secrets")

			words := grown
			if name == "a wildcard" {
				words = "do everything with all resources of all API groups"
			}

			if f := nss.Status.FailedMembers; len(f) != 1 || !strings.Contains(f[0].Message, "may not "+words) {
				t.Errorf("status does not name what is missing: %+v", f)
			}
		})
	}
}

// A Role may name what is cluster-scoped; in a namespace that says nothing, and Ambit makes no more of it.
func TestRoleThatNamesClusterScopedResources(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets", "get,create,delete nodes", "get,patch,delete namespaces", "bind,escalate clusterroles")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "get secrets")

	for _, words := range []string{"get nodes", "create nodes", "delete namespaces", "bind clusterroles", "escalate clusterroles"} {
		if err := denied(w, ops, "op", "", words); err != nil {
			t.Error(err)
		}
	}

	if err := denied(w, ops, "op", w.Namespace("other"), "get namespaces"); err != nil {
		t.Error(err)
	}
}

// Names of 63 characters that differ in the last letter stay apart: of operator namespaces, of members, of roles and of
// accounts.
func TestNamesThatDifferInTheLastLetter(t *testing.T) {
	w := begin(t, "cluster")
	long := func(kind string) string {
		return kind + strings.Repeat("x", 62-len(kind)-7) + "-" + rand.String(6)
	}
	names := func(kind string) (a, b string) {
		name := long(kind)

		return name + "a", name + "b"
	}

	opsA, opsB := names("home")
	memberA, memberB := names("member")
	roleA, roleB := names("role")
	opA, opB := names("op")

	for _, ns := range []string{opsA, opsB, memberA, memberB} {
		w.MakeNamespace(ns)
	}

	for ops, words := range map[string][2]string{opsA: {"get secrets", "get pods"}, opsB: {"get services", "get endpoints"}} {
		w.Operator(ops, opA)
		w.Operator(ops, opB)
		w.Grant(ops, roleA, ops, opA, words[0])
		w.Grant(ops, roleB, ops, opB, words[1])
	}

	w.Scope(opsA, testbed.Members(memberA))
	w.Scope(opsB, testbed.Members(memberB))

	all := []string{"get secrets", "get pods", "get services", "get endpoints"}
	may := map[[2]string]string{
		{opsA, opA}: all[0], {opsA, opB}: all[1], {opsB, opA}: all[2], {opsB, opB}: all[3],
	}
	memberOf := map[string]string{opsA: memberA, opsB: memberB}

	for who, words := range may {
		w.May(who[0], who[1], memberOf[who[0]], words)
	}

	for who, words := range may {
		for _, member := range []string{memberA, memberB} {
			for _, other := range all {
				if member == memberOf[who[0]] && other == words {
					continue
				}

				if err := denied(w, who[0], who[1], member, other); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// A Role of the tenant's own making that bears all of Ambit's marks is neither taken for Ambit's, nor deleted, nor bound.
func TestForgedMarks(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")

	owner := w.Tenant("owner-"+member, member)
	genuine := copyOf(w, ops, "op-role", member)
	forged := testbed.Role(member, "forged", "get pods")
	forged.Labels, forged.Annotations = genuine.Labels, genuine.Annotations
	stray := testbed.Role(member, "stray", "get pods")
	stray.Labels = map[string]string{"app.kubernetes.io/managed-by": "ambit", "ambit.dev/scope": "0123456789abcdef"}
	stray.Annotations = map[string]string{
		"ambit.dev/owner": "NamespaceScope/" + ops + "/no-such", "ambit.dev/source": "Role/" + ops + "/no-such",
	}

	for _, obj := range []client.Object{forged, stray} {
		if err := owner.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	w.Holds(ops, func() error {
		for _, obj := range []client.Object{forged, stray} {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
		}

		return denied(w, ops, "op", member, "get pods")
	})

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))

	if left := copies(w, member); !slices.Equal(left, []string{"Role forged", "Role stray"}) {
		t.Errorf("what is left: %v", left)
	}
}

// A tenant relabels a copy, or renames its owner, to keep it when its member leaves, or to have Ambit take a copy of its
// own for its.
func TestRelabelledToEscapePruning(t *testing.T) {
	for name, edit := range map[string]func(*rbacv1.RoleBinding){
		"no label":          func(b *rbacv1.RoleBinding) { b.Labels = nil },
		"another scope":     func(b *rbacv1.RoleBinding) { b.Labels["ambit.dev/scope"] = "0123456789abcdef" },
		"another owner":     func(b *rbacv1.RoleBinding) { b.Annotations["ambit.dev/owner"] = "NamespaceScope/elsewhere/scope" },
		"no owner":          func(b *rbacv1.RoleBinding) { delete(b.Annotations, "ambit.dev/owner") },
		"managed by others": func(b *rbacv1.RoleBinding) { b.Labels["app.kubernetes.io/managed-by"] = "Helm" },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			ops, member := w.Namespace("home"), w.Namespace("member")
			w.Operator(ops, "op", "get secrets")

			nss := w.Scope(ops, testbed.Members(member))
			w.May(ops, "op", member, "get secrets")

			owner := w.Tenant("owner-"+member, member)
			bindings := &rbacv1.RoleBindingList{}

			if err := owner.List(t.Context(), bindings, client.InNamespace(member), client.HasLabels{"ambit.dev/scope"}); err != nil {
				t.Fatal(err)
			}

			if len(bindings.Items) == 0 {
				t.Fatal("there is no copy to relabel")
			}

			for i := range bindings.Items {
				edit(&bindings.Items[i])

				if err := owner.Update(t.Context(), &bindings.Items[i]); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
			}

			w.Change(nss, func() { nss.Spec.NamespaceMembers = nil })
			w.MayNot(ops, "op", member, "get secrets")
			w.Eventually("nothing is left", func() error {
				if left := copies(w, member); len(left) > 0 {
					return &allowedError{strings.Join(left, ", ")}
				}

				return nil
			})
		})
	}
}
