package bounds_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestHostileCatalogsStarveNobody: a tenant fills the catalogs of their namespace with what costs most, by YAML aliases first of
// all, and writes them anew; the manager stays small, another namespace gets its operator, and what is too large is told.
func TestHostileCatalogsStarveNobody(t *testing.T) {
	w := beds.Quiet(t, "cluster")
	mine, other := w.Namespace("hostile"), w.Namespace("other")

	w.Make(testbed.Account(mine, "installer"), testbed.GroupOf(mine, "installer"), testbed.GroupOf(other, ""))

	hostile := testbed.HostileCatalogs()
	delete(hostile, "UTF-16") // The API server takes no such text from most clients.

	user := w.Tenant("mallory-"+mine, mine)
	names := slices.SortedFunc(maps.Keys(hostile), func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "aliases"), strings.TrimPrefix(b, "aliases")) // Those first.
	})

	write := func(i int, note string) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: fmt.Sprintf("c%02d", i)}, Data: hostile[names[i]]}
		cm.Annotations = map[string]string{"note": note}

		if note == "" {
			return user.Create(t.Context(), cm)
		}

		return user.Update(t.Context(), cm)
	}

	const sources = catalog.MaxSources + 2

	for i := range sources {
		w.Make(catalogOf(mine, i), subscriptionOf(mine, i))
		w.Eventually("the content is written", func() error { return write(i, "") })
	}

	for round := range 3 {
		for i := range sources {
			if err := write(i, strconv.Itoa(round)); err != nil {
				t.Fatal(err)
			}
		}
	}

	began := time.Now()
	s := honest(w, other)
	w.Within(long, "another namespace is served", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}

		if s.Status.InstalledCSV != "op.v1" {
			return fmt.Errorf("its status is %+v", s.Status)
		}

		return nil
	})
	t.Logf("another namespace waited %v", time.Since(began))

	const many = "the oldest 10"

	for i, words := range map[int]string{0: "an alias", 1: "an alias", catalog.MaxSources: many, sources - 1: many} {
		source := catalogOf(mine, i)
		w.Eventually(names[i]+" is told of", func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
				return err
			}

			c := meta.FindStatusCondition(source.Status.Conditions, catalog.ConditionReady)
			if c == nil || !strings.Contains(c.Message, words) {
				return fmt.Errorf("it says %+v", c)
			}

			return nil
		})
	}

	if peak := w.Peak(); peak > 256<<20 {
		t.Errorf("the manager took %d MiB", peak>>20)
	} else {
		t.Logf("the manager took %d MiB", peak>>20)
	}
}

// catalogOf is a catalog in the ConfigMap of the same name.
func catalogOf(namespace string, number int) *olm.CatalogSource {
	name := fmt.Sprintf("c%02d", number)

	return &olm.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeConfigmap, ConfigMap: name},
	}
}

// subscriptionOf is a Subscription for the package tea, or for another one of a catalog.
func subscriptionOf(namespace string, number int) *olm.Subscription {
	s := &olm.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("s", number)},
		Spec: &olm.SubscriptionSpec{
			Package: "tea", CatalogSource: fmt.Sprintf("c%02d", number), CatalogSourceNamespace: namespace,
			InstallPlanApproval: olm.ApprovalAutomatic,
		},
	}

	if number > 0 {
		s.Spec.Package = fmt.Sprint("many", number)
	}

	return s
}

// honest subscribes to a catalog in which nothing is wrong.
func honest(w *testbed.World, namespace string) *olm.Subscription {
	w.Helper()

	csv := testbed.ReadsSecrets("")
	csv.APIVersion, csv.Kind = olm.ClusterServiceVersionAPIVersion, olm.ClusterServiceVersionKind

	text, err := yaml.Marshal([]any{csv})
	if err != nil {
		w.Fatal(err)
	}

	s := subscriptionOf(namespace, 0)
	w.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c00"}, Data: map[string]string{
		"clusterServiceVersions": string(text), "packages": "- packageName: tea\n  channels: [{name: stable, currentCSV: op.v1}]\n",
	}}, catalogOf(namespace, 0), s)

	return s
}
