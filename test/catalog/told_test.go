package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestCatalogsSayWhatIsWrong: an image, a ConfigMap that is not there, and one that is untidy.
func TestCatalogsSayWhatIsWrong(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	source := &olm.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: sourceName},
		Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeGrpc, Image: "example.com/catalog:1"},
	}
	w.Make(source)

	says := func(status metav1.ConditionStatus, reason string, words ...string) {
		t.Helper()
		w.Eventually("the catalog says "+reason, func() error {
			if err := w.get(source); err != nil {
				return err
			}

			c := meta.FindStatusCondition(source.Status.Conditions, "Ready")
			if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != source.Generation {
				return fmt.Errorf("it says %+v", source.Status)
			}

			return mentions(c.Message, words...)
		})
	}

	s := w.subscribe()

	says("False", "CatalogImageNotServed", "runs no catalog images", "sourceType: configmap")
	w.says(s, olm.SubscriptionCatalogSourcesUnhealthy, olm.UnhealthyCatalogSourceFound, "runs no catalog images")

	w.Change(source, func() {
		source.Spec = olm.CatalogSourceSpec{SourceType: olm.SourceTypeConfigmap, ConfigMap: "manifests"}
	})
	says("False", "ConfigMapNotFound", "ConfigMap manifests is not in namespace "+w.namespace)

	content := w.content(three()[0])
	content["clusterServiceVersions"] += "- {metadata: [}\n"

	w.Remove(source)

	cm := w.offer(w.namespace, content)
	source.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: sourceName}

	says("True", "SubsetRead", "1 package, 1 version; not usable: clusterServiceVersions: entry 2")
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
	w.says(s, olm.SubscriptionCatalogSourcesUnhealthy, olm.AllCatalogSourcesHealthy)

	w.Change(s, func() { s.Spec.Channel = "nightly" })
	w.says(s, olm.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable",
		"no operators found in channel nightly of package kettle", "it has the channel stable")

	w.Change(s, func() { s.Spec.Channel = "stable" })
	w.says(s, olm.SubscriptionResolutionFailed, "")

	w.Remove(cm)
	says("False", "ConfigMapNotFound")
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")
}

// TestOneDoesNotStopTheOthers: what the types of OLM cannot read, or panic about, harms nobody else.
func TestOneDoesNotStopTheOthers(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		obj.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(kind))
		obj.SetNamespace(w.namespace)
		obj.SetName(name)

		return obj
	}
	empty := object("CatalogSource", "empty-strategy", map[string]any{
		"sourceType": "grpc", "image": "example.com/catalog:1", "updateStrategy": map[string]any{},
	})
	strange := object("Subscription", "strange", map[string]any{
		"name": "other", "source": sourceName, "sourceNamespace": w.namespace, "channel": "stable",
		"config": map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1e1.5"}}},
	})

	unreadable := object("ClusterServiceVersion", "unreadable", map[string]any{
		"version": "none", "displayName": "Unreadable", "install": map[string]any{"strategy": "deployment"},
	})

	w.Make(empty, strange, unreadable)
	w.offer(w.namespace, w.content(three()[0]))
	w.state(w.subscribe(), olm.SubscriptionStateAtLatest, "kettle.v1")

	w.Eventually("the strange ones are told, too", func() error {
		for _, obj := range []*unstructured.Unstructured{empty, strange} {
			if err := w.get(obj); err != nil {
				return err
			}

			if _, told := obj.Object["status"]; !told {
				return fmt.Errorf("%s has no status", obj.GetName())
			}
		}

		conditions, _, err := unstructured.NestedSlice(strange.Object, "status", "conditions")

		return mentions(fmt.Sprint(conditions, err), "no operators found in package other")
	})

	w.Eventually("so is a ClusterServiceVersion", func() error {
		if err := w.get(unreadable); err != nil {
			return err
		}

		return mentions(fmt.Sprint(unreadable.Object["status"]), "Failed", "InvalidSpec", "it cannot be read as a")
	})

	csv := w.csv("kettle.v1")
	w.Eventually("the others are served", func() error {
		if err := w.get(csv); err != nil {
			return err
		}

		if csv.Status.Phase != olm.CSVPhaseSucceeded {
			return fmt.Errorf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
		}

		return nil
	})

	w.Remove(unreadable)

	second := object("Subscription", "second", map[string]any{
		"name": pkg, "source": sourceName, "sourceNamespace": w.namespace, "channel": "stable",
	})
	w.Make(second)
	w.Eventually("a second Subscription of a package is told", func() error {
		if err := w.get(second); err != nil {
			return err
		}

		return mentions(fmt.Sprint(second.Object["status"]), "AlreadySubscribed", "my-"+pkg)
	})
}

// TestPublishedOperator installs the operator of the older documents from a catalog that is made of its bundle.
func TestPublishedOperator(t *testing.T) {
	dir := os.Getenv("AMBIT_BUNDLES")
	if dir == "" {
		dir = filepath.Join(embedded.Root(), "..", "shared", "bundles")
	}

	if _, err := os.Stat(dir); err != nil {
		t.Skipf("NOT TESTED: there are no bundles of real operators; AMBIT_BUNDLES names their folder (%v)", err)
	}

	b, err := catalog.ReadBundle(os.DirFS(filepath.Join(dir, "etcd")))
	if err != nil {
		t.Fatal(err)
	}

	content, err := catalog.Build([]*catalog.Bundle{b})
	if err != nil {
		t.Fatal(err)
	}

	w := begin(t, "cluster")
	w.account("scoped")
	w.own("scoped")
	w.offer(w.namespace, content)

	s := w.subscribe(func(spec *olm.SubscriptionSpec) { spec.Package, spec.Channel = "etcdoperator", "" })
	w.plan(s, olm.InstallPlanPhaseFailed)
	w.grant("scoped", definitions())
	w.state(s, olm.SubscriptionStateAtLatest, "etcdoperator.v0.9.4")

	csv := w.csv("etcdoperator.v0.9.4")
	w.Eventually("the operator runs", func() error {
		if err := w.get(csv); err != nil {
			return err
		}

		if csv.Status.Phase != olm.CSVPhaseSucceeded {
			return fmt.Errorf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
		}

		return nil
	})
}
