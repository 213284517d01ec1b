package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// moving is an API server on which something changes just before the objects of a kind are listed, which no cache knows then.
type moving struct {
	client.Reader

	kind string
	move func()
}

func (r *moving) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if move := r.move; move != nil && list.GetObjectKind().GroupVersionKind().Kind == r.kind+"List" {
		r.move = nil
		move()
	}

	return r.Reader.List(ctx, list, opts...)
}

// TestNoInstallPlanFromAnOlderCatalog: a Subscription that came after a change of its catalog, as from one file, gets no
// InstallPlan of what the catalog held before, even if Ambit hears of the Subscription first.
func TestNoInstallPlanFromAnOlderCatalog(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		kind string
		move func(w *world)
		want []string // the versions of the InstallPlans
	}{
		"its ConfigMap holds something else": {"ConfigMap", func(w *world) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "catalog"}}
			w.Change(cm, func() { cm.Data = kettles(kettle2) })
		}, []string{"kettle.v2"}},
		"its ConfigMap is gone": {"ConfigMap", func(w *world) {
			w.Remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "catalog"}})
		}, nil},
		"its source names another ConfigMap": {olmv1alpha1.CatalogSourceKind, func(w *world) {
			w.Make(w.configMap("other", kettles(kettle3)))

			source := &olmv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "source"}}
			w.Change(source, func() { source.Spec.ConfigMap = "other" })
		}, []string{"kettle.v3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := subscribable(t)
			w.catalog()
			w.reconcileCatalogs(true)

			w.Make(&olmv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
				Spec: &olmv1alpha1.SubscriptionSpec{
					Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops),
					InstallPlanApproval: olmv1alpha1.ApprovalManual,
				},
			})
			w.catchUpCatalogs()

			live := &moving{Reader: w.catalogs.Live, kind: tc.kind, move: func() { tc.move(w) }}
			r := w.catalogsFrom(w.catalogs.Cache)
			r.Live = live
			c := w.call(r, scope.Catalogs.In(w.ns(ops)))

			if live.move != nil || c.err != nil {
				t.Errorf("it looked: %t, and failed: %v", live.move == nil, c.err)
			}

			is(w, "InstallPlans before Ambit has heard", w.planned(), []string(nil))

			if err := until(w.Context(), func() bool {
				w.catalogOnce()

				return slices.Equal(w.planned(), tc.want)
			}); err != nil {
				t.Errorf("there are InstallPlans of %q, and should be of %q", w.planned(), tc.want)
			}
		})
	}
}

// planned are the versions that there are InstallPlans of.
func (w *world) planned() []string {
	w.Helper()

	var out []string
	for _, ip := range w.plansIn() {
		out = append(out, ip.Spec.ClusterServiceVersionNames...)
	}

	return out
}

// TestLateCacheInstallsByNoPlanOfBefore: what an InstallPlan did is told to the InstallPlan as it is. Where the cache has yet to
// report what Ambit wrote to it, the API server would refuse that, and the next plan would only find that everything is there.
func TestLateCacheInstallsByNoPlanOfBefore(t *testing.T) {
	t.Parallel()

	w := groupedWith(t, "cluster")
	account := testbed.Account(w.ns(ops), "scoped")
	w.Make(account)
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
	w.reconcileGroup()

	w.watched = ""
	w.catalog()
	w.reconcileCatalogs(true)
	w.subscribe()
	w.reconcileCatalogs(true)
	w.catchUpCatalogs()

	plans := listOf(olmv1alpha1.InstallPlanKind)
	late := w.lateFrom(w.catalogs.Cache, plans)
	r := w.catalogsFrom(late)

	w.Remove(account)
	w.answered(r, scope.Catalogs.In(w.ns(ops)), w.catchUpCatalogs)
	w.isLate(late, listOf(olmv1alpha1.InstallPlanKind))

	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.gives("everything", w.everythingIn(ops))
	w.wroteAs = nil

	time.Sleep(changes.CacheWait)
	w.call(r, scope.Catalogs.In(w.ns(ops)))
	is(w, "who installed by what the cache has", w.installsAs(), []string{})

	r.Cache = w.catalogs.Cache
	w.answered(r, scope.Catalogs.In(w.ns(ops)), w.catchUpCatalogs)

	s := w.plansIn()[0].Status
	if s.AttenuatedServiceAccountRef == nil || len(s.Plan) == 0 || s.Plan[len(s.Plan)-1].Status != olmv1alpha1.StepStatusCreated {
		t.Errorf("the status is %+v", s)
	}
}
