package predict

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// Refusal is why something would not be written.
type Refusal struct {
	// Reason is the word that status has for it, Message says it in full.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Missing are the rules that whoever writes lacks.
	Missing []rbacv1.PolicyRule `json:"missing,omitempty"`
}

// Prediction is what the manager would do for one reconcile key.
type Prediction struct {
	Key        scope.Key
	Scopes     []ScopePrediction
	Changes    []Change
	Lists      []List
	Injections []Injection
	Restarts   []Restart
	// Unknown is why it is not known what the manager would do; nil where it is. Nothing else is said then.
	Unknown error
}

// ScopePrediction is the result of a scope.
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
	Legacy   Purpose = "legacy"
	Orphaned Purpose = "orphan"
	// Collected is that of copies which Ambit does not delete: the garbage collector does, with what authorized them. Where another
	// authorization remains that does not suffice alone, and the account has the rest from elsewhere, Ambit may give them to that
	// before. The prediction is the worse of the two: that the garbage collector is faster.
	Collected Purpose = "collect"
)

// Change is one write to one object.
type Change struct {
	plan.Change

	Purpose Purpose
	// Owner is the scope that asks for it; the zero Owner where that is gone.
	Owner   scope.Owner
	Refusal *Refusal
	// made is what the object is called, for users, if this prediction makes it.
	made string
}

// ShownName is what the object is called, for users. One that the same prediction makes before it changes or deletes it has no
// name yet.
func (c *Change) ShownName() string {
	if c.made != "" {
		return c.made
	}

	return c.Change.ShownName()
}

// List is the result of a watch list.
type List struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Before and After are the lists; Existed and Exists say whether there is a ConfigMap.
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Existed bool     `json:"existed"`
	Exists  bool     `json:"exists"`
	Refusal *Refusal `json:"refused,omitempty"`
}

// NamesTheSame says whether the list names the same namespaces before and after: IBM's operator writes them in any order.
func (l *List) NamesTheSame() bool {
	return sets.New(strings.Split(l.Before, ",")...).Equal(sets.New(strings.Split(l.After, ",")...))
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
	// Rolls says that pods restart by it. Spec is what is applied, and Patch what is changed besides.
	Rolls bool
	Spec  injection.Spec
	Patch []injection.Op
}

// Restart is a reader that restarts.
type Restart struct {
	plan.Restart

	// Changed says that the list changes; otherwise the reader is late for the list as it is.
	Changed bool
	Refusal *Refusal
}

// Why says in words why it restarts.
func (r *Restart) Why() string {
	if r.Changed {
		return "it reads ConfigMap " + r.List + ", whose list changes"
	}

	return "it began before the list in ConfigMap " + r.List + " was written"
}

// Setting is a reconcile key with its scopes.
type Setting struct {
	Key    scope.Key
	Scopes []scope.Scope
}

// Of lets the manager's reconcilers serve the scopes of operator namespaces, and whatever installs has keys for, until nothing is
// left to do. amend takes out of facts what the caller may not know. A namespace that cannot be played forward keeps no other
// from being predicted; where none can be, that is an error.
func Of(
	ctx context.Context, in *simulation.Simulation, scopes []Setting, amend func(f *facts.Facts), installs ...scope.Key,
) ([]*Prediction, error) {
	all, keys := all{}, slices.Clone(installs)

	for i := range scopes {
		all[scopes[i].Key] = newNotes(&scopes[i], in, amend)
		keys = append(keys, scopes[i].Key)
	}

	in.Looks = all
	if err := in.Run(ctx, keys); err != nil {
		return nil, err
	}

	unserved := in.Unserved
	if known := func(key scope.Key) bool { return unserved[key] == nil }; !slices.ContainsFunc(keys, known) {
		return nil, errors.Join(slices.Collect(maps.Values(unserved))...)
	}

	out := make([]*Prediction, len(scopes))
	for i := range scopes {
		if out[i] = all[scopes[i].Key].finish(); unserved[scopes[i].Key] != nil {
			out[i] = &Prediction{Key: scopes[i].Key, Unknown: unserved[scopes[i].Key]}
		}
	}

	return out, nil
}

// Empty says whether nothing would be done.
func (f *Prediction) Empty() bool {
	return len(f.Changes) == 0 && len(f.Lists) == 0 && len(f.Restarts) == 0 && len(f.Injections) == 0
}

// Refused says whether something would be refused.
func (f *Prediction) Refused() bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.Refusal != nil }) || f.RefusedToOperators()
}

// RefusedToOperators says whether something would be refused that is written for operators: their lists, injections and restarts.
func (f *Prediction) RefusedToOperators() bool {
	return slices.ContainsFunc(f.Lists, func(l List) bool { return l.Refusal != nil }) ||
		slices.ContainsFunc(f.Injections, func(i Injection) bool { return i.Refusal != nil }) ||
		slices.ContainsFunc(f.Restarts, func(r Restart) bool { return r.Refusal != nil })
}
