package predict

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// firstVersion is later than any resource version of a cluster.
const firstVersion = 1 << 62

// copyOf returns facts that may be written to.
func copyOf(f *facts.Facts) *facts.Facts {
	out := *f
	out.Projected = maps.Clone(f.Projected)
	out.Legacy = maps.Clone(f.Legacy)
	// What waits is over in the end, or the grace time is, and the same is done then.
	out.FinishGrace, out.Waiting = 0, nil
	out.ClusterRoles = maps.Clone(f.ClusterRoles)
	out.OperatorNamespace.ConfigMaps = maps.Clone(f.OperatorNamespace.ConfigMaps)
	out.OperatorNamespace.Workloads = slices.Clone(f.OperatorNamespace.Workloads)
	out.OperatorNamespace.Pods = slices.Clone(f.OperatorNamespace.Pods)

	if out.Projected == nil {
		out.Projected = map[string]map[facts.ProjectedKey]facts.Projected{}
	}

	if out.OperatorNamespace.ConfigMaps == nil {
		out.OperatorNamespace.ConfigMaps = map[string]facts.ConfigMap{}
	}

	knowOrder(&out.OperatorNamespace)

	return &out
}

// knowOrder decides what only somebody knows who saw it happen: whether a reader that came into being within the second of its
// list came before it. The manager restarted those that did when it wrote the list, so what is there now came after.
func knowOrder(operatorNamespace *facts.OperatorNamespace) {
	settle := func(b *facts.Birth, reads []string) {
		for _, name := range reads {
			if cm, exists := operatorNamespace.ConfigMaps[name]; exists && b.BornAt == 0 && cm.Ours() && b.Created.Equal(cm.ChangedAt()) {
				b.BornAt = firstVersion - 1
			}
		}
	}

	for i := range operatorNamespace.Workloads {
		settle(&operatorNamespace.Workloads[i].Birth, operatorNamespace.Workloads[i].Template.Reads)
	}

	for i := range operatorNamespace.Pods {
		settle(&operatorNamespace.Pods[i].Birth, operatorNamespace.Pods[i].Reads)
	}
}

func (g *simulated) next() uint64 {
	g.version++

	return firstVersion + g.version
}

// write makes a change in the facts.
func (g *simulated) write(c *plan.Change, purpose Purpose) {
	f := g.facts

	if purpose == Legacy {
		held := maps.Clone(f.Legacy[c.Namespace])
		delete(held, c.Key)
		f.Legacy[c.Namespace] = held

		return
	}

	held := maps.Clone(f.Projected[c.Namespace])
	if held == nil {
		held = map[facts.ProjectedKey]facts.Projected{}
	}

	f.Projected[c.Namespace] = held

	if c.Action == plan.Delete {
		delete(held, c.Key)

		if c.Key.Kind == projected.ClusterRole {
			delete(f.ClusterRoles, c.Key.Name)
		}

		return
	}

	if c.Action == plan.Empty {
		emptied := held[c.Key]
		emptied.Empty, emptied.Held, emptied.Version = true, false, g.next()
		held[c.Key] = emptied

		return
	}

	o := c.Object()
	held[c.Key] = read.RecordOf(&o, g.next())

	if c.Key.Kind == projected.ClusterRole && f.ClusterRoles != nil {
		f.ClusterRoles[c.Key.Name] = facts.ClusterRole{Made: true}
	}

	f.Granted = f.Now
}

// writeList makes a ConfigMap in the facts what it would be.
func (g *simulated) writeList(name string, w plan.ListWrite) {
	lists := g.facts.OperatorNamespace.ConfigMaps
	cm := lists[name]

	switch w.Action {
	case plan.DeleteList:
		delete(lists, name)

		return
	case plan.ReleaseList:
		lists[name] = facts.ConfigMap{OtherKeys: cm.OtherKeys, Immutable: cm.Immutable, Version: g.next()}

		return
	case plan.KeepList, plan.ApplyList, plan.BlockedList:
	}

	hash := scope.ListHash(w.Value, w.Generation)
	cm.Version = g.next()

	if cm.ListHash != hash {
		cm.ListVersion = cm.Version
	}

	cm.List, cm.HasList, cm.ListHash, cm.Generation = w.Value, true, hash, w.Generation
	cm.Created, cm.Since, cm.Before, cm.Applied = w.Created, w.Since, w.Before, g.facts.Now.Truncate(time.Second)
	lists[name] = cm
}

// restart makes a reader in the facts one that began with the present list.
func (g *simulated) restart(r *plan.Restart) {
	operatorNamespace := &g.facts.OperatorNamespace

	for i := range operatorNamespace.Workloads {
		if w := &operatorNamespace.Workloads[i]; w.Kind == r.Workload.Kind && w.Name == r.Workload.Name {
			w.ListHash, w.Restarted, w.RestartWait = r.Hash(), g.facts.Now, r.Wait
			if r.Last {
				w.ListHash, w.Restarted, w.RestartWait = "", time.Time{}, 0
			}
		}
	}

	operatorNamespace.Pods = slices.DeleteFunc(operatorNamespace.Pods, func(p facts.Pod) bool {
		return slices.Contains(r.Evict, p.PodRef) || r.Workload.Kind != "" && p.Controller == r.Workload
	})
}

// listRefused says why a list would not be written: where it is immutable, or none of the scopes that share it may.
func (g *simulated) listRefused(p *plan.Plan, l *plan.ListPlan, w plan.ListWrite) *Refusal {
	if w.Action == plan.BlockedList {
		return &Refusal{
			Reason:  report.ReasonConfigMapConflict,
			Message: "ConfigMap " + p.Key + "/" + l.Name + " is immutable; delete it, or choose another configmapName",
		}
	}

	needs := authority.InOperatorNamespace(l.Name)[:1]

	var first *Refusal

	for _, i := range g.writersOf(p, l) {
		refusal := g.authorizer.OperatorNamespace(p.Scopes[i].Scope, needs)
		if refusal == nil {
			return nil
		}

		if first == nil {
			first = refusal
		}
	}

	return first
}

// bar finds the scopes whose writers may not write the list that they share with others who may: nothing enters it for them.
func (g *simulated) bar(scopes []scope.Scope) []scope.Scope {
	scopes, g.barred = slices.Clone(scopes), map[scope.Owner]Refusal{}
	may, refusals := map[string]bool{}, make([]*Refusal, len(scopes))

	for i := range scopes {
		if s := &scopes[i]; s.WatchList != "" && !s.Deleting() {
			refusals[i] = g.authorizer.OperatorNamespace(s, authority.InOperatorNamespace(s.WatchList)[:1])
			may[s.WatchList] = may[s.WatchList] || refusals[i] == nil
		}
	}

	for i := range scopes {
		if refusals[i] != nil && may[scopes[i].WatchList] {
			scopes[i].Barred, g.barred[scopes[i].Owner] = true, *refusals[i]
		}
	}

	return scopes
}

// writersOf are the scopes as whose writer a list is written.
func (*simulated) writersOf(p *plan.Plan, l *plan.ListPlan) []int {
	if len(l.Scopes) > 0 {
		return l.Scopes
	}

	var leaving, all []int

	for i := range p.Scopes {
		all = append(all, i)

		if p.Scopes[i].Scope.WatchList == l.Name {
			leaving = append(leaving, i)
		}
	}

	if len(leaving) > 0 {
		return leaving
	}

	return all
}

func (g *simulated) restartRefused(p *plan.Plan, r *plan.Restart) *Refusal {
	needs := authority.InOperatorNamespace(r.List)[1:2]
	if len(r.Evict) == 0 {
		needs = authority.OfInjection(r.Workload.Kind)
	}

	var first *Refusal

	for _, i := range r.Scopes {
		refusal := g.authorizer.OperatorNamespace(p.Scopes[i].Scope, needs)
		if refusal == nil {
			return nil
		}

		if first == nil {
			first = refusal
		}
	}

	return first
}

func needsOfInjection(in *plan.Injection) []rbacv1.PolicyRule {
	return authority.OfInjection(in.Workload.Kind)
}

// roleKeys are the roles that a binding refers to, as objects that the plan may write.
func roleKeys(c *plan.Change) []facts.ProjectedKey {
	return []facts.ProjectedKey{{Kind: projected.Kind(c.RoleRef.Kind), Name: c.RoleRef.Name}}
}

func namespaceOf(role facts.ProjectedKey, c *plan.Change) string {
	if role.Kind.IsClusterScoped() {
		return ""
	}

	return c.Namespace
}

// ownersOf are the scopes whose refusals matter for a role: the scope itself, and for a ClusterRole any of the plan.
func (g *simulated) ownersOf(s *plan.ScopePlan, role facts.ProjectedKey) map[scope.Owner]struct{} {
	owners := map[scope.Owner]struct{}{s.Scope.Owner: {}}

	if role.Kind.IsClusterScoped() {
		for key := range g.refused {
			owners[key.owner] = struct{}{}
		}
	}

	return owners
}

// finish says what became of each scope, by the last plan.
func (g *simulated) finish(p *plan.Plan, before *facts.Facts) {
	for i := range p.Scopes {
		g.out.Scopes = append(g.out.Scopes, g.scopeOf(&p.Scopes[i], before))
	}

	slices.SortStableFunc(g.out.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(place(a.Purpose), place(b.Purpose)), cmp.Compare(a.Owner.String(), b.Owner.String()),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(order(&a), order(&b)), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	slices.SortFunc(g.out.Lists, func(a, b List) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(g.out.Restarts, func(a, b Restart) int {
		return cmp.Or(cmp.Compare(a.Reader(), b.Reader()), cmp.Compare(a.List, b.List))
	})
}

func place(p Purpose) int {
	return slices.Index([]Purpose{Revoked, Granted, Pruned, Retired, Legacy, Orphaned}, p)
}

// scopeOf says what became of a scope by its last plan.
func (g *simulated) scopeOf(s *plan.ScopePlan, before *facts.Facts) ScopePrediction {
	out := ScopePrediction{ScopePlan: s}
	failed := map[string]Refusal{}

	for _, a := range s.Absent {
		failed[a.Namespace] = Absent(a)
	}

	g.refusals(s, failed)

	members := s.Members
	if !s.Scope.Explicit() && !s.Scope.Deleting() {
		g.unlisted(s, failed)

		members = append([]string{s.Scope.OperatorNamespace}, members...)
	}

	for _, m := range members {
		switch _, not := failed[m]; {
		case not:
		case g.isUnread(m):
			out.Unread = append(out.Unread, m)
		default:
			out.Served = append(out.Served, m)
		}
	}

	slices.Sort(out.Served)
	slices.Sort(out.Unread)

	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if _, exists := before.Namespaces[name]; exists || name != "" || s.Everywhere {
			out.Failed = append(out.Failed, FailedMember{Namespace: name, Refusal: failed[name]})
		}
	}

	return out
}

// refusals names the members in which something was refused.
func (g *simulated) refusals(s *plan.ScopePlan, failed map[string]Refusal) {
	for i := range g.out.Changes {
		c := &g.out.Changes[i]
		if c.Refusal == nil || c.Owner != s.Scope.Owner ||
			s.Scope.AllowSubset && !c.Action.TakesAway() && g.isListed(s, c.Namespace) {
			continue
		}

		if _, known := failed[c.Namespace]; !known {
			failed[c.Namespace] = *c.Refusal
		}
	}
}

// isListed says whether the watch list names a member in the end.
func (g *simulated) isListed(s *plan.ScopePlan, namespace string) bool {
	list := g.facts.OperatorNamespace.ConfigMaps[s.Scope.WatchList].List

	return slices.Contains(strings.Split(list, ","), namespace)
}

// unlisted names the members that the watch list would not, although they are in order: because the list may not be written, or
// because of another scope that shares it.
func (g *simulated) unlisted(s *plan.ScopePlan, failed map[string]Refusal) {
	if refusal, barred := g.barred[s.Scope.Owner]; barred {
		failed[s.Scope.OperatorNamespace] = refusal

		return
	}

	for i := range g.out.Lists {
		if l := &g.out.Lists[i]; l.Name == s.Scope.WatchList && l.Refusal != nil {
			failed[s.Scope.OperatorNamespace] = *l.Refusal

			return
		}
	}

	listed := map[string]struct{}{}
	for name := range strings.SplitSeq(g.facts.OperatorNamespace.ConfigMaps[s.Scope.WatchList].List, ",") {
		listed[name] = struct{}{}
	}

	for _, m := range s.Members {
		_, known := failed[m]
		if _, is := listed[m]; !known && !is {
			failed[m] = Refusal{
				Reason:  report.MemberHeldBack,
				Message: "another scope that shares ConfigMap " + s.Scope.WatchList + " could not be served there",
			}
		}
	}
}

// Absent says why a member cannot be served, as status does.
func Absent(a plan.Absent) Refusal {
	switch {
	case a.Closed != "":
		return Refusal{Reason: report.MemberUnauthorized, Message: a.Closed}
	case a.Terminating:
		return Refusal{Reason: report.MemberTerminating, Message: "the namespace is being deleted"}
	default:
		return Refusal{
			Reason: report.MemberNotFound, Message: "the namespace does not exist; it is served as soon as it does",
		}
	}
}

func order(c *Change) int {
	if c.Key.Kind.IsBinding() != c.Action.TakesAway() {
		return 1
	}

	return 0
}
