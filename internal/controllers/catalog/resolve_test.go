package catalog

import (
	"errors"
	"fmt"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// tea is a catalog with one version of one package.
func tea() *catalog.Catalog {
	return catalog.Parse(map[string]string{
		"packages": "- packageName: tea\n  channels: [{name: stable, currentCSV: tea.v1}]\n",
		"clusterServiceVersions": "- apiVersion: operators.coreos.com/v1alpha1\n  kind: ClusterServiceVersion\n" +
			"  metadata: {name: tea.v1}\n" +
			"  spec: {version: 1.0.0, displayName: Tea, install: {strategy: deployment, spec: {deployments: []}}}\n",
	})
}

// known is a source of that catalog.
func known(namespace string) *source {
	return &source{known: true, Source: catalog.Source{
		Namespace: namespace, Name: "source", Type: olmv1alpha1.SourceTypeInternal, ConfigMap: "catalog", Content: tea(),
	}}
}

// subscribing is the namespace ops with one Subscription of tea.
func subscribing() *resources {
	return &resources{namespace: "ops", sources: []*source{known("ops")}, subscriptions: []*subscription{{
		typed: &olmv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "tea", UID: "1"},
			Spec:       &olmv1alpha1.SubscriptionSpec{Package: "tea", CatalogSource: "source"},
		},
	}}}
}

// TestResolve needs no client: what was read decides which InstallPlan there shall be.
func TestResolve(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		reason string
		given  func(found *resources)
		// want is the InstallPlan's version where one has to be created, and from where that comes; problem why there is none.
		want, problem string
		waits         bool
	}{
		{reason: "an InstallPlan that is missing is what shall be", want: "tea.v1 of ops", waits: true},
		{
			reason: "the namespace's own catalog goes before that of Ambit's namespace",
			given:  func(f *resources) { f.global = map[string]*source{"source": known("ambit")} },
			want:   "tea.v1 of ops", waits: true,
		},
		{
			reason: "a catalog of Ambit's namespace is for all",
			given:  func(f *resources) { f.sources, f.global = nil, map[string]*source{"source": known("ambit")} },
			want:   "tea.v1 of ambit", waits: true,
		},
		{
			reason: "a catalog that cannot be read says nothing, also not that there is none",
			given: func(f *resources) {
				f.sources = nil
				f.unread = map[types.NamespacedName]error{{Namespace: "ambit", Name: "source"}: errors.ErrUnsupported}
			},
			waits: true,
		},
		{
			reason: "nor does one whose ConfigMap was not looked for yet",
			given:  func(f *resources) { f.sources[0].known = false }, waits: true,
		},
		{reason: "without a catalog there is nothing to be had", given: func(f *resources) { f.sources = nil }},
		{
			reason: "who changes a catalog again and again is not given an InstallPlan each time",
			given: func(f *resources) {
				for i := range catalog.MaxSuperseded {
					f.plans = append(f.plans, superseded(i))
				}
			},
			problem: catalog.ReasonTooManyInstallPlans,
		},
		{
			reason: "nothing leads on from what is installed",
			given: func(f *resources) {
				f.csvs = version("tea.v0", map[string]string{scope.PackageLabel("tea", "ops"): ""})
			},
			problem: catalog.ReasonUnsatisfiable,
		},
		{
			reason: "what is installed and cannot be read is not installed over",
			given:  func(f *resources) { f.unreadable = named("tea.v1") }, problem: catalog.ReasonInstalledUnreadable,
		},
		{
			reason: "nor is one that the catalog does not know any more",
			given: func(f *resources) {
				f.unreadable = named("tea.v0")
				f.subscriptions[0].typed.Status.InstalledCSV = "tea.v0"
				f.plans = append(f.plans, planned("tea.v0", "1"))
			},
			problem: catalog.ReasonInstalledUnreadable,
		},
		{
			reason: "what was installed by an InstallPlan of its own is its own, as the status says",
			given: func(f *resources) {
				f.csvs = version("tea.v0", nil)
				f.subscriptions[0].typed.Status.InstalledCSV = "tea.v0"
				f.plans = append(f.plans, planned("tea.v0", "1"))
			},
			problem: catalog.ReasonUnsatisfiable,
		},
		{
			reason: "a status alone makes nobody's operator its own",
			given: func(f *resources) {
				f.csvs = version("coffee.v1", nil)
				f.subscriptions[0].typed.Status.InstalledCSV = "coffee.v1"
			},
			want: "tea.v1 of ops", waits: true,
		},
		{
			reason: "nor does it where an InstallPlan of another Subscription installed it",
			given: func(f *resources) {
				f.csvs = version("coffee.v1", nil)
				f.subscriptions[0].typed.Status.InstalledCSV = "coffee.v1"
				f.plans = append(f.plans, planned("coffee.v1", "2"))
			},
			want: "tea.v1 of ops", waits: true,
		},
		{
			reason: "nor what came beside it in one InstallPlan, and is labelled as another package",
			given: func(f *resources) {
				f.csvs = version("coffee.v1", map[string]string{scope.PackageLabel("coffee", "ops"): ""})
				f.subscriptions[0].typed.Status.InstalledCSV = "coffee.v1"
				f.plans = append(f.plans, planned("coffee.v1", "1"))
			},
			want: "tea.v1 of ops", waits: true,
		},
		{
			reason: "nor one of nobody's that cannot be read",
			given: func(f *resources) {
				f.unreadable = named("coffee.v1")
				f.subscriptions[0].typed.Status.InstalledCSV = "coffee.v1"
			},
			want: "tea.v1 of ops", waits: true,
		},
		{
			reason: "another operator that cannot be read is none of its business",
			given:  func(f *resources) { f.unreadable = named("coffee.v1") }, want: "tea.v1 of ops", waits: true,
		},
		{
			reason: "nor is one that was replaced",
			given: func(f *resources) {
				f.unreadable = named("tea.v0")
				f.subscriptions[0].typed.Status.InstalledCSV = "tea.v0"
				f.csvs = []*olmv1alpha1.ClusterServiceVersion{{
					ObjectMeta: metav1.ObjectMeta{Name: "tea.v1"}, Spec: olmv1alpha1.ClusterServiceVersionSpec{Replaces: "tea.v0"},
				}}
			},
		},
	} {
		found := subscribing()
		if tc.given != nil {
			tc.given(found)
		}

		r := &resolution{found: found, global: "ambit", now: metav1.Now()}
		r.resolve()
		r.settle()

		got, problem, s := "", "", r.targets[0]
		if s.missing != nil {
			got = fmt.Sprintf("%s of %s", s.missing.Spec.ClusterServiceVersionNames[0], s.missing.Spec.CatalogSourceNamespace)
		}

		if s.seen.Problem != nil {
			problem = s.seen.Problem.Reason
		}

		if got != tc.want || problem != tc.problem || s.waits != tc.waits || s.runs {
			t.Errorf("%s:\n got %q, problem %q, waits %t, runs %t\nwant %q, problem %q, waits %t",
				tc.reason, got, problem, s.waits, s.runs, tc.want, tc.problem, tc.waits)
		}
	}
}

// TestOneInstallPlanCountsOnce: owner references are for whoever may write the InstallPlan, and two may say the same.
func TestOneInstallPlanCountsOnce(t *testing.T) {
	t.Parallel()

	found := subscribing()
	twice := superseded(1)
	twice.typed.OwnerReferences = append(twice.typed.OwnerReferences, twice.typed.OwnerReferences...)
	found.plans = append(found.plans, twice)

	r := &resolution{found: found, global: "ambit", now: metav1.Now()}
	r.resolve()

	if got := r.superseded(r.targets[0]); got != 1 {
		t.Errorf("an InstallPlan with two references to its Subscription counts as %d that came to nothing", got)
	}
}

func version(name string, labels map[string]string) []*olmv1alpha1.ClusterServiceVersion {
	return []*olmv1alpha1.ClusterServiceVersion{{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}}
}

// planned is an InstallPlan of OLM's for a version, and of the Subscription that has a UID.
func planned(version string, uid types.UID) *installPlan {
	return &installPlan{typed: &olmv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + version, OwnerReferences: []metav1.OwnerReference{{UID: uid}}},
		Spec:       olmv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{version}},
	}}
}

// superseded is an InstallPlan of the Subscription that came to nothing.
func superseded(i int) *installPlan {
	ip := &installPlan{typed: &olmv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("install-", i), Annotations: map[string]string{catalog.AnnotationSteps: "others"},
		OwnerReferences: []metav1.OwnerReference{{UID: "1"}},
	}}}
	ip.typed.Status = catalog.Superseded(&ip.typed.Status, "another", metav1.Now())

	return ip
}

// named is a version of which nothing but its name is known.
func named(name string) []*unstructured.Unstructured {
	csv := &unstructured.Unstructured{}
	csv.SetName(name)

	return []*unstructured.Unstructured{csv}
}
