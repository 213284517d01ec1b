package reconcile_test

import (
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

// forges has somebody write into the status of the Subscription of kettle that another operator is what it installed.
func (w *world) forges(csv string) {
	w.Helper()

	s := &olmv1alpha1.Subscription{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, s); err != nil {
		w.Fatal(err)
	}

	s.Status.InstalledCSV, s.Status.CurrentCSV, s.Status.LastUpdated = csv, csv, metav1.Now()
	if err := w.client.Status().Update(w.Context(), s); err != nil {
		w.Fatal(err)
	}

	w.touch(s)
}

// TestNobodysStatusTakesAnOperator: whoever may write the status of a Subscription has it neither replace, and so delete, an
// operator that it did not install, nor configure one of another package.
func TestNobodysStatusTakesAnOperator(t *testing.T) {
	t.Parallel()

	for name, labels := range map[string]func(*world) map[string]string{
		"one that nobody subscribed to": func(*world) map[string]string { return nil },
		"one of another package": func(w *world) map[string]string {
			return map[string]string{catalog.PackageLabel("op", w.ns(ops)): ""}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", `{"targetNamespaces":["ops>"]}`)
			w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Labels = labels(w)
				c.Spec.Version.Major = 1
			})
			w.reconcileGroup()
			w.rollOut()
			w.reconcileGroup()
			is(w, "phase", w.phase(), succeeded)

			w.Make(&olmv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
				Spec: &olmv1alpha1.SubscriptionSpec{
					Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops),
					Config: new(decoded[olmv1alpha1.SubscriptionConfig](w, `{"env":[{"name":"FORGED","value":"yes"}]}`)),
				},
			})
			w.forges("op.v1")

			if labels(w) != nil {
				w.reconcileGroup()
				is(w, "it is configured", strings.Contains(w.shows(envOf), "FORGED"), false)
			}

			w.watched = "" // What follows is in the cache, but for the catalog, which is waited for.

			w.Make(w.configMap("catalog", kettles(kettle{number: 2, skipRange: "<2.0.0"})))
			w.catalogCalled("source")
			w.reconcileCatalogs(true)

			is(w, "what the new one replaces", w.versionCalled("kettle.v2").Spec.Replaces, "")
			is(w, "the other is being deleted, or was told to go", w.phase(), succeeded)
		})
	}
}
