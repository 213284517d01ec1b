package kinds

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWaitForOneKindWaitsForAll: whoever has waited for a kind reads others beside it, which must be known by then, too.
func TestWaitForOneKindWaitsForAll(t *testing.T) {
	t.Parallel()

	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	kindOf := func(object client.Object, name string) *kind {
		return &kind{object: object, gvk: corev1.SchemeGroupVersion.WithKind(name), decided: make(chan struct{})}
	}
	listed, late := kindOf(&corev1.Pod{}, "Pod"), kindOf(&corev1.Secret{}, "Secret")
	k := &Kinds{scheme: scheme, all: []*kind{listed, late}}

	listed.listed = true
	close(listed.decided)

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if k.WaitFor(ended, &corev1.Pod{}) {
		t.Error("it did not wait for the kind of which nothing is known")
	}

	close(late.decided)

	if !k.WaitFor(t.Context(), &corev1.Pod{}) {
		t.Error("it does not say that the kind was listed")
	}
}
