package namespacescope_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestListIsSortedAndHasNoSpaces(t *testing.T) {
	w := begin(t)
	ops, z, a, m := w.namespace("home"), w.namespace("z"), w.namespace("a"), w.namespace("m")

	w.ready(w.scope(ops, "scope", members(z, a, m)))

	cm := configMap(ops, defaultList)
	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"namespaces": a + "," + ops + "," + m + "," + z})
}

func TestScopesShareAListAsAUnion(t *testing.T) {
	w := begin(t)
	ops, a, b, c := w.namespace("home"), w.namespace("a"), w.namespace("b"), w.namespace("c")
	w.operator(ops, "op")

	one, two := w.scope(ops, "one", members(a, b)), w.scope(ops, "two", members(b, c))
	w.lists(ops, defaultList, ops, a, b, c)
	w.ready(one)
	w.ready(two)
	w.equal("what one scope adds", one.Status.ValidatedMembers, []string{a, b, ops})
	w.equal("what the other adds", two.Status.ValidatedMembers, []string{b, c, ops})

	w.delete(one)
	w.gone(one)
	w.lists(ops, defaultList, ops, b, c)
	w.mayNot(ops, "op", a, "get secrets")
	w.may(ops, "op", b, "get secrets")
}

func TestScopesWithListsOfTheirOwn(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")

	other := members(b)
	other.ConfigmapName = "other-list"
	w.scope(ops, "one", members(a))
	w.scope(ops, "two", other)

	w.lists(ops, defaultList, ops, a)
	w.lists(ops, "other-list", ops, b)
}

func TestOtherKeysOfTheConfigMapSurvive(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")

	cm := configMap(ops, defaultList, "color=blue", "namespaces=what,was,there")
	cm.BinaryData = map[string][]byte{"bits": {1, 2}}
	cm.Labels = map[string]string{"team": "x"}
	w.create(cm)

	nss := w.scope(ops, "scope", members(member))
	w.lists(ops, defaultList, ops, member)
	w.ready(nss)

	w.change(cm, func() { cm.Data["size"] = "big" })
	w.change(nss, func() { nss.Spec.NamespaceMembers = nil })
	w.lists(ops, defaultList, ops)

	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"color": "blue", "size": "big"})
	w.equal("binaryData", cm.BinaryData, map[string][]byte{"bits": {1, 2}})
	w.equal("labels", cm.Labels, map[string]string{"team": "x"})
	w.equal("annotations", len(cm.Annotations), 0)
}

func TestKeysAddedToAmbitsConfigMapSurviveTheScope(t *testing.T) {
	w := begin(t)
	ops := w.namespace("home")
	nss := w.scope(ops, "scope", spec{})
	w.lists(ops, defaultList, ops)

	cm := configMap(ops, defaultList)
	w.change(cm, func() { cm.Data["color"] = "blue" })
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"color": "blue"})
}

func TestConfigMapThatWasThereIsNotDeleted(t *testing.T) {
	w := begin(t)
	ops := w.namespace("home")
	cm := configMap(ops, defaultList)
	w.create(cm)

	nss := w.scope(ops, "scope", spec{})
	w.lists(ops, defaultList, ops)
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", len(cm.Data), 0)
}

func TestImmutableConfigMapIsAConflictUntilItGoes(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")

	cm := configMap(ops, defaultList, "namespaces=fixed")
	cm.Immutable = new(true)
	w.create(cm)

	nss := w.scope(ops, "scope", members(member))
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.may(ops, "op", member, "get secrets")

	w.delete(cm)
	w.ready(nss)
	w.lists(ops, defaultList, ops, member)
}

func TestScopeWithAnImmutableConfigMapCanBeDeleted(t *testing.T) {
	w := begin(t)
	ops := w.namespace("home")

	cm := configMap(ops, defaultList, "namespaces=fixed")
	cm.Immutable = new(true)
	w.create(cm)

	nss := w.scope(ops, "scope", spec{})
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"namespaces": "fixed"})
}

func TestAmbitsConfigMapMadeImmutable(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", spec{})
	w.lists(ops, defaultList, ops)

	cm := configMap(ops, defaultList)
	w.change(cm, func() { cm.Immutable = new(true) })
	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.equal("what the list says", nss.Status.ValidatedMembers, []string{ops})

	w.delete(nss)
	w.gone(nss)
	w.gone(cm)
}

func TestRenamedListLeavesNoOldOneBehind(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.create(configMap(ops, "second", "color=blue"))

	nss := w.scope(ops, "scope", members(member))
	w.lists(ops, defaultList, ops, member)

	w.change(nss, func() { nss.Spec.ConfigmapName = "second" })
	w.lists(ops, "second", ops, member)
	w.gone(configMap(ops, defaultList))

	w.change(nss, func() { nss.Spec.ConfigmapName = "third" })
	w.lists(ops, "third", ops, member)
	w.eventually("the key goes", func() error {
		second := configMap(ops, "second")
		if err := w.get(second); err != nil {
			return err
		}

		if len(second.Data) != 1 || second.Data["color"] != "blue" {
			return fmt.Errorf("the ConfigMap has %v", second.Data)
		}

		return nil
	})
}
