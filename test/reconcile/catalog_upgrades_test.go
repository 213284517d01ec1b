package reconcile_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// kettle is a version of the package kettle: its number, and what it may be installed over.
type kettle struct {
	number          int
	replaces, skips string
	skipRange       string
}

// kettles are the data of a catalog with versions of the package kettle, of which the last is the newest.
func kettles(versions ...kettle) map[string]string {
	var csvs strings.Builder

	for _, v := range versions {
		fmt.Fprintf(&csvs, `- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata: {name: kettle.v%[1]d, annotations: {olm.skipRange: %[2]q}}
  spec:
    version: %[1]d.0.0
    displayName: Kettle
    replaces: %[3]q
    skips: [%[4]s]
    installModes: [{type: OwnNamespace, supported: true}]
    install: {strategy: deployment, spec: {deployments: []}}
`, v.number, v.skipRange, v.replaces, v.skips)
	}

	return map[string]string{
		"packages": fmt.Sprintf("- packageName: kettle\n  channels: [{name: stable, currentCSV: kettle.v%d}]\n",
			versions[len(versions)-1].number),
		"clusterServiceVersions": csvs.String(),
	}
}

// kettle1, kettle2 and kettle3 replace each other.
var (
	kettle1 = kettle{number: 1}
	kettle2 = kettle{number: 2, replaces: "kettle.v1"}
	kettle3 = kettle{number: 3, replaces: "kettle.v2"}
)

// subscribes makes a Subscription of kettle.
func (w *world) subscribes(starting string, approval olmv1alpha1.Approval) {
	w.Helper()
	w.Make(&olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
		Spec: &olmv1alpha1.SubscriptionSpec{
			Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops), StartingCSV: starting,
			InstallPlanApproval: approval,
		},
	})
	w.reconcileCatalogs(true)
}

// becomes has a version come to a phase, as the reconciler of groups would, and what follows from that be done.
func (w *world) becomes(name string, phase olmv1alpha1.ClusterServiceVersionPhase) {
	w.Helper()

	csv := w.versionCalled(name)

	now := metav1.Now()
	csv.Status.Phase, csv.Status.LastUpdateTime = phase, &now

	if err := w.client.Status().Update(w.Context(), csv); err != nil {
		w.Fatal(err)
	}

	w.reconcileCatalogs(true)
}

// changes has the catalog hold other versions, and what follows from that be done.
func (w *world) changes(versions ...kettle) {
	w.Helper()

	cm := w.configMap("catalog", nil)
	w.Change(cm, func() { cm.Data = kettles(versions...) })
	w.reconcileCatalogs(true)
}

// approves sets spec.approved of the InstallPlan of a version.
func (w *world) approves(version string) {
	w.Helper()

	for _, ip := range w.plansIn() {
		if ip.Spec.ClusterServiceVersionNames[0] == version {
			w.Change(&ip, func() { ip.Spec.Approved = true })
		}
	}

	w.reconcileCatalogs(true)
}

// removes deletes objects of the namespace, and has what follows from that be done.
func (w *world) removes(objects ...client.Object) {
	w.Helper()

	for _, obj := range objects {
		obj.SetNamespace(w.ns(ops))

		if err := w.Client.Delete(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}

	w.reconcileCatalogs(true)
}

func (w *world) plansIn() []olmv1alpha1.InstallPlan {
	w.Helper()

	var plans olmv1alpha1.InstallPlanList
	if err := w.client.List(w.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil {
		w.Fatal(err)
	}

	slices.SortFunc(plans.Items, func(a, b olmv1alpha1.InstallPlan) int {
		return cmp.Compare(a.Spec.ClusterServiceVersionNames[0], b.Spec.ClusterServiceVersionNames[0])
	})

	return plans.Items
}

// upgrades shows the state of the Subscription, why nothing more is to be had, the InstallPlans, and the versions with what each
// of them replaces.
func (w *world) upgrades() string {
	w.Helper()

	var (
		s    olmv1alpha1.Subscription
		csvs olmv1alpha1.ClusterServiceVersionList
		out  []string
	)

	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, &s); err != nil {
		w.Fatal(err)
	}

	if err := w.client.List(w.Context(), &csvs, client.InNamespace(w.ns(ops))); err != nil {
		w.Fatal(err)
	}

	problem := s.Status.GetCondition(olmv1alpha1.SubscriptionResolutionFailed).Reason
	out = append(out, strings.TrimSpace(cmp.Or(string(s.Status.State), "-")+" "+problem)+":")

	for _, ip := range w.plansIn() {
		phase := string(ip.Status.Phase)
		if reason := ip.Status.GetCondition(olmv1alpha1.InstallPlanInstalled).Reason; reason != "" {
			phase = string(reason)
		}

		out = append(out, strings.TrimPrefix(ip.Spec.ClusterServiceVersionNames[0], "kettle.")+"="+phase)
	}

	out = append(out, "|")

	for i := range csvs.Items {
		c := &csvs.Items[i]
		shown := c.Name

		if c.Spec.Replaces != "" {
			shown += "<" + c.Spec.Replaces
		}

		out = append(out, strings.ReplaceAll(shown, "kettle.", ""))
	}

	return strings.Join(out, " ")
}

// TestUpgrades: which version comes next, when, and what becomes of the InstallPlans on the way.
func TestUpgrades(t *testing.T) {
	t.Parallel()

	const (
		v1, v2, v3 = "kettle.v1", "kettle.v2", "kettle.v3"
		manual     = olmv1alpha1.ApprovalManual
		succeeded  = olmv1alpha1.CSVPhaseSucceeded
		failed     = olmv1alpha1.CSVPhaseFailed
	)

	for name, tc := range map[string]struct {
		group    string
		offers   []kettle
		starting string
		approval olmv1alpha1.Approval
		then     func(w *world)
		want     string
	}{
		"the newest comes first": {offers: []kettle{kettle1, kettle2, kettle3}, want: "AtLatestKnown: v3=Complete | v3<v2"},
		"startingCSV comes first, however old": {
			offers: []kettle{kettle1, kettle2, kettle3}, starting: v1, want: "UpgradeAvailable: v1=Complete | v1",
		},
		"startingCSV, which waits for an approval": {
			offers: []kettle{kettle1, kettle2}, starting: v1, approval: manual, want: "UpgradePending: v1=RequiresApproval |",
		},
		"startingCSV, which no channel has": {
			offers: []kettle{kettle1, kettle2}, starting: "kettle.v7", want: "- ConstraintsNotSatisfiable: |",
		},
		"replaces leads to the next one": {
			offers: []kettle{kettle1, kettle2, kettle3}, starting: v1, then: func(w *world) { w.becomes(v1, succeeded) },
			want: "UpgradeAvailable: v1=Complete v2=Complete | v1 v2<v1",
		},
		"and from that to the one after": {
			offers: []kettle{kettle1, kettle2, kettle3}, starting: v1,
			then: func(w *world) {
				w.becomes(v1, succeeded)
				w.becomes(v2, succeeded)
			},
			want: "AtLatestKnown: v1=Complete v2=Complete v3=Complete | v1 v2<v1 v3<v2",
		},
		"what skips the installed one is next, and replaces it": {
			offers: []kettle{kettle1, kettle2, {number: 3, replaces: v2, skips: v1}}, starting: v1,
			then: func(w *world) { w.becomes(v1, succeeded) }, want: "AtLatestKnown: v1=Complete v3=Complete | v1 v3<v1",
		},
		"what skips a range with the installed one is next": {
			offers: []kettle{kettle1, kettle2, {number: 3, replaces: v2, skipRange: "<2.0.0"}}, starting: v1,
			then: func(w *world) { w.becomes(v1, succeeded) }, want: "AtLatestKnown: v1=Complete v3=Complete | v1 v3<v1",
		},
		"what skips another range is not": {
			offers: []kettle{kettle1, kettle2, {number: 3, replaces: v2, skipRange: ">=2.0.0 <3.0.0"}}, starting: v1,
			then: func(w *world) { w.becomes(v1, succeeded) },
			want: "UpgradeAvailable: v1=Complete v2=Complete | v1 v2<v1",
		},
		"nothing leads on": {
			offers: []kettle{kettle1}, then: func(w *world) {
				w.becomes(v1, succeeded)
				w.changes(kettle1, kettle{number: 2})
			},
			want: "AtLatestKnown ConstraintsNotSatisfiable: v1=Complete | v1",
		},
		"what the installed one says that it replaces is not next": {
			offers: []kettle{{number: 1, replaces: v2}}, then: func(w *world) {
				w.becomes(v1, succeeded)
				w.changes(kettle1, kettle2)
			},
			want: "AtLatestKnown ConstraintsNotSatisfiable: v1=Complete | v1<v2",
		},
		"of two that replace each other the newer one counts as installed": {
			offers: []kettle{kettle1, kettle2}, starting: v1, then: func(w *world) {
				w.becomes(v1, succeeded)

				csv := w.versionCalled(v1)
				w.Change(csv, func() { csv.Spec.Replaces = v2 })
				w.changes(kettle1, kettle2, kettle{number: 3, replaces: v1})
			},
			want: "AtLatestKnown ConstraintsNotSatisfiable: v1=Complete v2=Complete | v1<v2 v2<v1",
		},
		"what failed is not installed over": {
			offers: []kettle{kettle1, kettle2}, starting: v1, then: func(w *world) { w.becomes(v1, failed) },
			want: "UpgradeAvailable: v1=Complete | v1",
		},
		"unless the group says so": {
			group: `,"upgradeStrategy":"TechPreviewUnsafeFailForward"`, offers: []kettle{kettle1, kettle2}, starting: v1,
			then: func(w *world) { w.becomes(v1, failed) }, want: "AtLatestKnown: v1=Complete v2=Complete | v1 v2<v1",
		},
		"an approval is for one version": {
			offers: []kettle{kettle1, kettle2}, starting: v1, approval: manual, then: func(w *world) {
				w.approves(v1)
				w.becomes(v1, succeeded)
			},
			want: "UpgradePending: v1=Complete v2=RequiresApproval | v1",
		},
		"what is not approved is superseded by what comes instead": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) { w.changes(kettle1, kettle2) },
			want: "UpgradePending: v1=Superseded v2=RequiresApproval |",
		},
		"what is superseded stays so, also when it is approved": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				w.changes(kettle1, kettle2)
				w.approves(v1)
			},
			want: "UpgradePending: v1=Superseded v2=RequiresApproval |",
		},
		"what is superseded comes back when it is wanted again": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				w.changes(kettle1, kettle2)
				w.changes(kettle1)
			},
			want: "UpgradePending: v1=RequiresApproval v2=Superseded |",
		},
		"what is deleted is not installed again": {
			offers: []kettle{kettle1}, then: func(w *world) { w.removes(w.versionCalled(v1)) }, want: "- Uninstalled: v1=Complete |",
		},
		"what is deleted is not installed again when the catalog holds something else by now": {
			offers: []kettle{kettle1}, then: func(w *world) {
				w.removes(w.versionCalled(v1))
				w.changes(kettle1, kettle2)
			},
			want: "- Uninstalled: v1=Complete |",
		},
		"nor what the catalog calls the same": {
			offers: []kettle{kettle1}, then: func(w *world) {
				w.removes(w.versionCalled(v1))
				w.changes(kettle{number: 1, skipRange: "<1.0.0"})
			},
			want: "- Uninstalled: v1=Complete |",
		},
		"unless its InstallPlan is deleted, whatever the catalog holds": {
			offers: []kettle{kettle1}, then: func(w *world) {
				w.removes(w.versionCalled(v1))
				w.changes(kettle1, kettle2)
				w.removes(&w.plansIn()[0])
			},
			want: "AtLatestKnown: v2=Complete | v2<v1",
		},
		"what was installed before the one that is deleted does not count once it is gone": {
			offers: []kettle{kettle1, kettle2}, starting: v1, then: func(w *world) {
				w.becomes(v1, succeeded)
				w.removes(w.versionCalled(v1))
				w.removes(w.versionCalled(v2))
			},
			want: "- Uninstalled: v1=Complete v2=Complete |",
		},
		"what was installed long ago does not count for one that is asked for and waits": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				w.approves(v1)
				w.becomes(v1, succeeded)
				w.changes(kettle1, kettle2)
				w.approves(v2)
				w.removes(w.versionCalled(v1), w.versionCalled(v2))
				is(w, "when it is deleted", w.upgrades(), "- Uninstalled: v1=Complete v2=Complete |")
				w.removes(&w.plansIn()[1])
				is(w, "when it is asked for", w.upgrades(), "UpgradePending: v1=Complete v2=RequiresApproval |")
				w.changes(kettle1, kettle2, kettle3)
			},
			want: "UpgradePending: v1=Complete v2=Superseded v3=RequiresApproval |",
		},
		"what is deleted while the next one waits is not installed again, nor what comes after that": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				w.approves(v1)
				w.becomes(v1, succeeded)
				w.changes(kettle1, kettle2, kettle3)
				is(w, "before", w.upgrades(), "UpgradePending: v1=Complete v2=RequiresApproval | v1")
				w.removes(w.versionCalled(v1))
				w.changes(kettle1, kettle2, kettle3, kettle{number: 4, replaces: v3})
			},
			want: "- Uninstalled: v1=Complete v2=Superseded |",
		},
		"nor while the catalog does not have what is asked for": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				w.approves(v1)
				w.becomes(v1, succeeded)
				w.changes(kettle1, kettle2, kettle3)
				w.changes(kettle{number: 3, replaces: v3})
				w.removes(w.versionCalled(v1))
				is(w, "without it", w.upgrades(), "- ConstraintsNotSatisfiable: v1=Complete v2=RequiresApproval |")
				w.changes(kettle1, kettle2, kettle3)
			},
			want: "- Uninstalled: v1=Complete v2=Superseded |",
		},
		"unless its InstallPlan is deleted, too": {
			offers: []kettle{kettle1}, then: func(w *world) {
				w.removes(w.versionCalled(v1))
				w.removes(&w.plansIn()[0])
			},
			want: "AtLatestKnown: v1=Complete | v1",
		},
		"what came by another way completes its InstallPlan": {
			offers: []kettle{kettle1}, approval: manual, then: func(w *world) {
				csv := w.operatorCSV(podTemplate("op"))
				csv.Name = v1
				w.Make(csv)
				w.reconcileCatalogs(true)
			},
			want: "AtLatestKnown: v1=Complete | v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", `{"targetNamespaces":["ops>"]`+tc.group+`}`)
			w.reconcileGroup() // It says in status which targets there are.

			w.watched = "" // What follows is in the cache, but for the catalog, which is waited for.

			w.Make(w.configMap("catalog", kettles(tc.offers...)))
			w.catalogCalled("source")
			w.subscribes(tc.starting, tc.approval)

			if tc.then != nil {
				tc.then(w)
			}

			is(w, "Subscription, InstallPlans and versions", w.upgrades(), tc.want)
		})
	}
}

// TestWhoWritesForSubscriptions: an InstallPlan is Ambit's own, and what it installs is written as the account of the group.
func TestWhoWritesForSubscriptions(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.Make(testbed.Account(w.ns(ops), "installer"))
	w.Make(testbed.Bind(w.ns(ops), "ClusterRole", "cluster-admin", w.ns(ops), "installer"))
	w.group("group", `{"targetNamespaces":["ops>"],"serviceAccountName":"installer"}`)
	w.reconcileGroup()

	w.watched, w.wroteAs = "", nil

	w.Make(w.configMap("catalog", kettles(kettle1)))
	w.catalogCalled("source")
	w.subscribes("", "")
	is(w, "Subscription, InstallPlans and versions", w.upgrades(), "AtLatestKnown: v1=Complete | v1")

	var creates []string

	for _, what := range w.short(w.wroteAs) {
		if strings.Contains(what, ": create ") {
			creates = append(creates, what)
		}
	}

	is(w, "what was created, and as whom", creates, []string{
		ambitUser + ": create installplans ops/", "system:serviceaccount:ops:installer: create clusterserviceversions ops/",
	})
}

// TestCatalogOfAmbit: a catalog in Ambit's own namespace is for all namespaces, and a change of it is heard of there.
func TestCatalogOfAmbit(t *testing.T) {
	t.Parallel()

	w := subscribable(t)
	name := w.ns("catalog")

	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ambitNamespace, Name: name}, Data: kettles(kettle1)},
		&olmv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: ambitNamespace, Name: name},
			Spec:       olmv1alpha1.CatalogSourceSpec{SourceType: olmv1alpha1.SourceTypeInternal, ConfigMap: name},
		},
	}
	for _, obj := range objects {
		w.Make(obj)
		w.Cleanup(func() { _ = w.client.Delete(t.Context(), obj) })
	}

	kinds := []client.ObjectList{&operatorsv1.OperatorGroupList{}, listOf(olmv1alpha1.CatalogSourceKind)}
	reconcileAmbit := func() {
		w.answered(w.catalogs, scope.Catalogs.In(ambitNamespace), func() { w.catchUp(w.catalogs.Cache, ambitNamespace, kinds...) })
	}

	reconcileAmbit() // It begins to watch the ConfigMap.
	w.knowsCatalog(ambitNamespace, name)
	reconcileAmbit()

	w.Make(&olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
		Spec:       &olmv1alpha1.SubscriptionSpec{Package: "kettle", CatalogSource: name},
	})
	w.reconcileCatalogs(false)
	is(w, "Subscription, InstallPlans and versions", w.upgrades(), "AtLatestKnown: v1=Complete | v1")
	is(w, "where it comes from", w.plansIn()[0].Spec.CatalogSourceNamespace, ambitNamespace)
}

// TestNothingOverWhatCannotBeRead: a version that a Subscription installed and that cannot be read now is still what is
// installed, and nothing is installed over it until it can be read.
func TestNothingOverWhatCannotBeRead(t *testing.T) {
	t.Parallel()

	w := subscribable(t)

	w.Make(w.configMap("catalog", kettles(kettle1)))
	w.catalogCalled("source")
	w.subscribes("", "")
	w.becomes("kettle.v1", olmv1alpha1.CSVPhaseSucceeded)
	w.unreadableCalled("kettle.v1", "none")
	w.changes(kettle1, kettle2, kettle3)

	s := &olmv1alpha1.Subscription{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "kettle"}, s); err != nil {
		t.Fatal(err)
	}

	is(w, "what is installed, by status", s.Status.InstalledCSV, "kettle.v1")
	is(w, "the state", s.Status.State, olmv1alpha1.SubscriptionStateAtLatest)

	problem := s.Status.GetCondition(olmv1alpha1.SubscriptionResolutionFailed)
	is(w, "the problem", problem.Reason, "InstalledUnreadable")
	w.names("the message", problem.Message, "kettle.v1", "its status says why")
	is(w, "how many InstallPlans there are", len(w.plansIn()), 1)

	w.unreadableCalled("kettle.v1", "1.0.0")
	w.reconcileCatalogs(true)
	is(w, "Subscription, InstallPlans and versions", w.upgrades(), "UpgradeAvailable: v1=Complete v2=Complete | v1 v2<v1")
}
