package profiles_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// runsIntoOthers has somebody else make what Ambit is about to make, so that it has to look whose it is. Ambit knows of what is
// there, so it takes somebody who is in between; the more there is to write before, the surer.
func runsIntoOthers(t *testing.T, bed *testbed.Bed) {
	t.Helper()

	const tries, many = 30, 20

	// What getsInTheWay makes, by its turns.
	kinds := []right{
		{"get", "apiextensions.k8s.io", "customresourcedefinitions"}, {"get", olm.GroupName, "clusterserviceversions"},
		{"get", "", "serviceaccounts"}, {"get", "apps", "deployments"},
	}

	for i := range tries {
		in := newSubscribed(t, bed, fmt.Sprintf("others-%02d", i), "")
		c := in.csv("kettle.v1", "", many)
		definitions := []any{in.crd("kettle", "v1")}

		for j := range 12 {
			name := "kettle" + string(rune('a'+j))
			definitions = append(definitions, in.crd(name, "v1"))
			c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, olm.CRDDescription{
				Name: name + "s." + in.group, Version: "v1", Kind: strings.ToUpper(name[:1]) + name[1:],
			})
		}

		provide(t, bed.Client, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "catalog"},
			Data: map[string]string{
				"packages":                  "- {packageName: kettle, channels: [{name: stable, currentCSV: kettle.v1}]}",
				"clusterServiceVersions":    in.yaml(t, c),
				"customResourceDefinitions": in.yaml(t, definitions...),
			},
		})
		in.awaitsDefinition(t, definitions)
		in.getsInTheWay(t, i, c, definitions)

		for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !lookedAt(t, bed, kinds[i%4]); {
			time.Sleep(50 * time.Millisecond)
		}

		in.ends(t)

		if lookedAt(t, bed, kinds...) {
			return
		}
	}
}

// getsInTheWay makes one of what is about to be made: by turns a definition, the ClusterServiceVersion, an account, and the
// Deployment.
func (in *subscribed) getsInTheWay(t *testing.T, turn int, c *olm.ClusterServiceVersion, definitions []any) {
	t.Helper()

	switch turn % 4 {
	case 0:
		for i := len(definitions) - 1; i > len(definitions)-5; i-- {
			if crd, ok := definitions[i].(*apiextensionsv1.CustomResourceDefinition); ok {
				provide(t, in.Client, crd.DeepCopy())
			}
		}
	case 1:
		provide(t, in.Client, c.DeepCopy())
	case 2:
		in.awaitsRole(t)
		provide(t, in.Client, testbed.Account(in.namespace, c.Spec.InstallStrategy.StrategySpec.Permissions[15].ServiceAccountName))
	default:
		in.awaitsRole(t)
		provide(t, in.Client, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "kettle"},
			Spec:       c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec,
		})
	}
}

// awaitsDefinition waits until one of the first definitions is there.
func (in *subscribed) awaitsDefinition(t *testing.T, definitions []any) {
	t.Helper()

	for i, end := 0, time.Now().Add(testbed.Patience); time.Now().Before(end); i++ {
		crd, ok := definitions[i%2].(*apiextensionsv1.CustomResourceDefinition)
		if ok && in.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()) == nil {
			return
		}
	}

	t.Fatal("no definition")
}

func (in *subscribed) awaitsRole(t *testing.T) {
	t.Helper()

	list := &rbacv1.RoleList{}

	for end := time.Now().Add(testbed.Patience); time.Now().Before(end) && len(list.Items) == 0; {
		if err := in.Client.List(t.Context(), list, client.InNamespace(in.namespace)); err != nil {
			t.Fatal(err)
		}
	}
}

// lookedAt says whether Ambit has read one of each of some kinds that it otherwise knows.
func lookedAt(t *testing.T, bed *testbed.Bed, kinds ...right) bool {
	t.Helper()

	requests, err := readLog(bed)
	if err != nil {
		t.Fatal(err)
	}

	uses := usesOf(requests, byAmbit)

	for _, r := range kinds {
		if !uses[r].elsewhere {
			return false
		}
	}

	return true
}
