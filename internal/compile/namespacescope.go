// Package compile says what a resource means. It turns each kind into a scope and decides nothing about the cluster.
package compile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// NamespaceScope compiles a NamespaceScope. It cannot fail: what is wrong with a part of the spec is kept with that
// part, so that the rest is served.
func NamespaceScope(nss *operatorv1.NamespaceScope) scope.Scope {
	s := scope.Scope{
		Owner:       OwnerOf(nss),
		Home:        nss.Namespace,
		Generation:  nss.Generation,
		Created:     nss.CreationTimestamp.Time,
		Accounts:    scope.Accounts{OfOperands: true, Named: distinct(nss.Spec.ServiceAccountMembers)},
		Operands:    operands(nss.Spec.RestartLabels),
		WatchList:   nss.Spec.ConfigmapName,
		AllowSubset: nss.Spec.AllowSubsetProjection,
		Delegate:    nss.Spec.ServiceAccountName,
		Manual:      nss.Spec.ManualManagement,
		Reported:    nss.Status.ValidatedMembers,
		Version:     scope.ParseVersion(nss.ResourceVersion),
	}
	for i := range nss.Status.FailedMembers {
		s.Failed = append(s.Failed, nss.Status.FailedMembers[i].Namespace)
	}

	if s.WatchList == "" {
		s.WatchList = operatorv1.DefaultConfigmapName
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

	return s
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

// operands never returns a selector that matches everything: empty labels mean the default.
func operands(restartLabels map[string]operatorv1.LabelValue) labels.Selector {
	set := labels.Set{}
	for k, v := range restartLabels {
		set[k] = string(v)
	}

	if len(set) == 0 {
		set = labels.Set{operatorv1.DefaultRestartLabel: operatorv1.DefaultRestartLabelValue}
	}

	return set.AsSelectorPreValidated()
}

func distinct(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)

	return slices.Compact(out)
}
