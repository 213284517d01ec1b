package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
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
