package predict

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// changeKey tells a change from others, in whichever reconcile it is planned.
type changeKey struct {
	owner     scope.Owner
	namespace string
	key       facts.ProjectedKey
	action    plan.Action
}

// objectKey tells an object from others.
type objectKey struct {
	namespace string
	facts.ProjectedKey
}

// all are the notes of each reconcile key of scopes. Nothing is noted of what is installed.
type all map[scope.Key]*notes

var _ generic.Simulation = all{}

// Facts takes out what the caller may not know.
func (a all) Facts(f *facts.Facts) {
	if n := a[f.Key]; n != nil {
		n.facts(f)
	}
}

// Plan takes out what would be written where nothing could be read.
func (a all) Plan(p *plan.Plan) {
	if n := a[p.Key]; n != nil {
		n.unread.leave(p)
	}
}

// Applied notes what became of a plan.
func (a all) Applied(p *plan.Plan, _ *facts.Facts, out *apply.Outcome) {
	if n := a[p.Key]; n != nil {
		n.note(p, out)
	}
}

// notes are what is reported of several reconciles: what the applier did, and once each what it could not do.
type notes struct {
	in      *Setting
	cluster *simulation.Simulation
	amend   func(f *facts.Facts)
	out     *Prediction
	refused map[changeKey]*Refusal
	// made are the objects that were made, and what they are called, for users.
	made map[objectKey]string
	// unread is known with the first facts.
	unread unread
	// inaccessible are the namespaces that the manager may not read.
	inaccessible map[string]facts.Namespace
	// last is what was planned last for each scope.
	last map[scope.Owner]last
}

// last is a plan of which a scope is a part.
type last struct {
	plan  *plan.Plan
	out   *apply.Outcome
	index int
}

func newNotes(in *Setting, cluster *simulation.Simulation, amend func(f *facts.Facts)) *notes {
	return &notes{
		in: in, cluster: cluster, amend: amend, out: &Prediction{Key: in.Key}, refused: map[changeKey]*Refusal{},
		made: map[objectKey]string{}, last: map[scope.Owner]last{},
	}
}

func (n *notes) facts(f *facts.Facts) {
	n.inaccessible = maps.Clone(f.Namespaces)
	maps.DeleteFunc(n.inaccessible, func(_ string, ns facts.Namespace) bool { return ns.Closed == "" })

	n.amend(f)

	if n.unread == nil {
		n.unread = unreadOf(n.in.Scopes, f)
	}

	n.unread.keep(f)
	maps.Copy(f.Namespaces, n.inaccessible)
}

func (n *notes) note(p *plan.Plan, out *apply.Outcome) {
	failures := map[*plan.Change]*apply.Failure{}

	for i := range out.Scopes {
		for _, of := range [][]apply.Failure{out.Scopes[i].Failures, out.Scopes[i].Untried} {
			for j := range of {
				failures[of[j].Change] = &of[j]
			}
		}
	}

	for i := range p.Scopes {
		s := &p.Scopes[i]
		for _, of := range []struct {
			purpose Purpose
			changes []plan.Change
		}{
			{Revoked, s.Revoke}, {Granted, s.Grant}, {Pruned, s.Prune}, {Retired, s.Retire}, {Legacy, s.Legacy},
		} {
			for j := range of.changes {
				c := &of.changes[j]
				n.noteChange(s, of.purpose, c, failures[c])
			}
		}
	}

	for i := range p.Orphans {
		n.noteChange(nil, Orphaned, &p.Orphans[i], nil)
	}

	n.noteLists(p, out)
	n.noteInjections(p, out)
	n.noteWebhooks(p, out)
	n.noteRestarts(p, out)

	for i := range p.Scopes {
		n.last[p.Scopes[i].Scope.Owner] = last{p, out, i}
	}
}

// noteChange notes a change that was made, or why it was not. What is planned and not tried yet is not noted.
func (n *notes) noteChange(s *plan.ScopePlan, purpose Purpose, c *plan.Change, failure *apply.Failure) {
	noted := Change{Change: *c, Purpose: purpose}
	if s != nil {
		noted.Owner = s.Scope.Owner
	}

	wrote := n.cluster.Wrote(c.Namespace, c.Key)

	switch {
	case failure != nil && failure.Class == apply.Conflict: // The next plan settles it.
		return
	case failure != nil:
		key := changeKey{noted.Owner, c.Namespace, c.Key, c.Action}
		if n.refused[key] != nil {
			return
		}

		noted.Refusal = refusalOf(s, c.Namespace, failure.Err, func() (string, string) { return report.Refused(s, failure) })
		n.refused[key] = noted.Refusal
	case wrote == apply.Unchanged:
		return
	case wrote == apply.Deleted && !c.Action.TakesAway():
		// An object that is to have less, and may not be written, was deleted whole.
		noted.Action, noted.Copy = plan.Delete, nil
	}

	if of := (objectKey{c.Namespace, c.Key}); failure == nil && noted.Action == plan.Create {
		n.made[of] = noted.ShownName()
	} else {
		noted.made = n.made[of]
	}

	n.out.Changes = append(n.out.Changes, noted)
}

// noteLists keeps one note for a list, however often it is written, and one for what was refused of it.
func (n *notes) noteLists(p *plan.Plan, out *apply.Outcome) {
	for i := range p.Lists {
		l, o := &p.Lists[i], &out.Lists[i]
		if o.Err == nil && o.Result == apply.Unchanged && o.Write.Action != plan.BlockedList {
			continue
		}

		note := List{
			Namespace: p.Key.Namespace, Name: l.Name, Before: l.Live.List, After: o.Write.Value,
			Existed: l.Exists, Exists: o.Write.Action != plan.DeleteList,
		}

		if note.Refusal = listRefused(p, l, o); note.Refusal != nil {
			note.After = l.Live.List
		}

		at := slices.IndexFunc(n.out.Lists, func(l List) bool {
			return l.Name == note.Name && (l.Refusal == nil) == (note.Refusal == nil)
		})
		if at < 0 {
			n.out.Lists = append(n.out.Lists, note)
		} else if note.Refusal == nil {
			n.out.Lists[at].After, n.out.Lists[at].Exists = note.After, note.Exists
		}
	}
}

func listRefused(p *plan.Plan, l *plan.ListPlan, o *apply.ListOutcome) *Refusal {
	switch {
	case o.Write.Action == plan.BlockedList:
		return &Refusal{
			Reason:  report.ReasonConfigMapConflict,
			Message: "ConfigMap " + p.Key.Namespace + "/" + l.Name + " is immutable; delete it, or choose another configmapName",
		}
	case o.Err == nil:
		return nil
	}

	return inOperatorNamespace(p, first(l.Scopes), report.ReasonWatchListFailed, o.Err)
}

// noteRestarts keeps one note for a reader of a list: one that is late for a list that changes anyway restarts for the
// change.
func (n *notes) noteRestarts(p *plan.Plan, out *apply.Outcome) {
	for i := range p.Restarts {
		r := &p.Restarts[i]
		if r.Quiet || out.Restarts[i].Result == apply.Unchanged {
			continue
		}

		note := Restart{Restart: *r, Changed: n.listChanges(r.List)}
		if err := out.Restarts[i].Err; err != nil {
			note.Refusal = inOperatorNamespace(p, first(r.Scopes), report.MemberRefused, err)
		}

		at := slices.IndexFunc(n.out.Restarts, func(r Restart) bool { return r.Reader() == note.Reader() && r.List == note.List })
		if at < 0 {
			n.out.Restarts = append(n.out.Restarts, note)
		} else {
			n.out.Restarts[at] = note
		}
	}
}

func (n *notes) listChanges(name string) bool {
	return slices.ContainsFunc(n.out.Lists, func(l List) bool {
		return l.Name == name && l.Refusal == nil && (!l.NamesTheSame() || l.Existed != l.Exists)
	})
}

// noteCollected notes the copies that went with what authorized them.
func (n *notes) noteCollected() {
	for _, obj := range n.cluster.Collected(n.in.Key) {
		o, _ := projected.From(obj)
		note := Change{Purpose: Collected, Change: plan.Change{
			Action: plan.Delete, Namespace: obj.GetNamespace(), Key: facts.ProjectedKey{Kind: o.Kind, Name: o.Name},
		}}
		note.made = n.made[objectKey{note.Namespace, note.Key}]

		for owner := range n.last {
			if owner.Hash() == o.ScopeHash {
				note.Owner = owner
			}
		}

		n.out.Changes = append(n.out.Changes, note)
	}
}

// finish says what became of each scope, by its last plan.
func (n *notes) finish() *Prediction {
	n.noteCollected()

	// In the order of a plan's scopes.
	for _, owner := range slices.SortedFunc(maps.Keys(n.last), scope.Owner.Compare) {
		l := n.last[owner]
		n.out.Scopes = append(n.out.Scopes, n.scopeOf(l.plan, l.out, l.index))
	}

	slices.SortStableFunc(n.out.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(place(a.Purpose), place(b.Purpose)), cmp.Compare(a.Owner.String(), b.Owner.String()),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(order(&a), order(&b)), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	slices.SortFunc(n.out.Lists, func(a, b List) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(n.out.Restarts, func(a, b Restart) int {
		return cmp.Or(cmp.Compare(a.Reader(), b.Reader()), cmp.Compare(a.List, b.List))
	})

	return n.out
}

func place(p Purpose) int {
	return slices.Index([]Purpose{Collected, Revoked, Granted, Pruned, Retired, Legacy, Orphaned}, p)
}

func order(c *Change) int {
	if c.Key.Kind.IsBinding() != c.Action.TakesAway() {
		return 1
	}

	return 0
}

// scopeOf says the result of a scope, in the words of its status.
func (n *notes) scopeOf(p *plan.Plan, out *apply.Outcome, index int) ScopePrediction {
	s := &p.Scopes[index]
	prediction := ScopePrediction{ScopePlan: s}
	served, failed := report.Members(p, out, index)
	why := n.closed(s)

	for _, m := range failed {
		refusal, closed := why[m.Namespace]
		if !closed {
			refusal = Refusal{Reason: m.Reason, Message: m.Message, Missing: n.missing(s, m.Namespace)}
		}

		prediction.Failed = append(prediction.Failed, FailedMember{m.Namespace, refusal})
	}

	for _, name := range served {
		if n.unread.has(name) {
			prediction.Unread = append(prediction.Unread, name)
		} else {
			prediction.Served = append(prediction.Served, name)
		}
	}

	return prediction
}

// closed are the members that the caller may not read, and why: no grant to Ambit helps.
func (n *notes) closed(s *plan.ScopePlan) map[string]Refusal {
	out := map[string]Refusal{}

	for _, a := range s.Absent {
		if _, is := n.inaccessible[a.Namespace]; a.Closed != "" && !is {
			reason, message := report.Absent(a)
			out[a.Namespace] = Refusal{Reason: reason, Message: message}
		}
	}

	return out
}

// missing are the rules that the first refused change of a scope in a namespace lacked.
func (n *notes) missing(s *plan.ScopePlan, namespace string) []rbacv1.PolicyRule {
	for i := range n.out.Changes {
		if c := &n.out.Changes[i]; c.Refusal != nil && c.Owner == s.Scope.Owner && c.Namespace == namespace {
			return c.Refusal.Missing
		}
	}

	return nil
}
