package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

func three() []version {
	return []version{
		{name: "kettle.v1", number: "1.0.0"}, {name: "kettle.v2", number: "2.0.0", replaces: "kettle.v1"},
		{name: "kettle.v3", number: "3.0.0", replaces: "kettle.v2"},
	}
}

func TestUpgradesGoStepByStep(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")
	w.offer(w.namespace, w.content(three()...))

	s := w.subscribe(starting("kettle.v1"))
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v3")

	if got, want := w.plans(), []string{"kettle.v1", "kettle.v2", "kettle.v3"}; !slices.Equal(got, want) {
		t.Errorf("the InstallPlans are for %v, not %v", got, want)
	}

	w.Eventually("the older versions go", func() error {
		for _, old := range []string{"kettle.v1", "kettle.v2"} {
			if err := w.get(w.csv(old)); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: %w", old, err)
			}
		}

		return nil
	})
}

// TestSkipped: a version that skips others is come to at once, and says whom it replaces, so that the older one goes.
func TestSkipped(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	versions := append(three(), version{
		name: "kettle.v4", number: "4.0.0", replaces: "kettle.v3", metadata: []string{"annotations: {olm.skipRange: '<3.0.0'}"},
	})
	w.offer(w.namespace, w.content(versions...))

	s := w.subscribe(starting("kettle.v1"))
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v4")

	if got, want := w.plans(), []string{"kettle.v1", "kettle.v4"}; !slices.Equal(got, want) {
		t.Errorf("the InstallPlans are for %v, not %v", got, want)
	}

	w.Eventually("the older version goes", w.Gone(w.csv("kettle.v1")))

	csv := w.csv("kettle.v4")
	if err := w.get(csv); err != nil || csv.Spec.Replaces != "kettle.v1" {
		t.Errorf("it replaces %q: %v", csv.Spec.Replaces, err)
	}
}

func TestApproval(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	cm := w.offer(w.namespace, w.content(three()[0]))
	s := w.subscribe(manual)

	ip := w.plan(s, olm.InstallPlanPhaseRequiresApproval)
	w.says(s, olm.SubscriptionInstallPlanPending, "RequiresApproval", ip.Name)

	if ip.Spec.Approval != olm.ApprovalManual || len(ip.Status.Plan) != 2 || ip.Status.Plan[1].Resource.Manifest == "" {
		t.Errorf("nobody can see what they would approve: %+v", ip)
	}

	if err := w.get(w.csv("kettle.v1")); !apierrors.IsNotFound(err) {
		t.Errorf("it was installed without approval: %v", err)
	}

	// The catalog changes under the name of what is about to be approved: what comes is not what was shown.
	changed := three()[0]
	changed.metadata = []string{"annotations: {changed: 'yes'}"}
	w.Change(cm, func() { cm.Data = w.content(changed) })

	var second *olm.InstallPlan

	w.Eventually("another InstallPlan comes instead", func() error {
		if second = w.plan(s, olm.InstallPlanPhaseRequiresApproval); second.Name == ip.Name {
			return fmt.Errorf("it is still %s", ip.Name)
		}

		return nil
	})

	w.approve(ip)
	w.Eventually("the first one says so", func() error {
		if err := w.get(ip); err != nil {
			return err
		}

		if c := ip.Status.GetCondition(olm.InstallPlanInstalled); ip.Status.Phase != olm.InstallPlanPhaseFailed ||
			c.Reason != "Superseded" {
			return fmt.Errorf("it is %s: %+v", ip.Status.Phase, c)
		}

		return mentions(ip.Status.Message, second.Name)
	})

	w.approve(second)
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	if err := w.get(w.csv("kettle.v1")); err != nil {
		t.Error(err)
	}

	// A newer version waits for approval, too.
	w.Change(cm, func() { cm.Data = w.content(changed, three()[1]) })
	w.state(s, olm.SubscriptionStateUpgradePending, "kettle.v1")
	w.approve(w.plan(s, olm.InstallPlanPhaseRequiresApproval))
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")
}

// TestAnUpgradeWaits for what is installed, which has to be well first; unless the group says that a failure may be left
// behind.
func TestAnUpgradeWaits(t *testing.T) {
	w := begin(t, "cluster")
	g := w.own("")

	// The first version cannot serve the group, so that it fails.
	content := func(versions ...version) map[string]string {
		out := w.content(versions...)
		out["clusterServiceVersions"] = strings.Replace(out["clusterServiceVersions"],
			"{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}", 1)

		return out
	}
	cm := w.offer(w.namespace, content(three()[0]))

	s := w.subscribe()
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
	w.Change(cm, func() { cm.Data = content(three()[:2]...) })
	w.state(s, olm.SubscriptionStateUpgradeAvailable, "kettle.v1")

	if got := w.plans(); len(got) != 1 {
		t.Errorf("the InstallPlans are for %v", got)
	}

	w.Change(g, func() { g.Spec.UpgradeStrategy = operatorsv1.UpgradeFailForward })
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")
}

// TestGlobalCatalog: the catalogs of Ambit's own namespace are for everybody, others are not.
func TestGlobalCatalog(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	name := "all-" + w.namespace
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name, cm.Data = embedded.Namespace, name, w.content(three()[0])

	source := &olm.CatalogSource{Spec: olm.CatalogSourceSpec{SourceType: olm.SourceTypeConfigmap, ConfigMap: name}}
	source.Namespace, source.Name = embedded.Namespace, name

	s := w.subscribe(func(spec *olm.SubscriptionSpec) { spec.CatalogSource, spec.CatalogSourceNamespace = name, "" })
	w.says(s, olm.SubscriptionCatalogSourcesUnhealthy, olm.UnhealthyCatalogSourceFound, "missing")

	w.Make(source)
	w.says(s, olm.SubscriptionCatalogSourcesUnhealthy, olm.UnhealthyCatalogSourceFound, "ConfigMap "+name+" is not in namespace")

	w.Make(cm)
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	w.Change(cm, func() { cm.Data = w.content(three()[:2]...) })
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")

	other := w.Namespace("other")
	w.offer(other, w.content(three()...))
	w.Change(s, func() { s.Spec.CatalogSource, s.Spec.CatalogSourceNamespace = sourceName, other })
	w.says(s, olm.SubscriptionResolutionFailed, "InvalidSpec", "a CatalogSource has to be in the Subscription's own namespace")
	// What is installed runs on, wherever the next one is to come from.
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")
}

// TestDefinitionsAreUpgraded: a newer operator brings a newer definition, and the account has to be allowed to change it. The
// command that the InstallPlan names prints that right, too.
func TestDefinitionsAreUpgraded(t *testing.T) {
	w := begin(t, "cluster")
	w.account("scoped")

	create := definitions()
	create.Verbs = []string{"get", "create"}
	w.grant("scoped", create)
	w.own("scoped")

	cm := w.offer(w.namespace, w.content(three()[0]))
	s := w.subscribe()
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	w.Change(cm, func() {
		cm.Data = w.content(three()[:2]...)
		cm.Data["customResourceDefinitions"] = w.definition("v1", "v2")
	})

	ip := w.plan(s, olm.InstallPlanPhaseFailed)
	w.state(s, olm.SubscriptionStateFailed, "kettle.v1")

	if err := mentions(ip.Status.Message, "error creating customresourcedefinition kettles."+w.group,
		"cannot patch resource", "patch customresourcedefinitions named kettles."+w.group); err != nil {
		t.Error(err)
	}

	w.grantAsTheCommandSays(ip)
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kettles." + w.group}}
	if err := w.get(crd); err != nil || len(crd.Spec.Versions) != 2 {
		t.Errorf("the definition has the versions %+v: %v", crd.Spec.Versions, err)
	}
}
