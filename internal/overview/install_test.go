package overview_test

import (
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/overview"
)

// installed is a ClusterServiceVersion that runs, and is told to watch what its annotation says.
func installed(told string) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "etcd.v1", Annotations: map[string]string{operatorsv1.TargetsAnnotation: told},
	}}
	csv.Status.Phase = olm.CSVPhaseSucceeded
	permissions := []olm.StrategyDeploymentPermissions{{ServiceAccountName: "etcd", Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
	}}}
	csv.Spec.InstallStrategy.StrategySpec.Permissions = permissions
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = permissions

	return csv
}

// TestClusterPermissionsServeNobody: what an operator holds in the whole cluster is no reason to say that it serves a namespace,
// unless it is for all of them.
func TestClusterPermissionsServeNobody(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		targets []string
		told    string
		served  []string
	}{
		"one target":     {[]string{"tenant"}, "tenant", []string{"tenant"}},
		"all namespaces": {[]string{""}, "", []string{"default", "tenant"}},
	} {
		_, services := overview.OfInstall(installed(tc.told), tc.targets)
		all := overview.New(nil, services, []string{"default", "tenant"})

		for _, namespace := range all.Namespaces {
			if namespace == "ops" {
				continue
			}

			in := func(name string) bool { return name == namespace }
			serving := all.Keep(overview.Filter{Namespace: in, OnlyServing: true}).Services

			if served := len(serving) > 0; served != slices.Contains(tc.served, namespace) {
				t.Errorf("%s: %s is served: %t, by %+v", name, namespace, served, serving)
			}

			if len(all.Keep(overview.Filter{Namespace: in}).Services) == 0 {
				t.Errorf("%s: what it holds in the whole cluster is out of sight in %s", name, namespace)
			}
		}
	}
}
