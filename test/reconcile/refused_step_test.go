package reconcile_test

import (
	"net/http"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestRefusedStep: what the account of a group may not install is told on the InstallPlan in the API server's own words, and is
// installed once it may. The version is made as that account.
func TestRefusedStep(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.subscribesAsAccount()
	w.reconcileCatalogs(true)
	is(w, "Subscription, InstallPlan and version", w.subscribed(), "UpgradeFailed Failed -")

	var plans olmv1alpha1.InstallPlanList
	if err := w.client.List(t.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil || len(plans.Items) != 1 {
		t.Fatalf("there are %d InstallPlans: %v", len(plans.Items), err)
	}

	c := plans.Items[0].Status.GetCondition(olmv1alpha1.InstallPlanInstalled)
	is(w, "Installed", string(c.Status)+" "+string(c.Reason), "False InstallComponentFailed")
	w.names("the condition", w.called(c.Message), "clusterserviceversions", "is forbidden", "system:serviceaccount:ops:scoped")

	w.wroteAs = nil
	w.gives("everything", authority.Place{Namespace: w.ns(ops), Rules: []rbacv1.PolicyRule{testbed.Rule("* *")}})
	w.reconcileCatalogs(true)
	is(w, "Subscription, InstallPlan and version with rights", w.subscribed(), "AtLatestKnown Complete kettle.v1")
	is(w, "as whom it was written", w.installsAs(), []string{"system:serviceaccount:ops:scoped"})
}

// subscribesAsAccount makes a group that names an account, and a Subscription.
func (w *world) subscribesAsAccount() {
	w.Helper()
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`)
	w.reconcileGroup()

	w.watched = "" // What follows is in the cache, but for the catalog, which is waited for.
	w.catalog()
	w.subscribe()
}

// TestInstallPlanThatIsRefused: where a quota, or an admission policy, lets nobody create an InstallPlan, the Subscription says
// so, and says it once. It is tried again, whoever raises the quota.
func TestInstallPlanThatIsRefused(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.subscribesAsAccount()
	w.gives("everything", authority.Place{Namespace: w.ns(ops), Rules: []rbacv1.PolicyRule{testbed.Rule("* *")}})

	w.refuses = refusingAll("create installplans", http.StatusForbidden)

	var last call

	for range 5 {
		last = w.catalogOnce()
		w.knowsCatalog(w.ns(ops), "catalog")
	}

	if last.err != nil || len(last.writes) > 0 || last.IsZero() {
		t.Errorf("the last of several plans wrote %q, and asks for %+v: %v", last.writes, last.Result, last.err)
	}

	var s olmv1alpha1.Subscription
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, &s); err != nil {
		t.Fatal(err)
	}

	c := s.Status.GetCondition(olmv1alpha1.SubscriptionResolutionFailed)
	is(w, "ResolutionFailed", string(c.Status)+" "+c.Reason, "True InstallPlanRefused")
	w.names("the condition", c.Message, "no InstallPlan could be created", "refused")

	w.refuses, w.looked = nil, true
	w.reconcileCatalogs(true)
	is(w, "Subscription, InstallPlan and version after that", w.subscribed(), "AtLatestKnown Complete kettle.v1")
}

// TestLateStep: an InstallPlan has not failed because the API server is late. It is told that it is tried again, and why.
func TestLateStep(t *testing.T) {
	t.Parallel()

	for what, late := range map[string]string{
		"what the account may do": "ask selfsubjectrulesreviews", "a write": "create clusterserviceversions",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.subscribesAsAccount()
			w.gives("everything", authority.Place{Namespace: w.ns(ops), Rules: []rbacv1.PolicyRule{testbed.Rule("* *")}})

			w.refuses = refusingAll(late, http.StatusInternalServerError)

			for range 5 {
				w.catalogOnce()
				w.knowsCatalog(w.ns(ops), "catalog")
			}

			is(w, "Subscription, InstallPlan and version", w.subscribed(), "UpgradePending Installing -")

			w.refuses, w.looked = nil, true
			w.reconcileCatalogs(true)
			is(w, "Subscription, InstallPlan and version after that", w.subscribed(), "AtLatestKnown Complete kettle.v1")
		})
	}
}
