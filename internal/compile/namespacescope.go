// Package compile says what a resource means. It turns each kind into a scope and decides nothing about the cluster.
package compile

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// NamespaceScope compiles a NamespaceScope. It cannot fail: what is wrong with a part of the spec is kept with that
// part, so that the rest is served.
func NamespaceScope(nss *operatorv1.NamespaceScope) scope.Scope {
	s := scope.Scope{
		Owner:       OwnerOf(nss),
		Key:         scope.NamespaceScopes.In(nss.Namespace),
		Generation:  nss.Generation,
		Created:     nss.CreationTimestamp.Time,
		Accounts:    scope.Accounts{OfOperands: true, Named: distinct(nss.Spec.ServiceAccountMembers)},
		Operands:    labels.Set(restartLabels(nss.Spec.RestartLabels)).AsSelectorPreValidated(),
		WatchList:   cmp.Or(nss.Spec.ConfigmapName, operatorv1.DefaultConfigmapName),
		AllowSubset: nss.Spec.AllowSubsetProjection,
		Delegate:    nss.Spec.ServiceAccountName,
		Manual:      nss.Spec.ManualManagement,
		Reported:    nss.Status.ValidatedMembers,
		Version:     scope.ParseVersion(nss.ResourceVersion),
		Labels:      restartLabels(nss.Spec.RestartLabels),
		Injected:    isInjected(&nss.Status),
	}
	if why := nss.Spec.Unreadable; why != "" {
		s.Problem = "the spec cannot be read, so nothing is written for it: " + why
	}

	for i := range nss.Status.FailedMembers {
		s.Failed = append(s.Failed, nss.Status.FailedMembers[i].Namespace)
	}

	for i := range nss.Status.FinishingMembers {
		if s.Finishing == nil {
			s.Finishing = map[string]time.Time{}
		}

		s.Finishing[nss.Status.FinishingMembers[i].Namespace] = nss.Status.FinishingMembers[i].Since.Time
	}

	if since := nss.Status.FinishingSince; since != nil {
		s.FinishingSince = since.Time
	}

	if s.Manual && s.Delegate == "" {
		s.Delegate = scope.ManualDelegate
	}

	if nss.DeletionTimestamp != nil {
		s.Deleted = nss.DeletionTimestamp.Time
		// A deletion time of zero would read as "alive"; the API server never sets one.
		if s.Deleted.IsZero() {
			s.Deleted = time.Unix(0, 0)
		}

		return s
	}

	s.Members = membersOf(nss.Spec.NamespaceMembers, nss.Spec.NamespaceSelector)
	s.InjectCSVs = nss.Spec.CSVInjector != nil && isOn(nss.Spec.CSVInjector.Enable)
	s.InjectWorkloads = workloadInjection(nss.Spec.WorkloadInjector)

	return s
}

// isOn says whether an injector that is given is on: like IBM's, it is unless it says otherwise.
func isOn(enable *bool) bool { return enable == nil || *enable }

func workloadInjection(in *operatorv1.WorkloadInjector) *scope.WorkloadInjection {
	if in == nil || !isOn(in.Enable) {
		return nil
	}

	out := &scope.WorkloadInjection{
		Variable: operatorv1.DefaultVariable, Arguments: in.Arguments, MountPath: in.MountPath,
		Containers: distinct(in.Containers), Replace: in.Conflicts == operatorv1.ReplaceConflicts,
	}
	if in.Variable != nil {
		out.Variable = *in.Variable
	}

	return out
}

// OwnerOf names a NamespaceScope as the owner of what is projected for it.
func OwnerOf(nss *operatorv1.NamespaceScope) scope.Owner {
	return scope.Owner{
		Group: operatorv1.GroupVersion.Group, Kind: "NamespaceScope", Namespace: nss.Namespace, Name: nss.Name,
	}
}

// membersOf unites names and a selector. Fail closed: a selector that cannot be read selects nothing (GHSA-jrr2-x33p-6hvc
// in Kyverno: an error in a selector lookup was swallowed).
func membersOf(names []string, raw *operatorv1.NamespaceSelector) scope.Members {
	m := scope.Members{Named: distinct(names)}
	if raw == nil {
		return m
	}

	selector, err := Selector(raw.Raw)
	if err != nil {
		m.Problem = "spec.namespaceSelector selects nothing: " + err.Error()

		return m
	}

	m.Selector = selector

	return m
}

// restartLabels are never empty: a selector made of them must not match everything.
func restartLabels(given map[string]operatorv1.LabelValue) map[string]string {
	set := map[string]string{}
	for k, v := range given {
		set[k] = string(v)
	}

	if len(set) == 0 {
		set[operatorv1.DefaultRestartLabel] = operatorv1.DefaultRestartLabelValue
	}

	return set
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// isInjected says whether something may be injected into ClusterServiceVersions. The lists alone do not tell: they are written
// after the injection, and a scope may be changed or deleted between the two.
func isInjected(status *operatorv1.NamespaceScopeStatus) bool {
	return len(status.PatchedCSVList)+len(status.PatchedWebhookList) > 0 ||
		meta.FindStatusCondition(status.Conditions, scope.ConditionCSVsInjected) != nil
}
