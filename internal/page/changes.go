package page

import (
	"iter"
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// maxChanges is how many changes are remembered.
const maxChanges = 500

// Change is a difference of operators in namespaces, or of a scope as a whole, between two snapshots.
type Change struct {
	Time  time.Time `json:"time"`
	Scope string    `json:"scope"`
	// From and To are states, of operators in namespaces; empty where there is none, because a namespace joins or leaves. For a
	// scope as a whole, they are the status of its condition Ready; if the scope was deleted, From is "gone" and To is empty.
	From string `json:"from"`
	To   string `json:"to"`
	// Reason is why it is not fully served.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Operators and Namespaces are what the change is about; none for a scope as a whole.
	Operators  []string `json:"operators"`
	Namespaces []string `json:"namespaces"`
}

// kind is what changes have in common that become one.
type kind struct{ scope, from, to, reason string }

// differences are the changes between two snapshots.
func differences(before, after *Snapshot, now time.Time) []Change {
	d := &difference{now: now, at: map[kind]int{}}

	for was, is := range sideBySide(before.Services, after.Services) {
		switch {
		case is == nil:
			d.add(was, was.State, "", "")
		case was == nil:
			d.add(is, "", is.State, is.Reason)
		case was.State != is.State || was.Reason != is.Reason:
			d.add(is, was.State, is.State, is.Reason)
		}
	}

	for i := range d.changes {
		c := &d.changes[i]
		slices.Sort(c.Operators)
		slices.Sort(c.Namespaces)
		c.Operators, c.Namespaces = slices.Compact(c.Operators), slices.Compact(c.Namespaces)
	}

	return append(d.changes, scopeDifferences(before.Scopes, after.Scopes, now)...)
}

type difference struct {
	now     time.Time
	at      map[kind]int
	changes []Change
}

func (d *difference) add(s *overview.Service, from, to overview.State, reason string) {
	k := kind{s.Scope, string(from), string(to), reason}

	at, known := d.at[k]
	if !known {
		at = len(d.changes)
		d.at[k] = at
		d.changes = append(d.changes, Change{
			Time: d.now, Scope: s.Scope, From: string(from), To: string(to), Reason: reason, Operators: []string{}, Namespaces: []string{},
		})
	}

	c := &d.changes[at]
	if last := len(c.Operators) - 1; last < 0 || c.Operators[last] != s.Operator.String() {
		c.Operators = append(c.Operators, s.Operator.String())
	}

	c.Namespaces = append(c.Namespaces, s.Namespace)
}

// sideBySide are the services of two lists in pairs, nil for one that the other list alone has. Both lists are in the order of
// overview.New, so they are walked once.
func sideBySide(a, b []overview.Service) iter.Seq2[*overview.Service, *overview.Service] {
	return func(yield func(was, is *overview.Service) bool) {
		for len(a) > 0 || len(b) > 0 {
			var was, is *overview.Service

			order := compare(a, b)
			if order <= 0 {
				was, a = &a[0], a[1:]
			}

			if order >= 0 {
				is, b = &b[0], b[1:]
			}

			if !yield(was, is) {
				return
			}
		}
	}
}

// compare compares the first services of two lists; an empty list comes last.
func compare(a, b []overview.Service) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return overview.Compare(&a[0], &b[0])
	}
}

// scopeDifferences are scopes that come, go, or become ready or otherwise.
func scopeDifferences(before, after []overview.Scope, now time.Time) []Change {
	type id struct{ name, group string }

	known := map[id]*overview.Scope{}
	for i := range before {
		known[id{before[i].Name, before[i].Group}] = &before[i]
	}

	var out []Change

	add := func(name, from, to, reason, message string) {
		out = append(out, Change{
			Time: now, Scope: name, From: from, To: to, Reason: reason, Message: message, Operators: []string{}, Namespaces: []string{},
		})
	}

	for i := range after {
		s := &after[i]
		key := id{s.Name, s.Group}

		switch was := known[key]; {
		case was == nil:
			add(s.Name, "", s.Ready, s.Reason, s.Message)
		case was.Ready != s.Ready || was.Reason != s.Reason:
			add(s.Name, was.Ready, s.Ready, s.Reason, s.Message)
		}

		delete(known, key)
	}

	gone := make([]string, 0, len(known))
	for key := range known {
		gone = append(gone, key.name)
	}

	slices.Sort(gone)

	for _, name := range gone {
		add(name, "gone", "", "", "")
	}

	return out
}
