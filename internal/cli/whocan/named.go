package whocan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/printable"
)

const (
	// maxNamed is how many bindings are noted that are about some objects alone, and maxWords how many holders, and how many
	// objects, a note names.
	maxNamed = 10
	maxWords = 3
)

// noteNamed says who may do what is asked with some objects alone. Whoever hears that nobody may read Secrets would not think of
// somebody who may read the only one.
func (d *Data) noteNamed(bindings [][]explain.Entry) {
	d.named = len(bindings) > 0

	for i, holders := range bindings {
		if i == maxNamed {
			d.Notes = append(d.Notes, fmt.Sprintf("%d more bindings give it for objects of some names alone", len(bindings)-i))

			return
		}

		who := make([]string, 0, len(holders))
		for j := range holders {
			who = append(who, printable.Title(holders[j].Kind, printableNamespace(&holders[j]), holders[j].Name))
		}

		var names []string
		for _, rule := range holders[0].Right.Rules {
			names = append(names, printable.Names(rule.ResourceNames)...)
		}

		d.Notes = append(d.Notes, fmt.Sprintf("%s gives it to %s for objects of some names alone: %s", holders[0].Right.Binding,
			printable.Some(who, maxWords), printable.Some(names, maxWords)))
	}
}

// noteAlike says who else may do what comes to the same: whoever asks who may get Secrets wants to know who reads them, and the
// page asks so for "read". ask says who may do something.
func (d *Data) noteAlike(ask func(*explain.Question) []explain.Entry) {
	var who []string

	questions, does := d.Question.Alike()
	verbs := make([]string, 0, len(questions))

	for _, q := range questions {
		verbs = append(verbs, q.Verb)

		for _, other := range ask(&q) {
			isSame := func(h explain.Entry) bool {
				return h.Kind == other.Kind && h.Namespace == other.Namespace && h.Name == other.Name
			}
			if !slices.ContainsFunc(d.Holders, isSame) {
				who = append(who, printable.Title(other.Kind, printableNamespace(&other), other.Name))
			}
		}
	}

	slices.Sort(who)

	if who = slices.Compact(who); len(who) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s may %s them, %s; ask about that to see by which bindings",
			printable.Some(who, maxNamed), strings.Join(slices.Compact(verbs), " or "), does))
	}
}
