package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestWhatNoRoleCanGive: a Role that names nodes gives nothing of them, in its own namespace or in a member, and "ambit why"
// says so as the API server would. The status of the scope says it, too.
func TestWhatNoRoleCanGive(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get,list nodes", "get,list namespaces", "get secrets", "get leases")
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")
	w.May(ops, "op", m, "get secrets")
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	for question, want := range map[string]int{
		"get nodes": cli.ExitMissing, "list namespaces": cli.ExitMissing, "get namespaces": cli.ExitDone, "get secrets": cli.ExitDone,
	} {
		verb, resource, _ := strings.Cut(question, " ")

		out, errOut, code := run(w, "why", ops+"/op", "-n", m, "--verb", verb, "--resource", resource)
		if code != want {
			t.Errorf("%s: exit code %d, want %d: %s%s", question, code, want, out, errOut)
		}

		// The request that the operator would make.
		namespace := m
		if want == cli.ExitMissing {
			namespace = ""
		}

		if said := w.AllowedIn(ops, "op", namespace, verb, "", resource); said != (want == cli.ExitDone) {
			t.Errorf("%s: the API server says %t", question, said)
		}

		if want == cli.ExitMissing && (!strings.Contains(out, "in the whole cluster") || !strings.Contains(out, "to no effect")) {
			t.Errorf("%s: nothing says why: %s", question, out)
		}
	}

	conditions, err := json.Marshal(nss.Status.Conditions)
	if err != nil {
		t.Fatal(err)
	}

	for _, words := range []string{"RulesEffective", "get, list nodes", "list namespaces", "ambit.dev/project: disabled"} {
		if !strings.Contains(string(conditions), words) {
			t.Errorf("nothing of %q in %s", words, conditions)
		}
	}
}

// TestSubresourcesOfTheNamespace: a Role may give the status of its own namespace, and "ambit why" says so, as a request shows.
func TestSubresourcesOfTheNamespace(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m, other := w.Namespace("ops"), w.Namespace("m"), w.Namespace("other")
	role := testbed.Role(m, "r", "get namespaces")
	role.Rules[0].Resources = []string{"namespaces/status", "namespaces/finalize"}
	w.Make(testbed.Account(ops, "op"), role, testbed.Bind(m, "Role", "r", ops, "op"))

	op := w.As("system:serviceaccount:" + ops + ":op")

	for _, subresource := range []string{"status", "finalize"} {
		for namespace, want := range map[string]int{m: cli.ExitDone, other: cli.ExitMissing} {
			out, errOut, code := run(w, "why", ops+"/op", "-n", namespace, "--verb", "get", "--resource", "namespaces/"+subresource)
			if code != want {
				t.Errorf("%s of %s: exit code %d, want %d: %s%s", subresource, namespace, code, want, out, errOut)
			}

			// There is no such request as one that reads how a namespace is finalized; whether it may be made is said all the same.
			about := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			err := op.SubResource(subresource).Get(w.Context(), about, &corev1.Namespace{})

			if forbidden := apierrors.IsForbidden(err); forbidden != (want == cli.ExitMissing) {
				t.Errorf("%s of %s: the API server says %v", subresource, namespace, err)
			}
		}
	}
}

// TestKindsThatAreDefinedLater: what is installed together with its definitions is judged before these are known. Once one is,
// the status says what is so, although nothing else changes.
func TestKindsThatAreDefinedLater(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	plural, group := "of"+utilrand.String(8), "later.example.com"
	get := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural, plural + "/status"}, Verbs: []string{"get"}}

	role := testbed.ClusterRole("later-"+ops, "get nodes")
	role.Rules = append(role.Rules, get)

	w.Operator(ops, "op", "get configmaps")
	w.Make(role, everywhere(role.Name, role.Name, account(ops, "op")))
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}})

	instance := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: ops},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: ops, Namespaces: []string{m}},
	}
	w.Make(instance, &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: ops},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: ops + "-", Rules: []rbacv1.PolicyRule{get},
			Subjects: []operatorsv1alpha1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "op"}},
		}}},
	})

	effective := func(want any) {
		t.Helper()
		w.Eventually(fmt.Sprintf("RulesEffective of the instance is %v", want), func() error {
			all, err := conditions(w, instance)
			if err == nil && all["RulesEffective"]["status"] != want {
				err = fmt.Errorf("%v", all)
			}

			return err
		})
	}

	isWide(w, nss, "get "+group+"/"+plural)
	effective("True")
	define(w, plural, group, apiextensionsv1.ClusterScoped)
	isWide(w, nss)
	effective("False")
}
