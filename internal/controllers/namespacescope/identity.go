package namespacescope

import (
	"context"
	"slices"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
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

// identities say who writes for each scope of a plan.
func (r *Reconciler) identities(p *plan.Plan, f *facts.Facts) []apply.Identity {
	out := make([]apply.Identity, len(p.Scopes))
	for i := range p.Scopes {
		out[i] = r.identity(p.Scopes[i].Scope, f)
	}

	return out
}

// bar finds the scopes whose writers may not write the watch list that they share with others, and notes that in them.
func (r *Reconciler) bar(ctx context.Context, scopes []scope.Scope, f *facts.Facts) map[scope.Owner]error {
	ids := make([]apply.Identity, len(scopes))
	for i := range scopes {
		ids[i] = r.identity(&scopes[i], f)
	}

	barred := r.Applier.Barred(ctx, f.OperatorNamespace.Name, scopes, ids)

	for i := range scopes {
		scopes[i].Barred = barred[scopes[i].Owner] != nil
	}

	return barred
}

// writers is what of this manager decides who writes.
func (r *Reconciler) writers() *writer.Manager {
	return &writer.Manager{
		User: r.OwnUser, DefaultDelegate: r.DefaultDelegate, NeedDelegate: r.NeedDelegate, Namespaces: r.Namespaces,
	}
}

// ambitAccount is the service account of an operator namespace that Ambit runs as, or acts as in members.
func (r *Reconciler) ambitAccount(operatorNamespace string) string {
	return r.writers().AccountOf(operatorNamespace)
}

// own is Ambit itself for a reconcile key.
func (r *Reconciler) own(operatorNamespace string) apply.Identity {
	if name := r.writers().GrantedAccount(operatorNamespace); name != "" {
		return apply.OwnWith(operatorNamespace, name)
	}

	return apply.Own()
}

// orphansAs is who takes away what is left of scopes of an operator namespace that are gone. Where Ambit itself writes
// nothing, nobody does: it is not known any more as whom it was written.
func (r *Reconciler) orphansAs(operatorNamespace string) apply.Identity {
	if r.NeedDelegate {
		return apply.Identity{}
	}

	return r.own(operatorNamespace)
}

func (r *Reconciler) identity(s *scope.Scope, f *facts.Facts) apply.Identity {
	w := r.writers().Of(s, f.OperatorNamespace.Accounts, f.OperatorNamespace.Terminating)

	switch {
	case w.Nobody != "":
		return apply.Nobody(w.Nobody)
	case w.Account == "":
		return r.own(s.OperatorNamespace)
	}

	id, err := apply.ServiceAccount(s.OperatorNamespace, w.Account)
	if err != nil {
		return apply.Nobody(err.Error())
	}

	return id
}
