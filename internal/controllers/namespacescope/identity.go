package namespacescope

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// compile says what the resources of an operator namespace mean to this manager.
func (r *Reconciler) compile(resources []resource) []scope.Scope {
	scopes := make([]scope.Scope, 0, len(resources))

	for i := range resources {
		scopes = append(scopes, r.Writers.Here(resources[i].compile()))
	}

	return scopes
}

// toWatch are the namespaces of which something has to be known: members, and those in which something may be left.
func (r *Reconciler) toWatch(operatorNamespace string, scopes []scope.Scope) []string {
	if !r.Writers.IsConfined() {
		return nil
	}

	names := r.Store.Holding(operatorNamespace)
	for i := range scopes {
		names = slices.Concat(names, scopes[i].Members.Named, scopes[i].Reported, scopes[i].Failed)
	}

	slices.Sort(names)

	return slices.Compact(names)
}
