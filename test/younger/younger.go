// Package younger waits for the clock of the API server, whose times are whole seconds.
package younger

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var errSameSecond = errors.New("what is made now is no younger")

// Than waits until what is made is younger than an object.
func Than(w *testbed.World, obj client.Object) {
	w.Helper()
	ThanTime(w, obj.GetNamespace(), obj.GetCreationTimestamp())
}

// ThanTime waits until what is made in a namespace is younger than a time. The API server says how old it would be, and keeps
// nothing.
func ThanTime(w *testbed.World, namespace string, at metav1.Time) {
	w.Helper()
	w.Eventually("a second passes", func() error {
		probe := testbed.Account(namespace, "younger")
		if err := w.Client.Create(w.Context(), probe, client.DryRunAll); err != nil {
			return fmt.Errorf("asking for the time: %w", err)
		}

		if !at.Before(&probe.CreationTimestamp) {
			return errSameSecond
		}

		return nil
	})
}
