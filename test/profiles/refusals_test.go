package profiles_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// excuse is a kind of refusal that tests of the suite provoke, or that nobody can avoid.
type excuse struct {
	why   string
	holds func(*request) bool
}

// excuses are those of a profile.
func excuses(profile string, requests []request) []excuse {
	h := historyOf(requests)

	all := []excuse{{
		"nothing new is taken in by a namespace that ends, and Ambit may not know yet that it does",
		func(r *request) bool {
			return !r.unauthorized && h.ending(r) && strings.Contains(r.message, "because it is being terminated")
		},
	}}

	if profile == "delegated" {
		all = append(all, excuse{
			"what a group leaves behind goes with the garbage collector, who may be slower than Ambit looks for it",
			func(r *request) bool {
				return r.actingAs == "" && r.verb == "delete" && r.resource == "clusterroles" && strings.HasPrefix(r.name, "olm.og.")
			},
		})
	}

	if profile != "namespaced" {
		return append(all, excuse{
			"before an account is told what it lacks, the API server's own words are asked for, in a dry run", func(r *request) bool {
				return strings.HasSuffix(r.actingAs, ":installer") && strings.Contains(r.uri, "dryRun=All")
			},
		}, excuse{
			"a test takes all rights from an account called writer", func(r *request) bool {
				return strings.HasSuffix(r.actingAs, ":writer")
			},
		}, excuse{
			"a test deletes a scope whose account never was; its list is another's to take back", func(r *request) bool {
				return strings.HasSuffix(r.actingAs, ":absent")
			},
		})
	}

	return append(all,
		excuse{
			"a namespace that ends loses its RBAC before it is gone, and Ambit has no other way to know that it ends",
			func(r *request) bool { return h.ending(r) && r.namespace != "" },
		},
		excuse{
			"Ambit asks now and then whether it was let into a namespace that a scope names", func(r *request) bool {
				return !h.open(r) && slices.Contains([]string{"roles", "rolebindings"}, r.resource) && r.verb == "list"
			},
		},
	)
}

// history is what happened to namespaces: when they were asked to end, and when their owners let Ambit in.
type history struct{ ended, opened map[string][]time.Time }

// learns is how long the API server's authorizer may take to know of a new grant.
const learns = 4 * time.Second

func historyOf(requests []request) history {
	h := history{ended: map[string][]time.Time{}, opened: map[string][]time.Time{}}
	byOwner := (&grant.Grant{To: embedded.Namespace}).Name()

	for i := range requests {
		r := &requests[i]

		switch {
		case r.refused:
		case r.verb == "delete" && r.resource == "namespaces":
			h.ended[r.name] = append(h.ended[r.name], r.at)
		case r.verb == "create" && r.resource == "rolebindings" && r.name == byOwner:
			h.opened[r.namespace] = append(h.opened[r.namespace], r.at)
		}
	}

	return h
}

// inMember are Ambit's requests about namespaces that let it in.
func inMember(requests []request) func(*request) bool {
	h := historyOf(requests)

	return func(r *request) bool { return r.user == ambit && len(h.opened[r.namespace]) > 0 }
}

// ending says whether the namespace of a request had been asked to end by then, and was not there anew.
func (h history) ending(r *request) bool {
	ended := last(h.ended[r.namespace], r.at)

	return !ended.IsZero() && last(h.opened[r.namespace], r.at).Before(ended)
}

// open says whether Ambit had been let into the namespace of a request by then.
func (h history) open(r *request) bool {
	opened := last(h.opened[r.namespace], r.at.Add(-learns))

	return !opened.IsZero() && last(h.ended[r.namespace], r.at).Before(opened)
}

// last is the last of times before another; zero when there is none.
func last(times []time.Time, before time.Time) time.Time {
	var out time.Time

	for _, t := range times {
		if t.Before(before) && t.After(out) {
			out = t
		}
	}

	return out
}

// refusals says of each refusal of Ambit, or of an account that it acts as, that nothing excuses.
func refusals(requests []request, excused []excuse) []string {
	return told("refused: ", requests, func(r *request) bool {
		return r.user == ambit && r.refused && !slices.ContainsFunc(excused, func(e excuse) bool { return e.holds(r) })
	})
}

// clusterWide says of each request about the whole cluster, of an Ambit that should not make any. It may ask about itself,
// and what the API server serves: everybody may.
func clusterWide(requests []request) []string {
	return told("about the whole cluster: ", requests, func(r *request) bool {
		// The log has a namespace itself as one of its own objects.
		inside := r.namespace != "" && r.resource != "namespaces"

		return r.user == ambit && !inside && r.resource != "" && !strings.HasPrefix(r.resource, "selfsubject")
	})
}

// told puts requests into words, those that are alike into one line.
func told(what string, requests []request, which func(*request) bool) []string {
	times := map[string]int{}

	for i := range requests {
		if r := &requests[i]; which(r) {
			times[r.String()]++
		}
	}

	out := make([]string, 0, len(times))
	for _, words := range slices.Sorted(maps.Keys(times)) {
		out = append(out, fmt.Sprintf("%s%s (%d times)", what, words, times[words]))
	}

	return out
}
