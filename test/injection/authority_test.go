package injection_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

// TestInjectionNeedsTheDelegatesRights writes as the account that the scope names: what that may not do, nobody does.
func TestInjectionNeedsTheDelegatesRights(t *testing.T) {
	w := &world{beds.Begin(t, "delegated")}
	w.withOLM()
	ops := w.Namespace("ops")
	k := w.install(ops, keda)
	marks := map[string]string{managedOperators: "operator", managedWebhooks: ""}
	w.publish(csv(ops, "operator.v1", "operator", marks, "operator"))

	hooks := validating(ops, "hooks", "operator.v1", nil)
	w.Make(hooks)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), hooks) })

	w.Make(testbed.Account(ops, "writer"))
	w.Grant(ops, "list", ops, "writer", "create,patch,delete configmaps")

	spec := withCSVs()
	spec.ServiceAccountName = "writer"
	spec.WorkloadInjector = &operatorv1.WorkloadInjector{}
	nss := w.Scope(ops, spec)

	w.says(nss, "WorkloadsInjected", no, "InjectionFailed", "service account "+ops+"/writer may not", "deployments")
	message := w.says(nss, "CSVsInjected", no, "InjectionFailed", "clusterserviceversions")
	w.Reports(nss, no, "AuthorizationRequired")
	w.clean(k)
	w.original(ops, "operator.v1")

	// With the authorization that it names it heals by itself.
	command := "ambit authorize " + ops + " --to " + ops + " --scope " + nss.Name
	if !strings.HasSuffix(message, "to grant it: "+command) {
		t.Errorf("it says %q", message)
	}

	if out, code := w.Ambit(strings.Fields(command)[1:]...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	// What a ClusterServiceVersion says becomes pods, so the guard asks for this as well where it is installed.
	w.Grant(ops, "pods", ops, "writer", "create pods")

	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)
	w.injected(ops, "operator.v1")
	w.says(nss, "WorkloadsInjected", yes, "Injected")

	// A webhook has no namespace, so nobody in the namespace can give the right to it.
	w.says(nss, "CSVsInjected", no, "InjectionFailed", "ValidatingWebhookConfiguration "+hooks.Name, "cannot patch")
	w.selects(hooks, "<none>")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hooks-" + ops}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"},
		ResourceNames: []string{hooks.Name}, Verbs: []string{"patch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "writer"}},
	}

	for _, obj := range []client.Object{role, binding} {
		w.Make(obj)
		w.Cleanup(func() { _ = w.Client.Delete(context.Background(), obj) })
	}

	w.selects(hooks, "kubernetes.io/metadata.name in ("+ops+")")
	w.says(nss, "CSVsInjected", yes, "Injected")
	w.Reports(nss, yes, "Reconciled")
}

// TestContainerThatGoes is a limit, written down in docs/limits.md: two owners of a container have to agree that it goes.
func TestContainerThatGoes(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	k := w.install(ops, keda)
	nss := w.Scope(ops, injecting())
	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)

	if _, err := w.helm(ops, keda, "- name: keda-operator", "- name: renamed"); !apierrors.IsInvalid(err) {
		t.Errorf("want it refused, got %v", err)
	}

	w.Change(nss, func() { nss.Spec.WorkloadInjector.Enable = new(false) })
	w.clean(k)
	w.install(ops, keda, "- name: keda-operator", "- name: renamed")
}

// TestLegacyScopeInjects keeps a scope that comes later from taking operators away.
func TestLegacyScopeInjects(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	k := w.install(ops, keda)
	first := w.Scope(ops, injecting())
	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)

	younger.Than(w.World, first)

	spec := injecting()
	spec.ConfigmapName = "another"
	second := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "a-second"}, Spec: spec}
	w.Make(second)

	w.says(second, "WorkloadsInjected", no, "InjectionConflict",
		"Deployment keda-operator: it is injected for the older scope "+first.Name)
	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)
	w.says(first, "WorkloadsInjected", yes, "Injected")

	// When the first goes, the second is the older one.
	w.Remove(first)
	w.shows(k, kedaWith("configmap another/namespaces")...)
	w.says(second, "WorkloadsInjected", yes, "Injected")
	w.Remove(second)
	w.shows(k, kedaWith("")...)
	w.clean(k)
}
