package catalog

import (
	"fmt"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Conditions and reasons that OLM does not have.
const (
	// ConditionReady says whether a CatalogSource can be used.
	ConditionReady = "Ready"
	// ReasonRead, ReasonSubsetRead, ReasonNotFound, ReasonInvalid and ReasonImage belong to it.
	ReasonRead       = "CatalogRead"
	ReasonSubsetRead = "SubsetRead"
	ReasonNotFound   = "ConfigMapNotFound"
	ReasonInvalid    = "InvalidSpec"
	ReasonImage      = "CatalogImageNotServed"
	// ReasonTooManyCatalogs: the namespace has more catalogs than MaxSources.
	ReasonTooManyCatalogs = "TooManyCatalogs"

	// ReasonLimit: the objects of this kind take more memory than there is for a namespace, and this is one of the largest.
	ReasonLimit = "LimitExceeded"

	// ReasonUnsatisfiable belongs to the condition ResolutionFailed, as in OLM; so do the next ones, which are Ambit's.
	ReasonUnsatisfiable = "ConstraintsNotSatisfiable"
	// ReasonAlreadySubscribed: another Subscription is for the same package.
	ReasonAlreadySubscribed = "AlreadySubscribed"
	// ReasonUninstalled: what was installed was deleted by somebody.
	ReasonUninstalled = "Uninstalled"
	// ReasonInstalledUnreadable: what is installed cannot be read, so that nobody knows what may be installed over it.
	ReasonInstalledUnreadable = "InstalledUnreadable"
	// ReasonTooManySubscriptions: the namespace has more Subscriptions than MaxSubscriptions.
	ReasonTooManySubscriptions = "TooManySubscriptions"
	// ReasonTooManyInstallPlans: more than MaxSuperseded InstallPlans of the Subscription came to nothing.
	ReasonTooManyInstallPlans = "TooManyInstallPlans"
	// ReasonInstallPlanRefused: the API server lets no InstallPlan be created, because of a quota for example.
	ReasonInstallPlanRefused = "InstallPlanRefused"
	// ReasonInvalidSubscription: the spec says too little.
	ReasonInvalidSubscription = "InvalidSpec"
)

const (
	// conditionConfigIgnored was there before Ambit applied spec.config.
	conditionConfigIgnored olmv1alpha1.SubscriptionConditionType = "ConfigIgnored"
	// ReasonSuperseded is the reason of an InstallPlan that another one replaced.
	ReasonSuperseded olmv1alpha1.InstallPlanConditionReason = "Superseded"
)

// MissingWords say in one line what an account lacks, and how to see all of it.
func MissingWords(account string, missing []authority.Place, namespace, plan string) string {
	return fmt.Sprintf("Nothing was written: %s may not %s; to see all of it, with what grants it: "+
		"ambit preflight installplan/%s -n %s", account, install.LacksInWords(missing), plan, namespace)
}

// What OLM says about the group of a namespace (pkg/lib/scoped/querier.go), with what to do.
const (
	NoGroup = "no operator group found that is managing this namespace; create an OperatorGroup in it"
	// NoTargets is for a group that serves no namespace, which OLM ignores.
	NoTargets = "no operator group found that is managing this namespace: the one that is there has no target namespaces"
)

// TooManyGroups is said when a namespace has several groups.
func TooManyGroups(count int) string {
	return fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d", count)
}

func superseded(by string) string {
	if by == "" {
		return "the Subscription asks for something else by now, or the catalog holds something else; nothing is installed by this"
	}

	return fmt.Sprintf("InstallPlan %s came instead: the Subscription asks for something else by now, or the catalog holds "+
		"something else", by)
}

// imageWords say why a catalog image is not served.
const imageWords = "Ambit serves catalogs from ConfigMaps (sourceType: configmap or internal) and runs no catalog images: put " +
	"the operator's manifests into a ConfigMap with the keys " + KeyDefinitions + ", " + KeyVersions + " and " + KeyPackages

// shorten lists problems, as far as they fit into a message.
func shorten(problems []string) string {
	const most = 5

	return printable.First(collect.Map(problems, func(s string) string { return printable.Cut(s, 2*maxWords) }), "; ", most)
}
