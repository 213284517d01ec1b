package install

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// accounts are the service accounts that a CSV's operator runs as or gets permissions for, sorted.
func accounts(csv *olm.ClusterServiceVersion) []string {
	strategy := &csv.Spec.InstallStrategy.StrategySpec

	names := make([]string, 0, 2*len(strategy.Permissions)+len(strategy.DeploymentSpecs))

	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		names = append(names, p.ServiceAccountName)
	}

	for i := range strategy.DeploymentSpecs {
		names = append(names, strategy.DeploymentSpecs[i].Spec.Template.Spec.ServiceAccountName)
	}

	slices.Sort(names)

	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// ownAccounts are those that are made for the operator.
func ownAccounts(csv *olm.ClusterServiceVersion) []string {
	return slices.DeleteFunc(accounts(csv), func(name string) bool { return name == scope.DefaultAccount })
}
