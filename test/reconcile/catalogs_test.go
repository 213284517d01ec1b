package reconcile_test

import (
	"cmp"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// listOf is an empty list of one of OLM's kinds.
func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(olmv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))

	return list
}

// reconcileCatalogs calls the reconciler of catalogs until a call writes nothing. The first call has the catalog watched.
func (w *world) reconcileCatalogs(catalog bool) {
	w.Helper()

	for range most {
		if catalog && w.looked {
			w.knowsCatalog(w.ns(ops), "catalog")
		}

		c := w.answered(w.catalogs, scope.Catalogs.In(w.ns(ops)), w.catchUpCatalogs)

		if len(c.writes) == 0 && w.looked {
			return
		}

		w.looked = true
	}

	w.Fatal("it does not come to rest")
}

// catalogOnce calls the reconciler of catalogs once, whatever it returns.
func (w *world) catalogOnce() call {
	w.Helper()
	w.catchUpCatalogs()

	return w.call(w.catalogs, scope.Catalogs.In(w.ns(ops)))
}

// catchUpCatalogs waits until the cache of the catalogs has what is there.
func (w *world) catchUpCatalogs() {
	w.Helper()
	w.catchUp(w.catalogs.Cache, w.ns(ops), &operatorsv1.OperatorGroupList{}, scope.NewOLMList(scope.KindCSV),
		listOf(olmv1alpha1.SubscriptionKind), listOf(olmv1alpha1.InstallPlanKind), listOf(olmv1alpha1.CatalogSourceKind))
}

// knowsCatalog waits until the ConfigMap of a catalog is known as it is.
func (w *world) knowsCatalog(namespace, name string) {
	w.Helper()

	live := &corev1.ConfigMap{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, live); err != nil {
		w.Fatal(err)
	}

	if err := until(w.Context(), func() bool {
		content, known := w.catalogs.Store.Catalog(namespace, name)

		return known && content != nil && content.ResourceVersion == live.ResourceVersion
	}); err != nil {
		w.Fatalf("the catalog is not known: %v", err)
	}
}

// catalog makes a catalog in which the package kettle has the version kettle.v1.
func (w *world) catalog() {
	w.Helper()

	cm := w.configMap("catalog", map[string]string{
		"packages": "- packageName: kettle\n  channels: [{name: stable, currentCSV: kettle.v1}]\n",
		"clusterServiceVersions": strings.Join([]string{
			"- apiVersion: operators.coreos.com/v1alpha1", "  kind: ClusterServiceVersion", "  metadata: {name: kettle.v1}", "  spec:",
			"    version: 1.0.0", "    displayName: Kettle", "    installModes: [{type: OwnNamespace, supported: true}]",
			"    install: {strategy: deployment, spec: {deployments: []}}", "",
		}, "\n"),
	})
	w.Make(cm)
	w.catalogCalled("source")
}

// catalogCalled makes a source of the catalog.
func (w *world) catalogCalled(name string) {
	w.Helper()
	w.Make(&olmv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: name},
		Spec:       olmv1alpha1.CatalogSourceSpec{SourceType: olmv1alpha1.SourceTypeInternal, ConfigMap: "catalog"},
	})
}

// subscribable has a group whose one target is its own namespace. What follows is in the cache, but for the catalog, which is
// waited for.
func subscribable(t *testing.T) *world {
	t.Helper()

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["ops>"]}`)
	w.reconcileGroup() // It says in status which targets there are.
	w.watched = ""

	return w
}

// subscribed shows the states of the Subscription and of its InstallPlan, and whether the version is there.
func (w *world) subscribed() string {
	w.Helper()

	var (
		s     olmv1alpha1.Subscription
		plans olmv1alpha1.InstallPlanList
		csvs  olmv1alpha1.ClusterServiceVersionList
	)

	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, &s); err != nil {
		w.Fatal(err)
	}

	for _, list := range []client.ObjectList{&plans, &csvs} {
		if err := w.client.List(w.Context(), list, client.InNamespace(w.ns(ops))); err != nil {
			w.Fatal(err)
		}
	}

	plan, csv := "-", "-"
	if len(plans.Items) == 1 {
		plan = string(plans.Items[0].Status.Phase)
	}

	if len(csvs.Items) == 1 {
		csv = csvs.Items[0].Name
	}

	return cmp.Or(string(s.Status.State), "-") + " " + plan + " " + csv
}

// TestSubscriptions: what a Subscription gets from a catalog.
func TestSubscriptions(t *testing.T) {
	t.Parallel()

	const automatic, manual = olmv1alpha1.ApprovalAutomatic, olmv1alpha1.ApprovalManual

	for name, tc := range map[string]struct {
		approval  olmv1alpha1.Approval
		pkg       string
		group     string
		given     func(w *world)
		then      func(w *world)
		noCatalog bool
		want      string
	}{
		"an approval that is automatic installs":       {approval: automatic, want: "AtLatestKnown Complete kettle.v1"},
		"no approval means an automatic one":           {want: "AtLatestKnown Complete kettle.v1"},
		"a manual one waits":                           {approval: manual, want: "UpgradePending RequiresApproval -"},
		"a manual one installs once it was given":      {approval: manual, then: approve, want: "AtLatestKnown Complete kettle.v1"},
		"an approval of neither kind installs nothing": {approval: "manual", want: "- - -"},
		"a package that no catalog has":                {pkg: "tea", want: "- - -"},
		"a catalog that is missing":                    {noCatalog: true, want: "- - -"},
		"an account that may nothing": {
			group: `{"targetNamespaces":["ops>"],"serviceAccountName":"weak"}`,
			given: func(w *world) { w.Make(testbed.Account(w.ns(ops), "weak")) }, want: "UpgradeFailed Failed -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", cmp.Or(tc.group, `{"targetNamespaces":["ops>"]}`))

			if tc.given != nil {
				tc.given(w)
			}

			w.reconcileGroup() // It says in status which targets there are.

			w.watched = "" // What follows is in the cache, but for the catalog, which is waited for.

			if !tc.noCatalog {
				w.catalog()
			}

			w.Make(&olmv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
				Spec: &olmv1alpha1.SubscriptionSpec{
					Package: cmp.Or(tc.pkg, "kettle"), CatalogSource: "source", CatalogSourceNamespace: w.ns(ops), Channel: "stable",
					InstallPlanApproval: tc.approval,
				},
			})
			w.reconcileCatalogs(!tc.noCatalog)

			if tc.then != nil {
				tc.then(w)
				w.reconcileCatalogs(true)
			}

			is(w, "Subscription, InstallPlan and version", w.subscribed(), tc.want)
		})
	}
}

// approve approves the one InstallPlan.
func approve(w *world) {
	w.Helper()

	var plans olmv1alpha1.InstallPlanList
	if err := w.client.List(w.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil || len(plans.Items) != 1 {
		w.Fatalf("there are %d InstallPlans: %v", len(plans.Items), err)
	}

	w.Change(&plans.Items[0], func() { plans.Items[0].Spec.Approved = true })
}
