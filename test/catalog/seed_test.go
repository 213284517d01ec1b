package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// apply applies a document of the description of scoped installs as it was printed.
func (w *world) apply(document string) {
	w.Helper()

	if _, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join("testdata", "seed-002-"+document+".yaml")); err != nil {
		w.Fatal(err)
	}
}

// rule puts another rule than the one on ConfigMaps into a catalog.
func rule(content map[string]string, resource, verbs string) {
	content["clusterServiceVersions"] = strings.Replace(content["clusterServiceVersions"],
		"resources: [configmaps], verbs: [get, list]", "resources: ["+resource+"], verbs: ["+verbs+"]", 1)
}

// TestSeed goes through the description of scoped installs, with an operator that asks for rights in the whole cluster.
func TestSeed(t *testing.T) {
	w := &world{World: beds.Begin(t, "cluster"), namespace: "scoped", group: rand.String(6) + ".example.com"}

	for _, document := range []string{"namespace", "account", "permissions", "operatorgroup", "subscription"} {
		w.apply(document)
	}

	content := w.content(version{name: "etcdoperator.v0.9.4-clusterwide", number: "0.9.4"})
	content["packages"] = "- packageName: etcd\n" +
		"  channels: [{name: singlenamespace-alpha, currentCSV: etcdoperator.v0.9.4-clusterwide}]\n"
	content["clusterServiceVersions"] = strings.Replace(content["clusterServiceVersions"], "        deployments:",
		"    "+strings.Join(nodes(), "\n    ")+"\n        deployments:", 1)

	w.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "catalog"}, Data: content},
		&olm.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "operatorhubio-catalog"},
			Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeInternal, ConfigMap: "catalog"},
		})

	s := &olm.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "etcd"}}
	ip := w.refused(s, "error creating clusterrole etcdoperator.v0.9.4-clusterwide-")

	if ref := s.Status.InstallPlanRef; ref.Kind != "InstallPlan" || ref.APIVersion != "operators.coreos.com/v1alpha1" ||
		ref.UID != ip.UID || ref.ResourceVersion == "" || !strings.HasPrefix(ref.Name, "install-") || len(ref.Name) != 13 {
		t.Errorf("the Subscription refers to %+v", ref)
	}

	// As it was printed.
	if c := ip.Status.Conditions[0]; c.Type != "Installed" || c.Status != "False" || c.Reason != "InstallComponentFailed" {
		t.Errorf("the condition is %+v", c)
	}
}

// TestSeedFineGrained: the permissions that the description suggests are enough for an operator that needs no more itself.
func TestSeedFineGrained(t *testing.T) {
	w := begin(t, "delegated")

	text, err := os.ReadFile(filepath.Join("testdata", "seed-002-fine-grained.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	role := &rbacv1.Role{}
	if err := yaml.Unmarshal(text, role); err != nil {
		t.Fatal(err)
	}

	role.Namespace, role.Name = w.namespace, "scoped"
	w.Make(testbed.Account(w.namespace, "scoped"), role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scoped"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "scoped"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "scoped"}},
	})

	// OLM made definitions with its own rights; here an administrator does.
	var crds []apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(w.definition("v1")), &crds); err != nil {
		t.Fatal(err)
	}

	w.Make(&crds[0])
	w.own("scoped")

	content := w.content(version{name: "kettle.v1", number: "1.0.0"})
	rule(content, "pods", "get, list, watch")
	w.offer(w.namespace, content)

	w.state(w.subscribe(), olm.SubscriptionStateAtLatest, "kettle.v1")

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
}
