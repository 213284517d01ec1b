package apply

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Result is what happened to an object.
type Result string

// The results.
const (
	Created    Result = "created"
	Configured Result = "configured"
	Unchanged  Result = "unchanged"
	Deleted    Result = "deleted"
	Failed     Result = "failed"
)

// isWrite says whether something was changed.
func (r Result) isWrite() bool { return r == Created || r == Configured || r == Deleted }

// Outcome is what applying a plan did. Everything that users see is made from it and from the plan.
type Outcome struct {
	// Scopes are in the order of the plan's.
	Scopes []ScopeOutcome
	// Lists are in the order of the plan's.
	Lists []ListOutcome
	// Injections and Webhooks are in the order of the plan's.
	Injections, Webhooks []WriteOutcome
	// Restarts are in the order of the plan's. One of a reader that begins again by an injection is unchanged.
	Restarts []WriteOutcome
	// Late are the writes of earlier plans that were made since, after nobody waited for them any more.
	Late []LateWrite
	// Objects are those that no scope is compiled from: InstallPlans, and what these install.
	Objects []WriteOutcome
	// Barred are the scopes for which nothing enters the watch list that they share, and why.
	Barred map[scope.Owner]error
	// Orphans are what was done about objects whose scope is gone.
	Orphans ScopeOutcome
	// PruneAt is when the first of what was not pruned, because it waits for its list, is pruned all the same; zero where nothing
	// waits.
	PruneAt time.Time
}

// ScopeOutcome counts what was done for a scope and keeps what failed.
type ScopeOutcome struct {
	// Nobody says why there is no identity to write as; empty when there is one.
	Nobody   string
	Results  map[Result]int
	Failures []Failure
	// Untried are the bindings that were not tried because their role could not be written, with what they lack themselves where
	// that is known. They are no failures of their own.
	Untried []Failure
}

// Failure is a change that could not be made.
type Failure struct {
	Change *plan.Change
	Class  Class
	Err    error
}

// WriteOutcome is what became of one write. A write into an object of somebody else's that waits for its list is unchanged.
type WriteOutcome struct {
	Result Result
	Err    error
}

// Is says whether the write failed with an error of a class.
func (o *WriteOutcome) Is(class Class) bool { return o.Err != nil && Classify(o.Err) == class }

// ListOutcome is the result of a watch list.
type ListOutcome struct {
	WriteOutcome

	Write plan.ListWrite
}

// List is the result of the watch list of a plan with this name; nil where there is none, or nothing was done about it yet.
func (o *Outcome) List(p *plan.Plan, name string) *ListOutcome {
	for i := range o.Lists {
		if p.Lists[i].Name == name {
			return &o.Lists[i]
		}
	}

	return nil
}

// Written says whether the ConfigMap holds what it should.
func (o *ListOutcome) Written() bool {
	return o.Err == nil && o.Write.Action != plan.BlockedList
}

// failures are those of all scopes, and of scopes that are gone.
func (o *Outcome) failures() []Failure {
	var failures []Failure
	for i := range o.Scopes {
		failures = append(failures, o.Scopes[i].Failures...)
	}

	return append(failures, o.Orphans.Failures...)
}

// inOperatorNamespace are the writes there, but for those of permissions.
func (o *Outcome) inOperatorNamespace() []WriteOutcome {
	writes := collect.Map(o.Lists, func(l ListOutcome) WriteOutcome { return l.WriteOutcome })

	return slices.Concat(writes, o.Injections, o.Webhooks, o.Restarts)
}

// Wrote says whether anything in the cluster was changed.
func (o *Outcome) Wrote() bool {
	changed := func(s ScopeOutcome) bool {
		return s.Results[Created]+s.Results[Configured]+s.Results[Deleted] > 0
	}
	wrote := func(w WriteOutcome) bool { return w.Result.isWrite() }

	return slices.ContainsFunc(o.Scopes, changed) || changed(o.Orphans) ||
		slices.ContainsFunc(o.inOperatorNamespace(), wrote) || slices.ContainsFunc(o.Objects, wrote)
}

// Refused returns the namespaces, the operator namespace included, in which something was refused or stood in the way.
func (o *Outcome) Refused(operatorNamespace string) map[string]struct{} {
	refused := map[string]struct{}{}

	for _, f := range o.failures() {
		if f.Class == Refused {
			refused[f.Change.Namespace] = struct{}{}
		}
	}

	isRefused := func(w WriteOutcome) bool { return w.Is(Refused) }
	if len(o.Barred) > 0 || slices.ContainsFunc(o.inOperatorNamespace(), isRefused) {
		refused[operatorNamespace] = struct{}{}
	}

	return refused
}

// Failed says whether anything failed, err included, which is what came after the writes; and returns what may pass by itself,
// which is worth a line in the log. A refusal is reported in status, and a conflict nowhere.
func (o *Outcome) Failed(err error) (failed bool, transient error) {
	for _, e := range o.Errors() {
		if failed = true; Classify(e) == Transient {
			return true, errors.Join(err, e)
		}
	}

	switch {
	case err == nil:
		return failed, nil
	case Classify(err) == Transient:
		return true, err
	default:
		return true, nil
	}
}

// Errors returns every error, those of scopes first.
func (o *Outcome) Errors() []error {
	errs := collect.Map(o.failures(), func(f Failure) error { return f.Err })

	for _, w := range append(o.inOperatorNamespace(), o.Objects...) {
		if w.Err != nil {
			errs = append(errs, w.Err)
		}
	}

	return slices.AppendSeq(errs, maps.Values(o.Barred))
}

func (s *ScopeOutcome) note(c *plan.Change, result Result, err error) Class {
	if s.Results == nil {
		s.Results = map[Result]int{}
	}

	s.Results[result]++

	err = unmade(c, err)

	class := Classify(err)
	if isDangling(c, err) {
		class = Dangling
	}

	if err != nil {
		s.Failures = append(s.Failures, Failure{Change: c, Class: class, Err: err})
	}

	return class
}
