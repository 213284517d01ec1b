// Package install decides what becomes of OperatorGroups and ClusterServiceVersions. It is pure: what is in the cluster is handed
// in, and what to write and to report comes out. The permissions of a CSV are not decided here: they are compiled to a scope, and
// planned like any other.
package install

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Group is what an OperatorGroup says.
type Group struct {
	Namespace, Name, UID string
	Created              time.Time
	// Named are spec.targetNamespaces, and Selector is spec.selector as it was written; nil when there is none.
	Named    []string
	Selector []byte
	// Account is spec.serviceAccountName.
	Account string
	// Static says that only what Provided names may be provided.
	Static bool
	// Provided are the APIs in the annotation olm.providedAPIs.
	Provided []string
}

// Targets are the namespaces that the members of a group are to serve.
type Targets struct {
	// Namespaces are sorted. The empty name alone stands for all namespaces.
	Namespaces []string
	// Problem says why there are none although the group asks for some; empty when nothing is wrong.
	Problem string
}

// ErrAll says that a list of namespaces names all of them.
var ErrAll = errors.New("spec.targetNamespaces must not contain \"\", which would mean all namespaces; for those, leave " +
	"targetNamespaces and selector out")

// Resolve finds the targets of a group. Names win over a selector; neither of the two means all namespaces. What cannot be read,
// is empty or matches nothing never does. Labels do not select system namespaces: those have to be named.
func (g *Group) Resolve(namespaces map[string]facts.Namespace, ambit string) Targets {
	switch {
	case slices.Contains(g.Named, corev1.NamespaceAll):
		return Targets{Problem: ErrAll.Error()}
	case len(g.Named) > 0:
		return Targets{Namespaces: slices.Compact(slices.Sorted(slices.Values(g.Named)))}
	case g.Selector == nil:
		return Targets{Namespaces: []string{corev1.NamespaceAll}}
	}

	selector, err := compile.Selector(g.Selector)
	if err != nil {
		return Targets{Problem: fmt.Sprintf("spec.selector selects nothing: %v", err)}
	}

	var t Targets

	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		ns := namespaces[name]
		if !ns.Terminating && !scope.IsSystemNamespace(name, ambit) && ns.IsSelected(selector) {
			t.Namespaces = append(t.Namespaces, name)
		}
	}

	if len(t.Namespaces) == 0 {
		t.Problem = "no namespace has the labels that spec.selector asks for; namespaces join as soon as they have them"
	}

	return t
}

// Reach are the namespaces in which the operators of a group may work, besides its own: those that it names, and those that its
// status does, where the empty name stands for all. Where only the status names a namespace, they may still hold permissions
// there.
func Reach(g *operatorsv1.OperatorGroup) []string {
	return slices.Concat(g.Spec.TargetNamespaces, g.Status.Namespaces)
}

// ProposedReach are the namespaces that the spec of a group names. Where a selector chooses them, or nothing does, it counts as
// one for all.
func ProposedReach(group map[string]any) []string {
	names, _, _ := unstructured.NestedStringSlice(group, "spec", "targetNamespaces")
	if len(names) == 0 {
		return []string{corev1.NamespaceAll}
	}

	return names
}

// TargetedGroup is a group and its targets.
type TargetedGroup struct {
	*Group
	Targets []string
}

// ParseAPIs reads a list as the annotation olm.providedAPIs has it: kind.version.group, separated by commas.
func ParseAPIs(annotation string) []string {
	var apis []string

	for api := range strings.SplitSeq(annotation, ",") {
		if api = strings.TrimSpace(api); api != "" {
			apis = append(apis, api)
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(apis)))
}
