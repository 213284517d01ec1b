package namespacescope_test

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	// delegateAccount is the service account of an operator namespace that its scopes name where Ambit does not write by itself.
	delegateAccount = "delegate"
	// manualAccount is the one that scopes with manualManagement mean. The older group has no other way to name one.
	manualAccount = "ambit"
	// delegateRole is what every delegate may do.
	delegateRole = "namespacescope-test-delegate"
	// delegateLabel is on every ClusterRoleBinding of a delegate.
	delegateLabel = "namespacescope-test/delegate"
)

// delegateRules are the least by which an account can write whatever the tests' scopes ask for.
func delegateRules() []rbacv1.PolicyRule {
	of := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}

	return []rbacv1.PolicyRule{
		of(rbacGroup, []string{"roles", "rolebindings"}, "create", "patch", "delete"),
		of(rbacGroup, []string{"roles"}, "escalate"),
		of(rbacGroup, []string{"roles", "clusterroles"}, "bind"),
		of("", []string{"configmaps"}, "create", "patch", "delete"),
		of("apps", []string{"deployments", "statefulsets", "daemonsets"}, "patch"),
		of("", []string{"pods/eviction"}, "create"),
	}
}

// prepareDelegates makes the role of all delegates.
func (s *system) prepareDelegates(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: delegateRole}, Rules: delegateRules()}

	// A cluster that served an earlier run may have it.
	return client.IgnoreAlreadyExists(s.client.Create(ctx, role))
}

func (s *system) dismissDelegates(ctx context.Context) error {
	return s.client.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, client.HasLabels{delegateLabel})
}

// delegate makes an account of an operator namespace that may write what scopes ask for, and waits until the API server knows.
func (w *world) delegate(ops, account string) {
	w.Helper()

	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: delegateRole + "-" + ops + "-" + account, Labels: map[string]string{delegateLabel: ops}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: delegateRole},
		Subjects:   []rbacv1.Subject{subject(ops, account)},
	}

	for _, obj := range []client.Object{serviceAccount(ops, account), bound} {
		if err := w.client.Create(w.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
			w.Fatalf("making a delegate: %v", err)
		}
	}

	w.may(ops, account, ops, "patch deployments")
}

// identify has a scope name who writes for it where the profile demands that. It says whether the scope changed.
func (w *world) identify(obj client.Object) bool {
	w.Helper()

	if w.profile != delegated {
		return false
	}

	switch nss := obj.(type) {
	case *operatorv1.NamespaceScope:
		if nss.Spec.ServiceAccountName != "" {
			return false
		}

		w.delegate(nss.Namespace, delegateAccount)
		nss.Spec.ServiceAccountName = delegateAccount
	case *namespacescopev1alpha1.NamespaceScope:
		if nss.Spec.ManualManagement {
			return false
		}

		w.delegate(nss.Namespace, manualAccount)
		nss.Spec.ManualManagement = true
	default:
		return false
	}

	return true
}

// identifyAll has the scopes of a namespace name who writes for them that others made, such as kubectl.
func (w *world) identifyAll(namespace string) {
	w.Helper()

	for _, list := range []client.ObjectList{&operatorv1.NamespaceScopeList{}, &namespacescopev1alpha1.NamespaceScopeList{}} {
		if err := w.client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			w.Fatal(err)
		}

		for _, nss := range objectsOf(list) {
			if w.identify(nss) {
				w.change(nss, func() { w.identify(nss) })
			}
		}
	}
}

func TestScopeIsWrittenAsTheAccountThatItNames(t *testing.T) {
	w := begin(t)
	w.needs(actsAsOthers, "Ambit may impersonate nobody")

	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	w.delegate(ops, "writer")

	s := members(member)
	s.ServiceAccountName = "writer"
	nss := w.scope(ops, "scope", s)
	w.ready(nss)
	w.may(ops, "op", member, "get secrets")
	w.lists(ops, defaultList, ops, member)

	// Without its rights nothing more is written, which shows whose they were.
	w.delete(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-writer", delegateRole, ops)}})
	w.mayNot(ops, "writer", ops, "patch deployments")
	w.grant(ops, "op", "pods", "get pods")
	w.reports(nss, "Ready", metav1.ConditionFalse, "AuthorizationRequired")

	if err := w.checkDenied(on(ops, "op", member, "get pods")); err != nil {
		t.Error(err)
	}

	w.delegate(ops, "writer")
	w.ready(nss)
	w.may(ops, "op", member, "get pods")
}

func TestScopeWithoutItsAccountHoldsUpNoOther(t *testing.T) {
	w := begin(t)
	w.needs(actsAsOthers, "Ambit may impersonate nobody")

	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(ops, "op")

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 2)

	// They share the list, and its writer.
	s := members(a)
	s.ServiceAccountName = "absent"
	first := w.scope(ops, "first", s)
	w.reports(first, "Ready", metav1.ConditionFalse, "AuthorizationRequired")

	second := w.scope(ops, "second", members(b))
	w.lists(ops, defaultList, ops, b)
	w.may(ops, "op", b, "get secrets")
	w.restarted(reader, 1)
	w.ready(second)

	// At once: the one whose account never was must not be the one that takes the list back.
	w.delete(first)
	w.delete(second)
	w.gone(first)
	w.gone(second)
}
