package report

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// TemplateEvents returns the events of a template: the difference between two statuses.
func TemplateEvents(before, after *operatorsv1alpha1.ScopeTemplateStatus) []Event {
	return slices.Concat(
		about(without(after.ClusterRoles, before.ClusterRoles),
			Event{Reason: EventClusterRolesCreated, Action: "Template", Message: "created: "}),
		about(without(before.ClusterRoles, after.ClusterRoles),
			Event{Reason: EventClusterRolesDeleted, Action: "Template", Message: "deleted: "}),
		turned("Template", ConditionTemplated, before.Conditions, after.Conditions))
}

// InstanceEvents returns the events of the instance whose scope has this index: what its plan brought, and what its
// status says that it did not say before.
func InstanceEvents(
	p *plan.Plan, out *apply.Outcome, index int, to Referred, before, after *operatorsv1alpha1.ScopeInstanceStatus,
) []Event {
	in := newInstance(p, out, index, to)

	var events []Event

	// While a ClusterRole is missing, nothing is bound completely; this is reported once everything is.
	if !in.roles {
		events = append(events, placesEvent(EventBound, "Bind", "bound in ", in.whereAll(in.Grant, func(c *plan.Change) bool {
			return c.Action == plan.Create
		}))...)
	}

	left := func(c *plan.Change) bool {
		_, isMember := slices.BinarySearch(in.Members, c.Namespace)

		return c.Action == plan.Delete && (!isMember || len(in.Copies) == 0)
	}
	events = append(events, placesEvent(EventUnbound, "Unbind", "no longer bound in ",
		in.whereAll(slices.Concat(in.Revoke, in.Prune), left))...)

	return append(events, turned("Bind", ConditionScoped, before.Conditions, after.Conditions)...)
}

// whereAll returns the namespaces of the chosen changes in which nothing failed, sorted.
func (in *instance) whereAll(changes []plan.Change, chosen func(*plan.Change) bool) []string {
	places := map[string]struct{}{}

	for i := range changes {
		if chosen(&changes[i]) {
			places[changes[i].Namespace] = struct{}{}
		}
	}

	for i := range in.out.Failures {
		delete(places, in.out.Failures[i].Change.Namespace)
	}

	return slices.Sorted(maps.Keys(places))
}

// placesEvent is one event for all places, and one of its own for the whole cluster, which nobody should miss in a list.
func placesEvent(reason, action, words string, places []string) []Event {
	var events []Event

	if len(places) > 0 && places[0] == "" {
		events = append(events, Event{Reason: reason, Action: action, Message: words + "the whole cluster"})
		places = places[1:]
	}

	return append(events, about(places, Event{Reason: reason, Action: action, Message: words})...)
}

// turned is a warning when a condition begins to be false, or false for another reason. The reasons of these conditions are
// reasons of events, too.
func turned(action, condition string, before, after []metav1.Condition) []Event {
	was, is := meta.FindStatusCondition(before, condition), meta.FindStatusCondition(after, condition)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Reason == is.Reason {
		return nil
	}

	return []Event{{Warning: true, Reason: is.Reason, Action: action, Message: is.Message}}
}
