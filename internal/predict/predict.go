package predict

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxPasses bounds how often is planned. The manager needs three passes for anything that is known.
const maxPasses = 20

// Refusal is why something would not be written.
type Refusal struct {
	// Reason is the word that status has for it, Message says it in full.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Missing are the rules that whoever writes lacks.
	Missing []rbacv1.PolicyRule `json:"missing,omitempty"`
}

// Authorizer says what would be refused. Its methods return nil for what would not be.
type Authorizer interface {
	// Change says what is refused of a write into a member; without a scope it is about what is left of one that is gone.
	Change(s *plan.ScopePlan, c *plan.Change) *Refusal
	// OperatorNamespace says what is refused of what needs rights in the scope's own namespace.
	OperatorNamespace(s *scope.Scope, needs []rbacv1.PolicyRule) *Refusal
}

// Prediction is what the manager would do for one operator namespace.
type Prediction struct {
	Key        string
	Scopes     []ScopePrediction
	Changes    []Change
	Lists      []List
	Injections []Injection
	Restarts   []Restart
}

// ScopePrediction is what becomes of a scope.
type ScopePrediction struct {
	*plan.ScopePlan

	// Served are the members that have everything, sorted; the operator namespace is among them where the scope has one.
	Served []string
	// Failed are the members that would not be fully served, sorted.
	Failed []FailedMember
	// Unread are the members of which nothing could be read, sorted. They are taken to stay as they are.
	Unread []string
}

// FailedMember is a member that would not be fully served.
type FailedMember struct {
	Namespace string `json:"namespace"`
	Refusal
}

// Purpose is why an object is written.
type Purpose string

// The purposes.
const (
	Revoked  Purpose = "revoke"
	Granted  Purpose = "grant"
	Pruned   Purpose = "prune"
	Retired  Purpose = "retire"
	Legacy   Purpose = "inherited"
	Orphaned Purpose = "orphan"
)

// Change is one write to one object.
type Change struct {
	plan.Change

	Purpose Purpose
	// Owner is the scope that asks for it; the zero Owner where that is gone.
	Owner   scope.Owner
	Refusal *Refusal
}

// List is what becomes of a watch list.
type List struct {
	Name string
	// Action is what is done first. Before and After are the lists; Existed and Exists say whether there is a ConfigMap.
	Action          plan.ListAction
	Before, After   string
	Existed, Exists bool
	Refusal         *Refusal
}

// Injection is a write into an operator.
type Injection struct {
	Target  string
	Action  plan.InjectAction
	Owner   scope.Owner
	Refusal *Refusal
	// Webhook says that it limits a webhook configuration to Members, or takes that back where there are none.
	Webhook bool
	Members []string
	// Rolls says that pods begin anew by it. Spec is what is applied, and Patch what is changed besides.
	Rolls bool
	Spec  injection.Spec
	Patch []injection.Op
}

// Restart is a reader that begins anew.
type Restart struct {
	plan.Restart

	// Changed says that the list changes; otherwise the reader is late for the list as it is.
	Changed bool
	Refusal *Refusal
}

// Of plays the plans of one operator namespace forward. The facts are not changed.
func Of(scopes []scope.Scope, f *facts.Facts, authorizer Authorizer) *Prediction {
	g := &simulated{
		facts: copyOf(f), authorizer: authorizer, out: &Prediction{Key: f.OperatorNamespace.Name},
		refused: map[changeKey]*Refusal{}, reported: map[string]struct{}{}, unread: map[string]struct{}{},
	}
	g.keepUnread(scopes)
	scopes = g.bar(scopes)

	var last plan.Plan

	for range maxPasses {
		last = plan.New(scopes, g.facts)

		if g.pass(&last) {
			continue
		}

		if last.Again.IsZero() || !last.Again.After(g.facts.Now) {
			break
		}

		g.facts.Now = last.Again
	}

	g.webhooks(&last)
	g.finish(&last, f)

	return g.out
}

// Empty says whether nothing would be done.
func (f *Prediction) Empty() bool {
	return len(f.Changes) == 0 && len(f.Lists) == 0 && len(f.Restarts) == 0 && len(f.Injections) == 0
}

// Refused says whether something would be refused.
func (f *Prediction) Refused() bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Refusal != nil }) ||
		slices.ContainsFunc(f.Lists, func(l List) bool { return l.Refusal != nil }) ||
		slices.ContainsFunc(f.Injections, func(i Injection) bool { return i.Refusal != nil }) ||
		slices.ContainsFunc(f.Restarts, func(r Restart) bool { return r.Refusal != nil })
}

type changeKey struct {
	owner     scope.Owner
	namespace string
	key       facts.ProjectedKey
	action    plan.Action
}

// simulated is one playing forward.
type simulated struct {
	facts      *facts.Facts
	authorizer Authorizer
	out        *Prediction
	// refused are the changes that would be, which every pass plans again. told are the injections and lists that were noted.
	refused  map[changeKey]*Refusal
	reported map[string]struct{}
	// barred are the scopes for which nothing enters the list that they share.
	barred map[scope.Owner]Refusal
	// unread are the members of which nothing is known.
	unread map[string]struct{}
	// version is larger with each write.
	version uint64
}

// pass notes what a plan would write, and writes it into the facts. It says whether anything was written.
func (g *simulated) pass(p *plan.Plan) bool {
	wrote := false

	for i := range p.Scopes {
		wrote = g.changes(&p.Scopes[i], Revoked, p.Scopes[i].Revoke) || wrote
		wrote = g.changes(&p.Scopes[i], Granted, p.Scopes[i].Grant) || wrote
	}

	wrote = g.lists(p) || wrote
	g.injections(p)

	for i := range p.Scopes {
		wrote = g.changes(&p.Scopes[i], Pruned, p.Scopes[i].Prune) || wrote
		wrote = g.changes(&p.Scopes[i], Retired, p.Scopes[i].Retire) || wrote
		wrote = g.changes(&p.Scopes[i], Legacy, p.Scopes[i].Legacy) || wrote
	}

	for i := range p.Orphans {
		// Where Ambit itself may write nothing, what is left of a scope that is gone stays.
		if g.authorizer.Change(nil, &p.Orphans[i]) == nil {
			g.note(Change{Change: p.Orphans[i], Purpose: Orphaned})

			wrote = true
		}
	}

	return g.restarts(p) || wrote
}

func (g *simulated) changes(s *plan.ScopePlan, purpose Purpose, changes []plan.Change) bool {
	wrote := false

	for i := range changes {
		c := &changes[i]
		key := changeKey{s.Scope.Owner, c.Namespace, c.Key, c.Action}

		if _, known := g.refused[key]; known || g.isUnread(c.Namespace) {
			continue
		}

		refusal := g.authorizer.Change(s, c)
		if refusal == nil {
			refusal = g.roleRefused(s, c)
		}

		if refusal != nil {
			g.refused[key] = refusal
			g.out.Changes = append(g.out.Changes, Change{Change: *c, Purpose: purpose, Owner: s.Scope.Owner, Refusal: refusal})

			continue
		}

		g.note(Change{Change: *c, Purpose: purpose, Owner: s.Scope.Owner})

		wrote = true
	}

	return wrote
}

// roleRefused says whether the role that a binding refers to would be refused: then the manager does not try the binding.
func (g *simulated) roleRefused(s *plan.ScopePlan, c *plan.Change) *Refusal {
	if c.Copy == nil || !c.Key.Kind.IsBinding() {
		return nil
	}

	for _, action := range []plan.Action{plan.Create, plan.Update} {
		for _, role := range roleKeys(c) {
			for owner := range g.ownersOf(s, role) {
				if r := g.refused[changeKey{owner, namespaceOf(role, c), role, action}]; r != nil {
					return r
				}
			}
		}
	}

	return nil
}

// resolve says what is written to a list, by what was refused in members.
func (g *simulated) resolve(p *plan.Plan, l *plan.ListPlan) plan.ListWrite {
	return l.Resolve(
		func(index int, namespace string) bool { return g.misses(&p.Scopes[index], namespace) },
		func(index int, namespace string) bool { return g.refusedIn(&p.Scopes[index], namespace) })
}

func (g *simulated) lists(p *plan.Plan) bool {
	wrote := false

	for i := range p.Lists {
		l := &p.Lists[i]
		w := g.resolve(p, l)
		if w.Action == plan.KeepList {
			continue
		}

		before := g.facts.OperatorNamespace.ConfigMaps[l.Name]
		note := List{
			Name: l.Name, Action: w.Action, Before: before.List, After: w.Value, Existed: l.Exists,
			Exists: w.Action != plan.DeleteList,
		}

		if note.Refusal = g.listRefused(p, l, w); note.Refusal != nil {
			if g.report("list " + l.Name + w.Value) {
				note.After = before.List
				g.out.Lists = append(g.out.Lists, note)
			}

			continue
		}

		g.writeList(l.Name, w)
		g.noteList(note)

		wrote = true
	}

	return wrote
}

// noteList keeps one note for a list, however often it is written.
func (g *simulated) noteList(note List) {
	at := slices.IndexFunc(g.out.Lists, func(l List) bool { return l.Name == note.Name })
	if at < 0 {
		g.out.Lists = append(g.out.Lists, note)

		return
	}

	g.out.Lists[at].After, g.out.Lists[at].Exists = note.After, note.Exists
}

// misses says whether something would be missing in a member in the end: a refusal, unless the scope allows a subset.
func (g *simulated) misses(s *plan.ScopePlan, namespace string) bool {
	if s.Scope.AllowSubset && !s.IsBare(namespace) {
		return false
	}

	return g.refusedIn(s, namespace)
}

// refusedIn says whether something would be refused in a member.
func (g *simulated) refusedIn(s *plan.ScopePlan, namespace string) bool {
	for key := range g.refused {
		if key.owner == s.Scope.Owner && key.namespace == namespace && !key.action.TakesAway() {
			return true
		}
	}

	return false
}

func (g *simulated) injections(p *plan.Plan) {
	for i := range p.Injections {
		in := &p.Injections[i]
		if !g.report("injection " + in.Target()) {
			continue
		}

		note := Injection{Target: in.Target(), Action: in.Action, Rolls: in.Rolls(), Spec: in.Spec, Patch: in.Patch}
		if in.Scope >= 0 {
			note.Owner = p.Scopes[in.Scope].Scope.Owner
			note.Refusal = g.authorizer.OperatorNamespace(p.Scopes[in.Scope].Scope, needsOfInjection(in))
		}

		g.out.Injections = append(g.out.Injections, note)
	}
}

func (g *simulated) restarts(p *plan.Plan) bool {
	wrote := false

	for i := range p.Restarts {
		r := &p.Restarts[i]
		if !g.report("restart " + r.Reader() + " " + r.Hash()) {
			continue
		}

		if !r.Quiet {
			g.noteRestart(Restart{Restart: *r, Changed: g.listChanges(r.List), Refusal: g.restartRefused(p, r)})
		}

		g.restart(r)

		wrote = true
	}

	return wrote
}

// noteRestart keeps one note for a reader: one that is late for a list that changes anyway begins anew for the change.
func (g *simulated) noteRestart(note Restart) {
	at := slices.IndexFunc(g.out.Restarts, func(r Restart) bool { return r.Reader() == note.Reader() && r.List == note.List })
	if at < 0 {
		g.out.Restarts = append(g.out.Restarts, note)
	} else {
		g.out.Restarts[at] = note
	}
}

func (g *simulated) listChanges(name string) bool {
	return slices.ContainsFunc(g.out.Lists, func(l List) bool {
		return l.Name == name && l.Refusal == nil && (l.Before != l.After || l.Existed != l.Exists)
	})
}

// report says whether something was not told before.
func (g *simulated) report(what string) bool {
	_, known := g.reported[what]
	g.reported[what] = struct{}{}

	return !known
}

// note takes a change into the prediction and into the facts.
func (g *simulated) note(c Change) {
	g.out.Changes = append(g.out.Changes, c)
	g.write(&c.Change, c.Purpose)
}
