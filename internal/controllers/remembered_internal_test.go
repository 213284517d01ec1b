package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
