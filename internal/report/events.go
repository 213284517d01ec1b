package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// Event is one event about a scope.
type Event struct {
	// Warning says that somebody should look.
	Warning bool
	// Reason is one of Events; Action what Ambit was doing, in one word; Message what happened, and to what.
	Reason, Action, Message string
}

// EventsOf returns what to tell about the scope with this index: the difference between two statuses, and the restarts.
// One event speaks of all namespaces, so that a thousand new members are not a thousand events.
func EventsOf(p *plan.Plan, out *apply.Outcome, index int, before, after *operatorv1.NamespaceScopeStatus) []Event {
	var events []Event

	if added := without(after.ValidatedMembers, before.ValidatedMembers); len(added) > 0 {
		events = append(events, Event{
			Reason: EventNamespaceAdded, Action: "Project", Message: "added to the watch list: " + some(added),
		})
	}

	if removed := without(before.ValidatedMembers, after.ValidatedMembers); len(removed) > 0 {
		events = append(events, Event{
			Reason: EventNamespaceRemoved, Action: "Prune", Message: "removed from the watch list: " + some(removed),
		})
	}

	if refused := without(after.UnprojectedRoles, before.UnprojectedRoles); len(refused) > 0 {
		events = append(events, Event{
			Warning: true, Reason: EventRoleNotProjected, Action: "Project",
			Message: fmt.Sprintf("%d roles could not be projected, among them %s", len(refused), refused[0]),
		})
	}

	is := meta.FindStatusCondition(after.Conditions, ConditionReady)
	was := meta.FindStatusCondition(before.Conditions, ConditionReady)

	if is != nil && is.Reason == ReasonAuthorizationRequired && (was == nil || was.Reason != is.Reason) {
		events = append(events, Event{
			Warning: true, Reason: EventAuthorizationRequired, Action: "Project", Message: is.Message,
		})
	}

	return append(events, restartEvents(p, out, index)...)
}

func restartEvents(p *plan.Plan, out *apply.Outcome, index int) []Event {
	var events []Event

	for i := range p.Restarts {
		r := &p.Restarts[i]
		if !slices.Contains(r.Scopes, index) {
			continue
		}

		if err := out.Restarts[i].Err; err != nil {
			events = append(events, Event{
				Warning: true, Reason: EventRestartFailed, Action: "Restart", Message: shorten(err),
			})

			continue
		}

		events = append(events, Event{
			Reason: EventWorkloadRestarted, Action: "Restart",
			Message: fmt.Sprintf("%s restarted: the watch list in ConfigMap %s changed", r.Reader(), r.List),
		})
	}

	return events
}

// without returns what is in a and not in b. Both are sorted.
func without(a, b []string) []string {
	var out []string

	for _, s := range a {
		if _, found := slices.BinarySearch(b, s); !found {
			out = append(out, s)
		}
	}

	return out
}
