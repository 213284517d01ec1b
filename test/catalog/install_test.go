package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestSubscriptionInstalls: a catalog, a group with an account, and a Subscription that says no more than it has to.
func TestSubscriptionInstalls(t *testing.T) {
	w := begin(t, "cluster")
	w.account("scoped")
	w.grant("scoped", definitions())
	w.own("scoped")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	s := w.subscribe(func(spec *olm.SubscriptionSpec) {
		spec.Channel, spec.CatalogSourceNamespace, spec.InstallPlanApproval = "", "", ""
	})

	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	ip := w.plan(s, olm.InstallPlanPhaseComplete)
	if len(ip.Status.BundleLookups) > 0 || len(ip.Status.Plan) != 2 || !ip.Spec.Approved {
		t.Errorf("the InstallPlan is %+v", ip)
	}

	for i, kind := range []string{"CustomResourceDefinition", "ClusterServiceVersion"} {
		step := ip.Status.Plan[i]
		if step.Resource.Kind != kind || step.Status != olm.StepStatusCreated || step.Resolving != "kettle.v1" ||
			step.Resource.Manifest == "" || step.Resource.CatalogSource != sourceName {
			t.Errorf("step %d is %+v", i, step)
		}
	}

	if ref := ip.Status.AttenuatedServiceAccountRef; ref == nil || ref.Name != "scoped" {
		t.Errorf("it was done as %+v", ref)
	}

	csv := w.csv("kettle.v1")
	w.Eventually("the operator runs", func() error {
		if err := w.get(csv); err != nil {
			return err
		}

		if csv.Status.Phase != olm.CSVPhaseSucceeded {
			return fmt.Errorf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
		}

		return nil
	})

	if _, labelled := csv.Labels["operators.coreos.com/"+pkg+"."+w.namespace]; !labelled {
		t.Errorf("nobody finds it by its package: %v", csv.Labels)
	}

	source := &olm.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: sourceName}}
	w.Eventually("the catalog is read", func() error {
		if err := w.get(source); err != nil {
			return err
		}

		if c := source.Status.GRPCConnectionState; c == nil || c.LastObservedState != "READY" {
			return fmt.Errorf("it is %+v", source.Status)
		}

		return nil
	})

	if got := w.plans(); len(got) != 1 {
		t.Errorf("the InstallPlans are %v", got)
	}
}

// TestFirstRefusedStepIsNamed: an account that may do nothing is told of the first step of its InstallPlan, and not of a Role
// that comes after the steps.
func TestFirstRefusedStepIsNamed(t *testing.T) {
	w := begin(t, "cluster")
	w.Make(testbed.Account(w.namespace, "scoped"))
	w.own("scoped")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	ip := w.plan(w.subscribe(), olm.InstallPlanPhaseFailed)
	message := ip.Status.GetCondition(olm.InstallPlanInstalled).Message

	err := mentions(message, "create customresourcedefinitions", "create clusterserviceversions", "list configmaps")
	if err != nil || !strings.HasPrefix(message, "error creating customresourcedefinition kettles."+w.group) {
		t.Errorf("%v: %s", err, message)
	}

	if first := ip.Status.Plan[0].Resource; first.Kind != "CustomResourceDefinition" {
		t.Errorf("the first step is %+v", first)
	}
}

// TestEverythingMissingIsReported: the account may do anything in its namespace and nothing in the cluster.
func TestEverythingMissingIsReported(t *testing.T) {
	w := begin(t, "cluster")
	w.account("scoped")
	w.own("scoped")

	content := w.content(version{name: "kettle.v1", number: "1.0.0"})
	content["clusterServiceVersions"] = strings.Replace(content["clusterServiceVersions"], "        deployments:",
		"    "+strings.Join(nodes(), "\n    ")+"\n        deployments:", 1)
	w.offer(w.namespace, content)

	s := w.subscribe()
	ip := w.refused(s, "error creating clusterrole kettle.v1-", "create customresourcedefinitions", "get, list nodes",
		"clusterrolebindings")

	if err := mentions(ip.Status.GetCondition(olm.InstallPlanInstalled).Message,
		"ambit preflight installplan/"+ip.Name+" -n "+w.namespace); err != nil {
		t.Error(err)
	}

	w.says(s, olm.SubscriptionInstallPlanFailed, "InstallComponentFailed", "error creating clusterrole")

	if err := w.get(w.csv("kettle.v1")); !apierrors.IsNotFound(err) {
		t.Errorf("something was written before everything may be: %v", err)
	}

	w.grantAsTheCommandSays(ip)
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
	w.plan(s, olm.InstallPlanPhaseComplete)
	w.says(s, olm.SubscriptionInstallPlanFailed, "")
}

// refused waits for the InstallPlan of a Subscription to say that the account scoped may not make a ClusterRole. What it says
// begins with the API server's own words, and has others after that. At the first try, the API server may not yet know what the
// account may do in its namespace, and refuse another object before the ClusterRole.
func (w *world) refused(s *olm.Subscription, begins string, words ...string) *olm.InstallPlan {
	w.Helper()

	ip := &olm.InstallPlan{}
	words = append(words, `clusterroles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:`+w.namespace+
		`:scoped" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`)

	w.Eventually("the InstallPlan says what is refused", func() error {
		ip = w.plan(s, olm.InstallPlanPhaseFailed)

		c := ip.Status.GetCondition(olm.InstallPlanInstalled)
		if c.Status != corev1.ConditionFalse || c.Reason != olm.InstallPlanReasonComponentFailed || c.LastUpdateTime == nil ||
			len(ip.Status.Conditions) != 1 || !strings.HasPrefix(c.Message, begins) {
			return fmt.Errorf("it says %+v", ip.Status.Conditions)
		}

		return mentions(c.Message, words...)
	})

	return ip
}

// grantAsTheCommandSays applies what the command prints that a refused InstallPlan names.
func (w *world) grantAsTheCommandSays(ip *olm.InstallPlan) {
	w.Helper()

	grants, code := w.Ambit("preflight", "installplan/"+ip.Name, "-n", w.namespace, "-o", "yaml")
	if code != 3 {
		w.Fatalf("exit code %d: %s", code, grants)
	}

	path := filepath.Join(w.TempDir(), "grants.yaml")
	if err := os.WriteFile(path, []byte(grants), 0o600); err != nil {
		w.Fatal(err)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", path); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// TestDefinitionsOfOthers: somebody made the definition for everybody, so that no right on definitions is needed.
func TestDefinitionsOfOthers(t *testing.T) {
	w := begin(t, "cluster")
	w.account("scoped")
	w.own("scoped")

	keep := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "kettles." + w.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "kettles", Singular: "kettle", Kind: "Kettle", ListKind: "KettleList", ShortNames: []string{"k" + w.group[:6]},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v2", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
				},
			}},
		},
	}
	w.Make(crd)
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	s := w.subscribe()
	ip := w.plan(s, olm.InstallPlanPhaseFailed)

	if err := mentions(ip.Status.Message, "error creating customresourcedefinition kettles."+w.group,
		"one that Ambit did not make is there, and does not serve v1"); err != nil {
		t.Error(err)
	}

	w.Change(crd, func() {
		more := crd.Spec.Versions[0].DeepCopy()
		more.Name, more.Storage = "v1", false
		crd.Spec.Versions = append(crd.Spec.Versions, *more)
	})

	before := crd.ResourceVersion

	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	ip = w.plan(s, olm.InstallPlanPhaseComplete)
	if got := ip.Status.Plan[0].Status; got != olm.StepStatusPresent {
		t.Errorf("the definition is %s", got)
	}

	if err := w.get(crd); err != nil || len(crd.Spec.Versions) != 2 || crd.Spec.Names.ShortNames == nil {
		t.Errorf("a definition of somebody else was changed from %s: %+v, %v", before, crd.Spec, err)
	}
}

// TestWhoIsInCharge: OLM's words about the group of a namespace and its account, one after the other, until it is right.
func TestWhoIsInCharge(t *testing.T) {
	w := begin(t, "cluster")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	s := w.subscribe()
	says := func(words string) {
		t.Helper()

		w.Eventually("the InstallPlan says "+words, func() error {
			ip := w.plan(s, olm.InstallPlanPhaseInstalling)

			c := ip.Status.GetCondition(olm.InstallPlanInstalled)
			if c.Reason != olm.InstallPlanReasonInstallCheckFailed {
				return fmt.Errorf("the reason is %s", c.Reason)
			}

			return mentions(c.Message, words)
		})
	}

	says("no operator group found that is managing this namespace")

	g := w.own("missing")
	says("please make sure the service account exists. sa=missing operatorgroup=" + w.namespace + "/own")

	second := g.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "second"}
	w.Make(second)
	says("more than one operator group(s) are managing this namespace count=2")

	w.Remove(second)
	w.account("missing")
	w.grant("missing", definitions())
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
}

// TestAmbitItself: a group without an account installs with Ambit's own rights where the profile has them.
func TestAmbitItself(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))
	w.state(w.subscribe(), olm.SubscriptionStateAtLatest, "kettle.v1")
}

// TestAmbitItselfMayNot: in the profile delegated, Ambit has no rights of its own to install with.
func TestAmbitItselfMayNot(t *testing.T) {
	w := begin(t, "delegated")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	g := w.own("")
	s := w.subscribe()
	w.says(s, olm.SubscriptionInstallPlanPending, "Installing", "the operator group names no service account")

	w.account("scoped")
	w.grant("scoped", definitions())
	w.Change(g, func() { g.Spec.ServiceAccountName = "scoped" })
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
}

// TestDeletedStaysDeleted: who deletes what was installed does not get it back, and is told how they would.
func TestDeletedStaysDeleted(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")
	w.offer(w.namespace, w.content(version{name: "kettle.v1", number: "1.0.0"}))

	s := w.subscribe()
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	ip := w.plan(s, olm.InstallPlanPhaseComplete)
	w.Remove(w.csv("kettle.v1"))
	w.says(s, olm.SubscriptionResolutionFailed, "Uninstalled", "to install it again, delete the InstallPlan")

	w.Remove(ip)
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
	w.says(s, olm.SubscriptionResolutionFailed, "")

	w.awaitCollector()

	// The InstallPlan goes with its Subscription, and the operator stays, as with OLM.
	w.Remove(s)
	w.Eventually("the InstallPlan goes", func() error {
		if left := w.plans(); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}

		return nil
	})

	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "kettle.v1"}, w.csv("")); err != nil {
		t.Errorf("the operator went with its Subscription: %v", err)
	}
}

// awaitCollector waits until the garbage collector watches the kinds of which it takes one with the other. They are made where
// they lead to nothing.
func (w *world) awaitCollector() {
	w.Helper()

	meta := metav1.ObjectMeta{Namespace: w.Namespace("collector"), Name: "collected"}
	w.AwaitCollector(&olm.Subscription{ObjectMeta: meta, Spec: &olm.SubscriptionSpec{
		Package: pkg, CatalogSource: sourceName, CatalogSourceNamespace: meta.Namespace,
	}})
	w.AwaitCollector(&olm.InstallPlan{ObjectMeta: meta, Spec: olm.InstallPlanSpec{
		Approval: olm.ApprovalManual, ClusterServiceVersionNames: []string{"kettle.v1"},
	}})
}
