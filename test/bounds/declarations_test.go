package bounds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestLargeDeclarationsStarveNobody: who may declare scopes and groups in one namespace fills it with such that are as large as
// an object can be. Ambit stays small, also when it begins anew; others are served meanwhile; a scope of that namespace that is
// small is served as before; and what is left out says so. Once there is room, all is read again.
func TestLargeDeclarationsStarveNobody(t *testing.T) {
	const scopes, groups = 10, 6

	w := beds.Quiet(t, "delegated")
	evil, served := w.Namespace("evil"), w.Namespace("served")
	home, member, joins := w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")

	for ns, member := range map[string]string{evil: served, home: member} {
		w.Operator(ns, "op", "get secrets")
		w.Delegate(ns, []string{"get secrets"}, member)
	}

	w.Grant(joins, "in-member", home, "delegate", append(testbed.InMember(), "get secrets")...)

	small, others := w.Scope(evil, testbed.DelegatedBy("delegate", served)), w.Scope(home, testbed.DelegatedBy("delegate", member))
	w.Reports(small, yes, "Reconciled")
	w.Reports(others, yes, "Reconciled")

	user := mallory(w, evil, &operatorsv1.OperatorGroupList{}, operatorsv1.GroupVersion.Group, "operatorgroups")
	many(w, user, scopes, func(i int) client.Object { return largeScope(evil, i) })
	many(w, user, groups, func(i int) client.Object { return largeGroup(evil, i) })

	// How long others wait is measured by the benchmark: the API server has as much to do here as Ambit.
	serve := func() {
		w.Change(others, func() { others.Spec = testbed.DelegatedBy("delegate", member, joins) })
		w.May(home, "op", joins, "get secrets")
		w.Change(others, func() { others.Spec = testbed.DelegatedBy("delegate", member) })
		w.MayNot(home, "op", joins, "get secrets")
	}

	serve()
	w.Within(long, "what is left out is told", func() error { return limited(w, small, largeScope(evil, 0)) })
	w.May(evil, "op", served, "get secrets")
	bounded(w)

	reborn(w)
	serve()
	w.Within(long, "what is left out is told", func() error { return limited(w, small, largeScope(evil, 0)) })
	w.May(evil, "op", served, "get secrets")
	bounded(w)

	for i := range scopes {
		w.Remove(largeScope(evil, i))
	}

	began := time.Now()

	w.Within(long, "it is well again", func() error {
		if limited(w, small) == nil {
			return errStillThere
		}

		return nil
	})
	w.Logf("it was well again %v after the last one went", time.Since(began))
	w.May(evil, "op", served, "get secrets")
	bounded(w)
}

// mallory is an administrator of a namespace who may also write further resources of an API group there, of the first of which
// there is a list.
func mallory(w *testbed.World, namespace string, list client.ObjectList, group string, resources ...string) client.Client {
	w.Helper()

	user := w.Tenant("mallory-"+namespace, namespace)
	binding := testbed.Bind(namespace, "Role", "further", namespace, "mallory")
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mallory-" + namespace}}

	w.Make(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "further"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}},
	}, binding)
	w.Eventually("the tenant may write "+resources[0], func() error {
		return user.List(w.Context(), list, client.InNamespace(namespace))
	})

	return user
}

// largeScope is a scope that is about as large as it can be, by its number; no two are of the same size.
func largeScope(namespace string, number int) *operatorv1.NamespaceScope {
	nss := &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("large-%03d", number),
			Annotations: map[string]string{"note": strings.Repeat("n", 240_000)},
		},
		Spec: testbed.DelegatedBy("delegate"),
	}

	// Smaller ones come later, and each is smaller than what is there.
	for i := range 12_000 - 10*number {
		nss.Spec.NamespaceMembers = append(nss.Spec.NamespaceMembers, fmt.Sprintf("%s-%03d-%05d", strings.Repeat("m", 45), number, i))
	}

	for i := range 900 {
		nss.Spec.ServiceAccountMembers = append(nss.Spec.ServiceAccountMembers, fmt.Sprintf("%s-%d", strings.Repeat("a", 200), i))
	}

	return nss
}

// largeGroup is an OperatorGroup that is about as large as it can be.
func largeGroup(namespace string, number int) *operatorsv1.OperatorGroup {
	group := testbed.GroupOf(namespace, "delegate")
	group.Name = fmt.Sprintf("large-%03d", number)
	group.Annotations = map[string]string{"note": strings.Repeat("n", 250_000)}

	for i := range 8_000 {
		group.Spec.TargetNamespaces = append(group.Spec.TargetNamespaces,
			fmt.Sprintf("%s-%03d-%05d", strings.Repeat("t", 45), number, i))
	}

	return group
}

// limited complains unless each of the scopes says that its namespace holds more than may be remembered.
func limited(w *testbed.World, scopes ...*operatorv1.NamespaceScope) error {
	w.Helper()

	for _, nss := range scopes {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		if c := meta.FindStatusCondition(nss.Status.Conditions, "Ready"); c == nil || c.Reason != "LimitExceeded" {
			return fmt.Errorf("%s is %+v", nss.Name, c)
		}
	}

	return nil
}
