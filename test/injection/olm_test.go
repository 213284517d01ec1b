package injection_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestOLMComesAndGoes installs and removes the definition while Ambit runs, where everything may be read and where Ambit may
// read its own namespace only. It is not there at first, as where Ambit was installed without it. Ambit does not serve OLM's
// kinds itself, as is meant beside OLM.
func TestOLMComesAndGoes(t *testing.T) {
	for _, profile := range []string{"cluster", "namespaced"} {
		t.Run(profile, func(t *testing.T) {
			w := &world{beds.Own(t, profile, "--default-scope=false", "--operator-groups=disabled")}
			w.undefine()

			nss := w.Scope(embedded.Namespace, withCSVs())
			w.says(nss, "CSVsInjected", no, "OLMNotFound")
			w.Reports(nss, yes, "Reconciled")

			// In peace: nothing is logged over and over, and nothing is asked for where the definition can be watched.
			most := 0
			if profile == "namespaced" {
				most = 5
			}

			w.comesToRest("requests for ClusterServiceVersions", most, w.asked)

			w.withOLM()
			w.publish(csv(embedded.Namespace, "operator.v1", "operator", map[string]string{managedOperators: "operator"}, "operator"))
			w.injected(embedded.Namespace, "operator.v1")
			w.says(nss, "CSVsInjected", yes, "Injected")

			w.undefine()
			w.says(nss, "CSVsInjected", no, "OLMNotFound")

			w.comesToRest("lines in the log", 3, w.log)

			w.Remove(nss)
			w.isGone(nss)
		})
	}
}

// undefine deletes the definition, and returns once it is gone.
func (w *world) undefine() {
	w.Helper()

	if err := w.Cluster.Undefine(w.Context(), csvDefinition().GetName()); err != nil {
		w.Fatal(err)
	}
}

// comesToRest waits until something that is counted has grown by no more than so many in the last three seconds. What began
// before may take a while where others keep the machine busy.
func (w *world) comesToRest(what string, most int, count func() int) {
	w.Helper()

	type look struct {
		at    time.Time
		count int
	}

	var looks []look

	w.Eventually(what+" come to rest", func() error {
		now := look{time.Now(), count()}
		looks = append(looks, now)

		// The first is the last one that is so long ago.
		for len(looks) > 1 && now.at.Sub(looks[1].at) >= 3*time.Second {
			looks = looks[1:]
		}

		more, within := now.count-looks[0].count, now.at.Sub(looks[0].at)
		if within < 3*time.Second || more > most {
			return fmt.Errorf("%d more within %s, want no more than %d in three seconds", more, within, most)
		}

		return nil
	})
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
