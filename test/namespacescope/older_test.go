package namespacescope_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	older "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
)

// olderScope makes a scope of the older group.
func (w *world) olderScope(home, name string, s older.NamespaceScopeSpec) *older.NamespaceScope {
	w.Helper()

	nss := &older.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Spec: s}
	w.create(nss)
	w.Cleanup(func() { w.discard(nss) })

	return nss
}

func (w *world) olderReady(nss *older.NamespaceScope) {
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

func TestSeedOlderGroup(t *testing.T) {
	w := begin(t)
	home, cp4i := w.namespace("home"), w.existing("cp4i")
	w.grant(home, "secretman", "secrets", "get secrets")
	w.apply(home, "seed-000-secretman.yaml")
	w.running(home, 1)

	w.apply(home, "seed-001-v1alpha1.yaml")

	nss := &older.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "namespacescope"}}
	w.mustGet(nss)
	w.Cleanup(func() { w.discard(nss) })
	w.olderReady(nss)

	w.lists(home, "namespace-scope", home, cp4i, "default")
	w.may(home, "secretman", cp4i, "get secrets")

	w.delete(nss)
	w.gone(nss)
	w.mayNot(home, "secretman", cp4i, "get secrets")
}

func TestOlderGroupProjectsEveryAccountUnlessToldWhich(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.grant(home, "one", "one", "get pods")
	w.grant(home, "two", "two", "get secrets")

	nss := w.olderScope(home, "scope", older.NamespaceScopeSpec{NamespaceMembers: []string{member}})
	w.olderReady(nss)
	w.may(home, "one", member, "get pods")
	w.may(home, "two", member, "get secrets")

	w.change(nss, func() { nss.Spec.ProjectedServiceAccounts = []string{"two"} })
	w.mayNot(home, "one", member, "get pods")
	w.may(home, "two", member, "get secrets")
}

func TestBothGroupsShareAListAndNothingElse(t *testing.T) {
	w := begin(t)
	home, a, b, c := w.namespace("home"), w.namespace("a"), w.namespace("b"), w.namespace("c")
	w.operator(home, "op")

	// The same name in both groups: two scopes, each with its own copies.
	now := w.scope(home, "scope", withMarker(members(a, c)))
	before := w.olderScope(home, "scope", older.NamespaceScopeSpec{NamespaceMembers: []string{a, b}})
	w.ready(now)
	w.olderReady(before)
	w.lists(home, defaultList, home, a, b, c)
	w.may(home, "op", b, "get secrets")
	w.seen(home, c)
	w.may(home, "op", c, "get secrets")

	w.delete(before)
	w.gone(before)
	w.lists(home, defaultList, home, a, c)
	w.may(home, "op", a, "get secrets")
	w.may(home, "op", c, "get secrets")
	w.mayNot(home, "op", b, "get secrets")
}
