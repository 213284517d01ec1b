package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// conversionOwner writes how a definition converts. It is not the one that applies the rest of the definition, which would take
// it out again.
const conversionOwner = client.FieldOwner(scope.FieldManager + "-conversion")

// Secret reads one Secret by its name, as the identity that writes it: Ambit watches no Secrets, and may read none where it acts
// in the name of others. Nil when there is none.
func (a *Applier) Secret(ctx context.Context, id Identity, namespace, name string) (*corev1.Secret, error) {
	reader, err := a.as(id)
	if err != nil {
		return nil, err
	}

	secret := &corev1.Secret{}

	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // None is an answer.
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}

	return secret, nil
}

// Convert says how the objects of a definition get from one version to another, if it is still the one that was seen.
func (a *Applier) Convert(
	ctx context.Context, id Identity, name string, uid types.UID, conversion *apiextensionsv1.CustomResourceConversion,
) error {
	writer, err := a.as(id)
	if err != nil {
		return err
	}

	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		return fmt.Errorf("writing a conversion: %w", err)
	}

	// A merge leaves what it does not name, and with the URL of somebody else's beside the service nothing would be accepted.
	if err := unstructured.SetNestedField(want, nil, "webhook", "clientConfig", "url"); err != nil {
		return fmt.Errorf("writing a conversion: %w", err)
	}

	change := merge(map[string]any{metadataField: map[string]any{"uid": uid}, "spec": map[string]any{"conversion": want}})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.SetName(name)

	if err := writer.Patch(ctx, crd, change, conversionOwner); err != nil {
		return fmt.Errorf("writing the conversion of CustomResourceDefinition %s: %w", name, err)
	}

	return nil
}
