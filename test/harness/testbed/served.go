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

// patientWait is how long another tenant may wait on a machine that runs other tests meanwhile. The bound itself is two seconds,
// and the benchmark measures it. Before there were bounds, tenants waited nine seconds or more during what test/bounds does.
const patientWait = 25 * time.Second

var errNotServed = errors.New("it is not there")

// ServedSoon fails the test unless what another tenant asks for is there soon.
func (w *World) ServedSoon(ask func(), is func() bool) {
	w.Helper()
	ask()

	began := time.Now()

	w.Eventually("another tenant is served", func() error {
		if !is() {
			return errNotServed
		}

		return nil
	})

	if took := time.Since(began); took > patientWait {
		w.Errorf("another tenant waited %v", took)
	} else {
		w.Logf("another tenant waited %v", took)
	}
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
