package reconcile_test

import (
	"context"
	"slices"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
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
