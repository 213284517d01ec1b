package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// order is the usual order of verbs; others follow.
var order = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// String is the table in Markdown. Resources of one group with the same rights share a row.
func (r rights) String() string {
	resources := slices.SortedFunc(maps.Keys(r), func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name))
	})

	type row struct {
		group, cells string
		names        []string
	}

	var rows []*row

	for _, of := range resources {
		cells := r.cells(of)

		i := slices.IndexFunc(rows, func(known *row) bool { return known.group == of.group && known.cells == cells })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &row{group: of.group, cells: cells})
		}

		rows[i].names = append(rows[i].names, "`"+of.name+"`")
	}

	var b strings.Builder

	fmt.Fprintf(&b, "| API group | Resources | `%s` |\n", strings.Join(names, "` | `"))
	fmt.Fprintf(&b, "|---|---|%s\n", strings.Repeat("---|", len(names)))

	for _, line := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cmp.Or(line.group, "core"), strings.Join(line.names, ", "), line.cells)
	}

	return b.String()
}

func (r rights) cells(of resource) string {
	cells := make([]string, 0, len(names))

	for _, profile := range names {
		var parts []string

		for _, everywhere := range []bool{true, false} {
			own, asOthers := apart(r[of][where{profile, everywhere}])
			place := map[bool]string{true: "all", false: "own"}[everywhere]

			if len(own) > 0 {
				parts = append(parts, place+": "+inOrder(own))
			}

			if len(asOthers) > 0 {
				parts = append(parts, place+", as a delegate: "+inOrder(asOthers))
			}
		}

		cells = append(cells, cmp.Or(strings.Join(parts, "; "), "–"))
	}

	return strings.Join(cells, " | ")
}

// onBehalf is the prefix of the verbs that somebody who impersonates a service account needs for what they do as it, beside the
// right to impersonate it (KEP-5284, k8s.io/apiserver/pkg/endpoints/filters/impersonation).
const onBehalf = "impersonate-on:serviceaccount:"

// apart separates the verbs of an account's own requests from those of its requests as another account.
func apart(verbs []string) (own, asOthers []string) {
	for _, verb := range verbs {
		if on, is := strings.CutPrefix(verb, onBehalf); is {
			asOthers = append(asOthers, on)
		} else {
			own = append(own, verb)
		}
	}

	return own, asOthers
}

func inOrder(verbs []string) string {
	place := func(verb string) int {
		if i := slices.Index(order, verb); i >= 0 {
			return i
		}

		return len(order)
	}
	verbs = slices.Clone(verbs)
	slices.SortStableFunc(verbs, func(a, b string) int { return place(a) - place(b) })

	return strings.Join(verbs, ", ")
}
