package namespacescope_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
)

// olderScope makes a scope of the legacy group.
func (w *world) olderScope(ops, name string, s namespacescopev1alpha1.NamespaceScopeSpec) *namespacescopev1alpha1.NamespaceScope {
	w.Helper()

	nss := &namespacescopev1alpha1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}, Spec: s}
	w.create(nss)
	w.Cleanup(func() { w.discard(nss) })

	return nss
}

func (w *world) olderReady(nss *namespacescopev1alpha1.NamespaceScope) {
	w.Helper()
	w.eventually("the older scope is ready", func() error {
		if err := w.get(nss); err != nil {
			return err
		}

		if !meta.IsStatusConditionTrue(nss.Status.Conditions, "Ready") {
			return errNotThere
		}

		return nil
	})
}

func TestSeedLegacyGroup(t *testing.T) {
	w := begin(t)
	ops, cp4i := w.namespace("home"), w.existing("cp4i")
	w.grant(ops, "secretman", "secrets", "get secrets")
	w.apply(ops, "seed-000-secretman.yaml")
	w.running(ops, 1)

	w.apply(ops, "seed-001-v1alpha1.yaml")

	nss := &namespacescopev1alpha1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "namespacescope"}}
	w.mustGet(nss)
	w.Cleanup(func() { w.discard(nss) })
	w.olderReady(nss)

	w.lists(ops, "namespace-scope", ops, cp4i, "default")
	w.may(ops, "secretman", cp4i, "get secrets")

	w.delete(nss)
	w.gone(nss)
	w.mayNot(ops, "secretman", cp4i, "get secrets")
}

func TestLegacyGroupProjectsEveryAccountUnlessItNamesSome(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.grant(ops, "one", "one", "get pods")
	w.grant(ops, "two", "two", "get secrets")

	nss := w.olderScope(ops, "scope", namespacescopev1alpha1.NamespaceScopeSpec{NamespaceMembers: []string{member}})
	w.olderReady(nss)
	w.may(ops, "one", member, "get pods")
	w.may(ops, "two", member, "get secrets")

	w.change(nss, func() { nss.Spec.ProjectedServiceAccounts = []string{"two"} })
	w.mayNot(ops, "one", member, "get pods")
	w.may(ops, "two", member, "get secrets")
}

func TestBothGroupsShareAListAndNothingElse(t *testing.T) {
	w := begin(t)
	ops, a, b, c := w.namespace("home"), w.namespace("a"), w.namespace("b"), w.namespace("c")
	w.operator(ops, "op")

	// The same name in both groups: two scopes, each with its own copies.
	now := w.scope(ops, "scope", withMarker(members(a, c)))
	before := w.olderScope(ops, "scope", namespacescopev1alpha1.NamespaceScopeSpec{NamespaceMembers: []string{a, b}})
	w.ready(now)
	w.olderReady(before)
	w.lists(ops, defaultList, ops, a, b, c)
	w.may(ops, "op", b, "get secrets")
	w.seen(ops, c)
	w.may(ops, "op", c, "get secrets")

	w.delete(before)
	w.gone(before)
	w.lists(ops, defaultList, ops, a, c)
	w.may(ops, "op", a, "get secrets")
	w.may(ops, "op", c, "get secrets")
	w.mayNot(ops, "op", b, "get secrets")
}
