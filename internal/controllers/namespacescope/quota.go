package namespacescope

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxScopes is how many bytes of memory the scopes of a namespace may take. A few fit that are as large as an object can be.
const maxScopes = 8 << 20

// maxServed is how many scopes of a namespace are served, the oldest ones. Each is compared with everything that is beside it, so
// a plan would take memory and time for the product of both.
const maxServed = 200

// NewQuota bounds what is kept of the scopes of a namespace.
func NewQuota() *declared.Quota { return declared.NewQuota(maxScopes, empty) }

// ToKey asks for a plan of the namespace that a scope is in. The quota forgets what is gone.
func ToKey(to *changes.Changes, quota *declared.Quota) changes.Handler {
	return changes.ToKey(to, scope.NamespaceScopes, func(nss client.Object) { quota.Gone(nss.GetNamespace(), nss.GetUID()) })
}

// maxFinalizers is how many are kept of a scope that is emptied.
const maxFinalizers = 20

// empty takes the members out of a scope, and what is for others. Who writes for it, and what is to be taken back, stays.
func empty(obj client.Object) {
	// Nobody needs as many. Those beyond go with the next write of Ambit's own finalizer.
	if all := obj.GetFinalizers(); len(all) > maxFinalizers {
		own := slices.DeleteFunc(all[maxFinalizers:], func(f string) bool { return f != operatorv1.Finalizer })
		obj.SetFinalizers(slices.Concat(all[:maxFinalizers], own))
	}

	switch nss := obj.(type) {
	case *operatorv1.NamespaceScope:
		nss.Spec.NamespaceMembers, nss.Spec.NamespaceSelector, nss.Spec.ServiceAccountMembers, nss.Spec.License = nil, nil, nil, nil
	case *namespacescopev1alpha1.NamespaceScope:
		nss.Spec.NamespaceMembers, nss.Spec.ProjectedServiceAccounts = nil, nil
	}
}

// fit finds the scopes that are over the limit of their namespace, and reads those again that the cache has emptied although
// they are not.
func (r *Reconciler) fit(ctx context.Context, found []resource) ([]resource, error) {
	if r.Quota == nil || len(found) == 0 {
		return found, nil
	}

	over, sorted := r.Quota.Over(found[0].GetNamespace(), objects(found))
	places := make(map[types.UID]int, len(sorted))

	for i, uid := range sorted {
		places[uid] = i
	}

	excess := beyond(found)
	there := found[:0]

	for _, nss := range found {
		nss.place = places[nss.GetUID()]

		// One that is deleted is not read again: what is to be taken back is known.
		_, is := over[nss.GetUID()]
		if _, nss.excess = excess[nss.GetUID()]; nss.excess {
			is = true
			nss.compile = nothingOf(nss.compile)
		}

		if nss.leftOut = is || nss.isDeleted() && declared.IsEmptied(nss.Object); !nss.leftOut && declared.IsEmptied(nss.Object) {
			if is, err := declared.Anew(ctx, r.Live, nss.Object); err != nil {
				return nil, fmt.Errorf("reading a NamespaceScope anew: %w", err)
			} else if !is {
				continue
			}
		}

		r.trim(&nss)
		there = append(there, nss)
	}

	return there, nil
}

// beyond are the scopes that are more than are served. One that is deleted does not count.
func beyond(found []resource) map[types.UID]struct{} {
	living := slices.DeleteFunc(slices.Clone(found), func(nss resource) bool { return nss.isDeleted() })
	if len(living) <= maxServed {
		return nil
	}

	slices.SortFunc(living, func(a, b resource) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), a.owner.Compare(b.owner))
	})

	out := make(map[types.UID]struct{}, len(living)-maxServed)
	for _, nss := range living[maxServed:] {
		out[nss.GetUID()] = struct{}{}
	}

	return out
}

// nothingOf compiles a scope that is not served: it has no members, no accounts, no list and no injection.
func nothingOf(compile func() scope.Scope) func() scope.Scope {
	return func() scope.Scope {
		s := compile()
		if !s.Deleting() {
			s.Members, s.Accounts, s.WatchList, s.InjectCSVs, s.InjectWorkloads = scope.Members{}, scope.Accounts{}, "", false, nil
		}

		return s
	}
}

// trim empties a scope that is over the limit, also after a write, which returns the whole of it.
func (r *Reconciler) trim(nss *resource) {
	if nss.leftOut {
		r.Quota.Empty(nss.Object)
	}
}

// note records what a write to a scope returned. Those that are left out are large, and are written when there is time.
func (r *Reconciler) note(nss *resource) {
	if nss.leftOut {
		r.written.Note(nss.Object)
	} else {
		r.written.Remember(nss.Object)
	}
}

// lateScopes is how long the scopes that are left out keep a plan from ending. Each of them is large, and to write one may
// take the API server a second; what changes meanwhile waits for the next plan.
const lateScopes = 300 * time.Millisecond

// turns are the scopes of a plan in the order in which they are written: first those that are served, the smallest first; and
// last those that are left out and that the cache has in the version that Ambit wrote.
type turns struct{ first, last []int }

func (r *Reconciler) turns(resources []resource, p *plan.Plan) turns {
	var t turns

	for i := range p.Scopes {
		switch nss := resourceOf(resources, p.Scopes[i].Scope); {
		case !nss.leftOut:
			t.first = append(t.first, i)
		case !r.written.IsAhead(nss.Object):
			t.last = append(t.last, i)
		}
	}

	slices.SortStableFunc(t.first, func(a, b int) int {
		return cmp.Compare(resourceOf(resources, p.Scopes[a].Scope).place, resourceOf(resources, p.Scopes[b].Scope).place)
	})

	return t
}

// statusLimit is how many bytes the status of a scope may take. It is zero for one that is left out, because nobody knows any
// more how large the rest is; report.Cut takes that for the least.
func (r *resource) statusLimit() int {
	if r.leftOut {
		return 0
	}

	return report.StatusLimit(r.Object, r.spec)
}

// leftOut says what of an operator namespace is left out: what is more than may be remembered, and scopes that are too large.
func leftOut(more string, resources []resource) string {
	if !slices.ContainsFunc(resources, func(nss resource) bool { return nss.leftOut && !nss.isDeleted() }) {
		return more
	}

	// Without a number: it would change with each, and so would the status of all.
	if more != "" {
		more += ", "
	}

	if more += "NamespaceScopes"; slices.ContainsFunc(resources, func(nss resource) bool { return nss.excess }) {
		more += fmt.Sprintf(" beyond the oldest %d", maxServed)
	}

	return more
}
