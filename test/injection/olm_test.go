package injection_test

import (
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/embedded"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// TestOLMComesAndGoes installs and removes the definition while Ambit runs, where everything may be read and where Ambit may
// read its own namespace only. It is not there at first, as where Ambit was installed without it. Ambit does not serve OLM's
// kinds itself, as is meant beside OLM.
func TestOLMComesAndGoes(t *testing.T) {
	for _, profile := range []string{"cluster", "namespaced"} {
		t.Run(profile, func(t *testing.T) {
			bed, err := testbed.Start(t.Context(), profile, "--default-scope=false", "--operator-groups=disabled")
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := bed.Stop(); err != nil {
					t.Error(err)
				}
			})

			w := &world{bed.Begin(t)}
			definition := csvDefinition()
			w.Remove(definition)
			w.isGone(definition)

			nss := w.Scope(embedded.Namespace, withCSVs())
			w.says(nss, "CSVsInjected", no, "OLMNotFound")
			w.Reports(nss, yes, "Reconciled")

			// In peace: nothing is logged over and over, and nothing is asked for where the definition can be watched.
			before := w.asked()

			time.Sleep(3 * time.Second)

			if after := w.asked(); profile == "cluster" && after != before {
				t.Errorf("ClusterServiceVersions were asked for %d times without a reason", after-before)
			} else if after-before > 5 {
				t.Errorf("ClusterServiceVersions were asked for %d times", after-before)
			}

			log := w.log()

			w.withOLM()
			w.publish(csv(embedded.Namespace, "operator.v1", "operator", map[string]string{managedOperators: "operator"}, "operator"))
			w.injected(embedded.Namespace, "operator.v1")
			w.says(nss, "CSVsInjected", yes, "Injected")

			w.Remove(definition)
			w.says(nss, "CSVsInjected", no, "OLMNotFound")
			w.isGone(definition)

			lines := w.log()

			time.Sleep(3 * time.Second)

			if more := w.log() - lines; more > 3 {
				t.Errorf("%d lines were logged in peace, %d before", more, log)
			}

			w.Remove(nss)
			w.isGone(nss)
		})
	}
}

// isGone waits until an object is gone.
func (w *world) isGone(obj client.Object) {
	w.Helper()
	w.Eventually(obj.GetName()+" goes", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return os.ErrExist
	})
}

// log counts the lines that the manager has logged.
func (w *world) log() int {
	w.Helper()

	raw, err := os.ReadFile(w.Manager.Log)
	if err != nil {
		w.Fatal(err)
	}

	return strings.Count(string(raw), "\n")
}

// asked counts Ambit's requests for ClusterServiceVersions. The garbage collector asks for whatever there ever was, too.
func (w *world) asked() int {
	w.Helper()

	n := 0

	for _, r := range w.Requests() {
		if r.Object.Resource == "clusterserviceversions" {
			n++
		}
	}

	return n
}
