package namespacescope

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// compile says what the resources of an operator namespace mean to this manager.
func (r *Reconciler) compile(resources []resource) []scope.Scope {
	scopes := make([]scope.Scope, 0, len(resources))

	for i := range resources {
		scopes = append(scopes, r.writers().Here(resources[i].compile()))
	}

	return scopes
}

// isNamespaced says whether nothing may be read cluster-wide.
func (r *Reconciler) isNamespaced() bool { return len(r.Namespaces) > 0 }

// toWatch are the namespaces of which something has to be known: members, and those in which something may be left.
func (r *Reconciler) toWatch(operatorNamespace string, scopes []scope.Scope) []string {
	if !r.isNamespaced() {
		return nil
	}

	names := r.Store.Holding(operatorNamespace)
	for i := range scopes {
		names = slices.Concat(names, scopes[i].Members.Named, scopes[i].Reported, scopes[i].Failed)
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// writers is what of this manager decides who writes.
func (r *Reconciler) writers() *writer.Manager {
	return &writer.Manager{
		User: r.OwnUser, DefaultDelegate: r.DefaultDelegate, NeedDelegate: r.NeedDelegate, Namespaces: r.Namespaces,
		Installs: r.Installs,
	}
}

// ambitAccount is the service account of an operator namespace that Ambit runs as, or acts as in members.
func (r *Reconciler) ambitAccount(operatorNamespace string) string {
	return r.writers().AccountOf(operatorNamespace)
}
