package overview_test

import (
	"fmt"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/facts"
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

// lacksNothing says of every target that something may be bound there.
func lacksNothing(string) bool { return false }

// TestClusterPermissionsServeNobody: what an operator holds in the whole cluster is no reason to say that it serves a namespace,
// unless it is for all of them.
func TestClusterPermissionsServeNobody(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		targets  []string
		reported string
		served   []string
	}{
		"one target":     {[]string{"tenant"}, "tenant", []string{"tenant"}},
		"all namespaces": {[]string{""}, "", []string{"default", "tenant"}},
	} {
		_, services := overview.OfInstall(installed(tc.reported), tc.targets, facts.ClusterBindings{}, lacksNothing)
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

// TestTargetsOfWhichAnOperatorIsNotTold: an operator that runs fails in a target that its annotation leaves out, and that it was
// installed is not why.
func TestTargetsOfWhichAnOperatorIsNotTold(t *testing.T) {
	t.Parallel()

	csv := installed("tenant")
	csv.Status.Reason, csv.Status.Message = olm.CSVReasonInstallSuccessful, "install strategy completed with no errors"

	for phase, want := range map[olm.ClusterServiceVersionPhase]string{
		olm.CSVPhaseSucceeded: "NotInAnnotation", olm.CSVPhaseInstalling: "InstallSucceeded",
	} {
		csv.Status.Phase = phase
		_, services := overview.OfInstall(csv, []string{"gone", "tenant"}, facts.ClusterBindings{}, lacksNothing)

		i := slices.IndexFunc(services, func(s overview.Service) bool { return s.Namespace == "gone" })
		if i < 0 || services[i].State != overview.Failed || services[i].Reason != want {
			t.Errorf("%s: the target that is left out is shown as %+v", phase, services)
		}
	}
}

// TestTargetsInWhichNothingIsBound: while no target has let an operator in, its annotation names them all the same, and none of
// them is served.
func TestTargetsInWhichNothingIsBound(t *testing.T) {
	t.Parallel()

	_, services := overview.OfInstall(installed("shut,tenant"), []string{"shut", "tenant"}, facts.ClusterBindings{},
		func(namespace string) bool { return namespace == "shut" })

	for namespace, want := range map[string]string{"shut": "failed NoPermissions true", "tenant": "served  false"} {
		i := slices.IndexFunc(services, func(s overview.Service) bool { return s.Namespace == namespace })
		if i < 0 {
			t.Fatalf("nothing about %s in %+v", namespace, services)
		}

		s := &services[i]
		if got := fmt.Sprintf("%s %s %t", s.State, s.Reason, s.Roles[0].Missing); got != want {
			t.Errorf("%s is %q, want %q", namespace, got, want)
		}
	}
}

// TestOwned: an operator works on what its ClusterServiceVersion says, in every namespace, also where another scope serves it; of
// another operator nothing is said.
func TestOwned(t *testing.T) {
	t.Parallel()

	csv := installed("tenant")
	csv.Spec.CustomResourceDefinitions.Owned = []olm.CRDDescription{
		{Name: "etcds.example.com", Version: "v2"}, {Name: "backups.example.com"}, {Name: "etcds.example.com", Version: "v1"},
	}
	declared, services := overview.OfInstall(csv, []string{"tenant"}, facts.ClusterBindings{}, lacksNothing)
	etcd := overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: "etcd"}
	services = append(services,
		overview.Service{Operator: etcd, Namespace: "m", Scope: "NamespaceScope ops/s"}, service("op", "m", "NamespaceScope ops/s", ""))

	owned := overview.New([]overview.Scope{declared, {Name: "NamespaceScope ops/s"}}, services, nil).Owned()
	if len(owned) != 1 || !slices.Equal(owned[etcd], []string{"backups.example.com", "etcds.example.com"}) {
		t.Errorf("owned are %v", owned)
	}

	// One that brings nothing works on nothing, and nothing has to be guessed.
	declared, services = overview.OfInstall(installed("tenant"), []string{"tenant"}, facts.ClusterBindings{}, lacksNothing)
	if apis, says := overview.New([]overview.Scope{declared}, services, nil).Owned()[etcd]; !says || len(apis) > 0 {
		t.Errorf("owned are %v, said: %t", apis, says)
	}
}
