package reconcile_test

import (
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// forges has somebody write into the status of the Subscription of kettle.
func (w *world) forges(write func(*olmv1alpha1.SubscriptionStatus)) {
	w.Helper()

	s := &olmv1alpha1.Subscription{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, s); err != nil {
		w.Fatal(err)
	}

	s.Status.LastUpdated = metav1.Now()
	write(&s.Status)

	if err := w.client.Status().Update(w.Context(), s); err != nil {
		w.Fatal(err)
	}

	w.touch(s)
}

// TestNobodysStatusTakesAnOperator: whoever may write the status of a Subscription has it neither replace, and so delete, an
// operator that it did not install, nor configure it.
func TestNobodysStatusTakesAnOperator(t *testing.T) {
	t.Parallel()

	for name, labels := range map[string]func(*world) map[string]string{
		"one that nobody subscribed to": func(*world) map[string]string { return nil },
		"one of another package": func(w *world) map[string]string {
			return map[string]string{scope.PackageLabel("op", w.ns(ops)): ""}
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

			claims := &olmv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
				Spec: &olmv1alpha1.SubscriptionSpec{
					Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops),
					Config: new(decoded[olmv1alpha1.SubscriptionConfig](w, `{"env":[{"name":"FORGED","value":"yes"}]}`)),
				},
			}
			w.Make(claims)
			w.forges(func(s *olmv1alpha1.SubscriptionStatus) { s.InstalledCSV, s.CurrentCSV = "op.v1", "op.v1" })

			for _, pkg := range []string{"", "kettle"} {
				w.Change(claims, func() { claims.Spec.Package = pkg })
				w.touch(claims)
				w.reconcileGroup()
				is(w, "it is configured by one of package "+pkg, strings.Contains(w.shows(envOf), "FORGED"), false)
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

// TestNobodysStatusInstallsAgain: whoever may write the status of a Subscription has nothing installed again that was
// uninstalled, whatever InstallPlan they name there, and whatever the catalog holds by then.
func TestNobodysStatusInstallsAgain(t *testing.T) {
	t.Parallel()

	for name, ref := range map[string]func(*world) *corev1.ObjectReference{
		"none":                    func(*world) *corev1.ObjectReference { return nil },
		"one that is not there":   func(*world) *corev1.ObjectReference { return &corev1.ObjectReference{UID: "1"} },
		"one that was superseded": func(w *world) *corev1.ObjectReference { return &corev1.ObjectReference{UID: w.plansIn()[1].UID} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := subscribable(t)

			w.Make(w.configMap("catalog", kettles(kettle1)))
			w.catalogCalled("source")
			w.subscribes("", olmv1alpha1.ApprovalManual)
			w.approves("kettle.v1")
			w.becomes("kettle.v1", olmv1alpha1.CSVPhaseSucceeded)
			w.changes(kettle1, kettle2, kettle3)
			is(w, "while it is there", w.upgrades(), "UpgradePending: v1=Complete v2=RequiresApproval | v1")
			w.removes(w.versionCalled("kettle.v1"))

			w.changes(kettle1, kettle2, kettle3, kettle{number: 4, replaces: "kettle.v3"})

			const uninstalled = "- Uninstalled: v1=Complete v2=Superseded |"
			is(w, "before", w.upgrades(), uninstalled)

			w.forges(func(s *olmv1alpha1.SubscriptionStatus) { s.InstallPlanRef, s.Install, s.InstalledCSV = ref(w), nil, "" })
			w.changes(kettle1, kettle2)
			is(w, "after", w.upgrades(), uninstalled)
		})
	}
}

// TestInstallPlanIsNamedLater: an InstallPlan may be carried out before the status of its Subscription could be written. The
// Subscription names the one that installed what is there, whichever it named before.
func TestInstallPlanIsNamedLater(t *testing.T) {
	t.Parallel()

	w := subscribable(t)

	w.Make(w.configMap("catalog", kettles(kettle1)))
	w.catalogCalled("source")
	w.subscribes("", olmv1alpha1.ApprovalAutomatic)
	w.becomes("kettle.v1", olmv1alpha1.CSVPhaseSucceeded)
	w.changes(kettle1, kettle2)
	w.becomes("kettle.v2", olmv1alpha1.CSVPhaseSucceeded)
	w.removes(w.versionCalled("kettle.v1"))

	refs := map[string]*corev1.ObjectReference{"none": nil, "one that is gone": {UID: "1"}}

	for _, ip := range w.plansIn() {
		refs[ip.Spec.ClusterServiceVersionNames[0]] = &corev1.ObjectReference{Name: ip.Name, UID: ip.UID}
	}

	is(w, "how many there are", len(refs), 4)

	for before, ref := range refs {
		w.forges(func(s *olmv1alpha1.SubscriptionStatus) { s.InstallPlanRef, s.Install = ref, nil })
		w.reconcileCatalogs(true)

		s := &olmv1alpha1.Subscription{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, s); err != nil {
			t.Fatal(err)
		}

		want, named, install := refs["kettle.v2"].UID, s.Status.InstallPlanRef, s.Status.Install
		if named == nil || named.UID != want || install == nil || install.UID != want {
			t.Errorf("after %s it names %+v and %+v", before, named, install)
		}
	}
}
