package page

import (
	"cmp"
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

// differences are the changes between two snapshots. Services are sorted already, so both lists are walked once, side by side.
func differences(before, after *Snapshot, now time.Time) []Change {
	d := &difference{now: now, at: map[kind]int{}}
	a, b := before.Services, after.Services

	for len(a) > 0 || len(b) > 0 {
		switch order := compare(a, b); {
		case order < 0:
			d.add(&a[0], a[0].State, "", "")
			a = a[1:]
		case order > 0:
			d.add(&b[0], "", b[0].State, b[0].Reason)
			b = b[1:]
		default:
			if a[0].State != b[0].State || a[0].Reason != b[0].Reason {
				d.add(&b[0], a[0].State, b[0].State, b[0].Reason)
			}

			a, b = a[1:], b[1:]
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

// compare compares the first services of two lists, by the order of overview.New; an empty list comes last.
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

	slices.SortFunc(gone, cmp.Compare[string])

	for _, name := range gone {
		add(name, "gone", "", "", "")
	}

	return out
}
