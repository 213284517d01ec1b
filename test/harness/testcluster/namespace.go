package testcluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Namespace creates a namespace with a name that begins with prefix and that no other test has. It is deleted after the test if
// the cluster is kept: ending a namespace costs Kubernetes more than most tests do.
func Namespace(t testing.TB, cfg *rest.Config, prefix string) string {
	t.Helper()

	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}

	namespaces := clients.CoreV1().Namespaces()

	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}

	if !Kept() {
		return namespace.Name
	}

	t.Cleanup(func() {
		// The test's own context is cancelled by now.
		err := namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})

	return namespace.Name
}
