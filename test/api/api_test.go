// Package api tests the schemas of Ambit's kinds on a real API server: what it accepts, what it refuses, what it fills
// in, and what it hands back.
package api

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	v1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

const scopes = "namespacescopes"

// scopeClient returns a client of the version that decodes into the Go types and adds nothing to what it is given.
func scopeClient(t *testing.T) *rest.RESTClient {
	t.Helper()

	cfg := testcluster.Config(t)
	testcluster.InstallCRDs(t, cfg)

	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	cfg.APIPath = "/apis"
	cfg.GroupVersion = &v1.GroupVersion
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()

	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}

	return client
}

// scopeJSON makes a NamespaceScope of a document that holds everything but the type and the name.
func scopeJSON(t *testing.T, document string) []byte {
	t.Helper()

	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		t.Fatalf("the test's own document: %v", err)
	}

	object["apiVersion"] = v1.GroupVersion.String()
	object["kind"] = "NamespaceScope"
	object["metadata"] = map[string]any{"name": "a-scope"}

	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// dryRun creates a NamespaceScope without storing it, and returns it as it would be stored.
func dryRun(t *testing.T, client *rest.RESTClient, fieldValidation, document string) (*v1.NamespaceScope, error) {
	t.Helper()

	scope := &v1.NamespaceScope{}
	err := client.Post().Namespace("default").Resource(scopes).
		Param("dryRun", "All").
		Param("fieldValidation", fieldValidation).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(scopeJSON(t, document)).
		Do(t.Context()).Into(scope)

	return scope, err
}

// refusedFields returns the fields that the API server names in a refusal.
func refusedFields(t *testing.T, err error) []string {
	t.Helper()

	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		t.Fatalf("want the refusal of an invalid object, got: %v", err)
	}

	var fields []string
	for _, cause := range status.ErrStatus.Details.Causes {
		fields = append(fields, cause.Field)
	}

	return fields
}
