package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestDefinitionsAreKeptSmall: whoever may create definitions fills them as they like. What is kept of one is what is looked at.
func TestDefinitionsAreKeptSmall(t *testing.T) {
	t.Parallel()

	var words []string

	labels := map[string]string{}

	for i := range 1000 {
		words = append(words, fmt.Sprint("word-", i))
		labels[words[i]] = words[i]
	}

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "things.example.com", UID: "u", ResourceVersion: "1", Labels: labels, Annotations: labels, Finalizers: words,
		OwnerReferences: make([]metav1.OwnerReference, len(words)), DeletionTimestamp: new(metav1.Now()),
	}}
	crd.Spec.Group = "example.com"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", ShortNames: words, Categories: words}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, DeprecationWarning: new(strings.Join(words, " ")),
	}}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{
		AcceptedNames: *crd.Spec.Names.DeepCopy(), StoredVersions: words,
		Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Message: strings.Join(words, " ")},
			{Type: apiextensionsv1.NonStructuralSchema, Message: strings.Join(words, " ")},
		},
	}

	got, err := NewRemembered().transform(crd)
	if err != nil {
		t.Fatal(err)
	}

	kept, _ := got.(*apiextensionsv1.CustomResourceDefinition)
	if kept.Name != "things.example.com" || kept.UID != "u" || kept.ResourceVersion != "1" || kept.DeletionTimestamp == nil ||
		len(kept.Spec.Versions) != 1 || kept.Spec.Versions[0].Name != "v1" || !kept.Spec.Versions[0].Served ||
		len(kept.Status.Conditions) != 1 || kept.Status.Conditions[0].Status != apiextensionsv1.ConditionTrue {
		t.Errorf("what is looked at is not kept: %+v", kept)
	}

	if text, err := json.Marshal(kept); err != nil || len(text) > 1000 {
		t.Errorf("%d bytes are kept (%v)", len(text), err)
	}
}

// TestDefinitionsDisturbNobody: a change of a definition matters to all namespaces, and one of what is not looked at to none.
func TestDefinitionsDisturbNobody(t *testing.T) {
	t.Parallel()

	handled := 0
	handler := ofDefinitions(changes.Requesting(changes.New(), func(context.Context, client.Object) []scope.Key {
		handled++

		return nil
	}))
	kept := func(version string, edit func(*apiextensionsv1.CustomResourceDefinition)) client.Object {
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "things.example.com", ResourceVersion: version, Generation: 7},
		}
		crd.Labels = map[string]string{"is": version}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}}
		edit(crd)

		return cut(crd)
	}
	same := func(*apiextensionsv1.CustomResourceDefinition) {}

	for reason, tc := range map[string]struct {
		edit func(*apiextensionsv1.CustomResourceDefinition)
		want int
	}{
		"a label":            {same, 0},
		"what is served":     {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = true }, 2},
		"that it is deleted": {func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = new(metav1.Now()) }, 2},
	} {
		handled = 0
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: kept("1", same), ObjectNew: kept("2", tc.edit)}, nil)

		if handled != tc.want {
			t.Errorf("%s: asked for the keys of %d objects, want %d", reason, handled, tc.want)
		}
	}
}
