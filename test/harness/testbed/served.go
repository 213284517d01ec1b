package testbed

import (
	"errors"
	"fmt"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

var errNotServed = errors.New("it is not there")

// Serves fails the test unless what another tenant asks for is there at last, and returns after what time. How long that may be
// is for the benchmark, on a machine that does nothing else: here, most of it may be the API server's time.
func (w *World) Serves(ask func(), is func() bool) time.Duration {
	w.Helper()
	ask()

	began := time.Now()

	w.Eventually("another tenant is served", func() error {
		if !is() {
			return errNotServed
		}

		return nil
	})

	took := time.Since(began)
	w.Logf("another tenant waited %v", took)

	return took
}

// GroupOf is an OperatorGroup for its own namespace, with a service account if one is named.
func GroupOf(namespace, account string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}, ServiceAccountName: account},
	}
}

// Succeeded waits until what a ClusterServiceVersion installs runs.
func (w *World) Succeeded(csv *olm.ClusterServiceVersion) {
	w.Helper()
	w.Eventually(csv.Name+" runs", func() error { return w.InPhase(csv, olm.CSVPhaseSucceeded) })
}

// InPhase returns an error unless a ClusterServiceVersion is in a phase.
func (w *World) InPhase(csv *olm.ClusterServiceVersion, phase olm.ClusterServiceVersionPhase) error {
	w.Helper()

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
		return err //nolint:wrapcheck // The error is reported with what was waited for.
	}

	if csv.Status.Phase != phase {
		return fmt.Errorf("its phase is %q: %s", csv.Status.Phase, csv.Status.Message)
	}

	return nil
}
