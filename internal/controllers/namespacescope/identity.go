package namespacescope

import (
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// compile says what the resources of an operator namespace mean to this manager.
func (r *Reconciler) compile(resources []resource) []scope.Scope {
	scopes := make([]scope.Scope, 0, len(resources))
	all := make([]*scope.Scope, 0, len(resources))

	for i := range resources {
		scopes = append(scopes, r.Writers.Here(resources[i].compile()))
		all = append(all, &scopes[i])
	}

	scope.MarkTwins(all)

	return scopes
}

// toWatch are the namespaces of which something has to be known: members, and those in which something may be left.
func (r *Reconciler) toWatch(key scope.Key, scopes []scope.Scope) []string {
	if !r.Writers.IsConfined() {
		return nil
	}

	names := r.Store.Holding(key)
	for i := range scopes {
		names = slices.Concat(names, scopes[i].Members.Named, scopes[i].Reported, scopes[i].Failed)
	}

	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// Settings are the decisions of an administrator that plans follow.
type Settings struct {
	*writer.Manager

	RestartInterval, FollowGrace, FinishGrace time.Duration
}

// Complete adds to the facts of an operator namespace what is the same in every plan.
func (s *Settings) Complete(f *facts.Facts) {
	f.AmbitAccount, f.RestartInterval = s.AccountOf(f.Key.Namespace), s.RestartInterval
	f.FollowGrace, f.FinishGrace = s.FollowGrace, s.FinishGrace
	f.ClusterScoped = reach.BuiltInClusterScoped()
	f.MayHold = s.WritesEverywhere()
}
