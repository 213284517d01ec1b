package namespacescope_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestListIsSortedAndHasNoSpaces(t *testing.T) {
	w := begin(t)
	home, z, a, m := w.namespace("home"), w.namespace("z"), w.namespace("a"), w.namespace("m")

	w.ready(w.scope(home, "scope", members(z, a, m)))

	cm := configMap(home, defaultList)
	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"namespaces": a + "," + home + "," + m + "," + z})
}

func TestScopesShareAListAsAUnion(t *testing.T) {
	w := begin(t)
	home, a, b, c := w.namespace("home"), w.namespace("a"), w.namespace("b"), w.namespace("c")
	w.operator(home, "op")

	one, two := w.scope(home, "one", members(a, b)), w.scope(home, "two", members(b, c))
	w.lists(home, defaultList, home, a, b, c)
	w.ready(one)
	w.ready(two)
	w.equal("what one scope adds", one.Status.ValidatedMembers, []string{a, b, home})
	w.equal("what the other adds", two.Status.ValidatedMembers, []string{b, c, home})

	w.delete(one)
	w.gone(one)
	w.lists(home, defaultList, home, b, c)
	w.mayNot(home, "op", a, "get secrets")
	w.may(home, "op", b, "get secrets")
}

func TestScopesWithListsOfTheirOwn(t *testing.T) {
	w := begin(t)
	home, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")

	other := members(b)
	other.ConfigmapName = "other-list"
	w.scope(home, "one", members(a))
	w.scope(home, "two", other)

	w.lists(home, defaultList, home, a)
	w.lists(home, "other-list", home, b)
}

func TestOtherKeysOfTheConfigMapSurvive(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")

	cm := configMap(home, defaultList, "color=blue", "namespaces=what,was,there")
	cm.BinaryData = map[string][]byte{"bits": {1, 2}}
	cm.Labels = map[string]string{"team": "x"}
	w.create(cm)

	nss := w.scope(home, "scope", members(member))
	w.lists(home, defaultList, home, member)
	w.ready(nss)

	w.change(cm, func() { cm.Data["size"] = "big" })
	w.change(nss, func() { nss.Spec.NamespaceMembers = nil })
	w.lists(home, defaultList, home)

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
	home := w.namespace("home")
	nss := w.scope(home, "scope", spec{})
	w.lists(home, defaultList, home)

	cm := configMap(home, defaultList)
	w.change(cm, func() { cm.Data["color"] = "blue" })
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"color": "blue"})
}

func TestConfigMapThatWasThereIsNotDeleted(t *testing.T) {
	w := begin(t)
	home := w.namespace("home")
	cm := configMap(home, defaultList)
	w.create(cm)

	nss := w.scope(home, "scope", spec{})
	w.lists(home, defaultList, home)
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", len(cm.Data), 0)
}

func TestImmutableConfigMapIsAConflictUntilItGoes(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.operator(home, "op")

	cm := configMap(home, defaultList, "namespaces=fixed")
	cm.Immutable = new(true)
	w.create(cm)

	nss := w.scope(home, "scope", members(member))
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.may(home, "op", member, "get secrets")

	w.delete(cm)
	w.ready(nss)
	w.lists(home, defaultList, home, member)
}

func TestScopeWithAnImmutableConfigMapCanBeDeleted(t *testing.T) {
	w := begin(t)
	home := w.namespace("home")

	cm := configMap(home, defaultList, "namespaces=fixed")
	cm.Immutable = new(true)
	w.create(cm)

	nss := w.scope(home, "scope", spec{})
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.delete(nss)
	w.gone(nss)

	w.mustGet(cm)
	w.equal("data", cm.Data, map[string]string{"namespaces": "fixed"})
}

func TestAmbitsConfigMapMadeImmutable(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(home, "scope", spec{})
	w.lists(home, defaultList, home)

	cm := configMap(home, defaultList)
	w.change(cm, func() { cm.Immutable = new(true) })
	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.reports(nss, "Ready", metav1.ConditionFalse, "ConfigMapConflict")
	w.equal("what the list says", nss.Status.ValidatedMembers, []string{home})

	w.delete(nss)
	w.gone(nss)
	w.gone(cm)
}

func TestRenamedListLeavesNoOldOneBehind(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.create(configMap(home, "second", "color=blue"))

	nss := w.scope(home, "scope", members(member))
	w.lists(home, defaultList, home, member)

	w.change(nss, func() { nss.Spec.ConfigmapName = "second" })
	w.lists(home, "second", home, member)
	w.gone(configMap(home, defaultList))

	w.change(nss, func() { nss.Spec.ConfigmapName = "third" })
	w.lists(home, "third", home, member)
	w.eventually("the key goes", func() error {
		second := configMap(home, "second")
		if err := w.get(second); err != nil {
			return err
		}

		if len(second.Data) != 1 || second.Data["color"] != "blue" {
			return fmt.Errorf("the ConfigMap has %v", second.Data)
		}

		return nil
	})
}
