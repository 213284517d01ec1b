package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
)

// refused says whether something of what the files ask for would be refused.
func (r *Planned) refused() bool {
	in := r.places()

	return r.unserved || r.Installs.refused(in) ||
		slices.ContainsFunc(r.proposals, func(p *proposal) bool { return p.refused != "" }) ||
		slices.ContainsFunc(r.Predictions, func(f *predict.Prediction) bool { return r.isRefused(f, in) })
}

// places are the namespaces that the files are about; nil where they may be about any. Files with Namespaces alone have every
// scope planned, and what is refused elsewhere is refused without them, too.
func (r *Planned) places() sets.Set[string] {
	out := sets.New[string]()

	for _, p := range r.proposals {
		if !p.isNamespace() {
			return nil
		}

		out.Insert(p.GetName())
	}

	return out
}

// isRefused says whether something would be refused in these namespaces, or in an operator namespace whose scopes reach them.
func (r *Planned) isRefused(f *predict.Prediction, in sets.Set[string]) bool {
	reached := func(s *predict.ScopePrediction) bool {
		return in == nil || in.Has(f.Key.Namespace) || in.HasAny(s.Served...) || in.HasAny(s.Unread...) ||
			slices.ContainsFunc(s.Failed, func(m predict.FailedMember) bool { return in.Has(m.Namespace) }) ||
			slices.ContainsFunc(s.Leaves, func(l plan.Finishing) bool { return in.Has(l.Namespace) })
	}

	reaches := in == nil

	for i := range f.Scopes {
		if s := &f.Scopes[i]; reached(s) {
			reaches = true

			if r.authorizer.Nobody(s.Scope.Owner) != "" {
				return true
			}
		}
	}

	return reaches && f.RefusedToOperators() || slices.ContainsFunc(f.Changes, func(c predict.Change) bool {
		return c.Refusal != nil && (in == nil || in.Has(c.Namespace) || in.Has(f.Key.Namespace))
	})
}
