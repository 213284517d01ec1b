package reconcile_test

import (
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// everythingIn is all that can be done in a namespace.
func (w *world) everythingIn(short string) authority.Place {
	return authority.Place{Namespace: w.ns(short), Rules: []rbacv1.PolicyRule{testbed.Rule("* *")}}
}

// claimed has the status of the group say that its account exists, as whoever may write statuses could.
func (w *world) claimed() {
	w.Helper()

	g := &operatorsv1.OperatorGroup{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "group"}, g); err != nil {
		w.Fatal(err)
	}

	g.Status.ServiceAccountRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ServiceAccount", Namespace: w.ns(ops), Name: "scoped", UID: "claimed",
	}

	if err := w.client.Status().Update(w.Context(), g); err != nil {
		w.Fatal(err)
	}

	w.touch(g)
}

// TestStatusNamesNoWriter: what is subscribed to is written as the account that the group names, if that exists. The status of a
// group, which others may write, makes no account exist, and does not say which one wrote.
func TestStatusNamesNoWriter(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		exists bool
		want   string
	}{
		"an account that is gone": {
			reason: "rights outlive their account: nobody may use those of one that is gone", want: "UpgradePending Installing -",
		},
		"an account that exists": {
			reason: "the InstallPlan names the account that wrote", exists: true, want: "AtLatestKnown Complete kettle.v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.gives("everything", w.everythingIn(ops))
			w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)

			account := testbed.Account(w.ns(ops), "scoped")
			if tc.exists {
				w.Make(account)
			}

			w.reconcileGroup()
			w.claimed()

			w.watched = ""
			w.catalog()
			w.subscribe()
			w.reconcileCatalogs(true)
			is(w, "Subscription, InstallPlan and version, since "+tc.reason, w.subscribed(), tc.want)

			var plans olmv1alpha1.InstallPlanList
			if err := w.client.List(w.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil {
				w.Fatal(err)
			}

			for i := range plans.Items {
				if ref := plans.Items[i].Status.AttenuatedServiceAccountRef; ref != nil && ref.UID != account.UID {
					w.Errorf("the InstallPlan says that account %s wrote, which is not there", ref.UID)
				}
			}
		})
	}
}

func (w *world) subscribe() {
	w.Helper()
	w.Make(&olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
		Spec: &olmv1alpha1.SubscriptionSpec{
			Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops), Channel: "stable",
		},
	})
}

// TestWhoGaveTakesBack: where Ambit writes as accounts only, the account that gave takes back. Whoever has the group name none,
// or one that is not there, keeps nothing by that.
func TestWhoGaveTakesBack(t *testing.T) {
	t.Parallel()

	for name, group := range map[string]string{
		"the group names none any more":  inA,
		"it names one that is not there": `{"targetNamespaces":["a>","ops>"],"serviceAccountName":"nobody"}`,
		"it names the one that gave":     inAByAccount,
		"there is no group any more":     "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, "delegated")
			w.Make(testbed.Account(w.ns(ops), "scoped"))
			w.gives("everything-ops", w.everythingIn(ops))
			w.gives("everything-a", w.everythingIn("a"))
			w.group("group", inAByAccount)
			w.csv("*")
			w.reconcileGroup()
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})

			if group == "" {
				w.Remove(w.groupNamed(ops, "group"))
			} else {
				w.regroup(group)
			}

			w.reconcileGroup()
			w.Remove(w.versionCalled("op.v1"))
			w.reconcileGroup()
			is(w, "where it has permissions once its ClusterServiceVersion is gone", w.served(), []string{})
		})
	}
}
