package command

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// NoNamespace is a note that a namespace does not exist: who may do what in one whose name is misspelt looks like a good answer.
// It is empty where the namespace exists, or where the caller may not look.
func NoNamespace(ctx context.Context, c client.Reader, name string) (string, error) {
	return notThere(c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}), "namespace "+name)
}

// NoAccount is the same for a service account. Rights depend on its name alone.
func NoAccount(ctx context.Context, c client.Reader, namespace, name string) (string, error) {
	return OfAccount(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{}), namespace, name)
}

// OfAccount is the same for whoever has looked for the service account already, with this result.
func OfAccount(err error, namespace, name string) (string, error) {
	return notThere(err, "service account "+namespace+"/"+printable.Name(name))
}

func notThere(err error, what string) (string, error) {
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return "", nil
	case apierrors.IsNotFound(err):
		return what + " does not exist, so this is about what bindings say of the name", nil
	default:
		return "", fmt.Errorf("looking for %s: %w", what, err)
	}
}
