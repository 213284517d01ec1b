package report

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// Event is one event about a scope.
type Event struct {
	// Warning says that somebody should look.
	Warning bool
	// Reason is one of the vocabulary, Action what Ambit was doing, in one word, and Message what happened, and to what.
	Reason, Action, Message string
	// Related is something else that it is about; nil for nothing. The recorder takes events about the same version of an object for
	// one that goes on, with the words of the first, if they have the same reason and the same Related.
	Related *corev1.ObjectReference
}

// Type is Warning or Normal.
func (e *Event) Type() string {
	if e.Warning {
		return corev1.EventTypeWarning
	}

	return corev1.EventTypeNormal
}

// EventsOf returns the events of the scope with this index: the difference between two statuses, and the restarts. One event is
// about all namespaces, so that a thousand new members are not a thousand events.
func EventsOf(p *plan.Plan, out *apply.Outcome, index int, before, after *operatorv1.NamespaceScopeStatus) []Event {
	s := &p.Scopes[index]
	was, is := validatedIn(before, after)

	events := slices.Concat(
		about(without(is, was), Event{Reason: EventNamespaceAdded, Action: "Project", Message: "added to the watch list: "}),
		about(without(was, is), Event{Reason: EventNamespaceRemoved, Action: "Prune", Message: "removed from the watch list: "}))

	events = append(events, finishingEvents(s, listOf(p, out, s), before, after)...)

	if refused := without(after.UnprojectedRoles, before.UnprojectedRoles); len(refused) > 0 {
		events = append(events, Event{
			Warning: true, Reason: EventRoleNotProjected, Action: "Project",
			Message: fmt.Sprintf("%d roles could not be projected, among them %s", len(refused), refused[0]),
		})
	}

	events = append(events, slices.DeleteFunc(turned("Project", ConditionReady, before.Conditions, after.Conditions),
		func(e Event) bool { return e.Reason != EventAuthorizationRequired })...)

	if is := meta.FindStatusCondition(after.Conditions, ConditionNoForeignBindings); is != nil &&
		meta.FindStatusCondition(before.Conditions, ConditionNoForeignBindings) == nil {
		events = append(events, Event{Warning: true, Reason: EventForeignBinding, Action: "Project", Message: is.Message})
	}

	events = append(events, injectionEvents(p, out, index)...)

	return append(events, restartEvents(p, out, index)...)
}

// about is an event about some names, which its message ends with; none where there are no names.
func about(names []string, e Event) []Event {
	if len(names) == 0 {
		return nil
	}

	e.Message += some(names)

	return []Event{e}
}

// validatedIn are the members that both statuses cover. Of a list that was cut nothing is known beyond its last name.
func validatedIn(before, after *operatorv1.NamespaceScopeStatus) (was, is []string) {
	was, is = before.ValidatedMembers, after.ValidatedMembers

	for _, status := range []*operatorv1.NamespaceScopeStatus{before, after} {
		if n := len(status.ValidatedMembers); n > 0 && status.ValidatedMembersTotal > 0 {
			last := status.ValidatedMembers[n-1]
			was, is = upTo(last, was), upTo(last, is)
		}
	}

	return was, is
}

// upTo are the names of a sorted list that do not come after another.
func upTo(last string, names []string) []string {
	at, found := slices.BinarySearch(names, last)
	if found {
		at++
	}

	return names[:at]
}

// begun is a restart, and why it failed.
type begun struct {
	*plan.Restart

	err error
}

// begunFor are the restarts for a scope, those of which the answer came late first. What came late is not what the same reader
// still waits for.
func begunFor(p *plan.Plan, out *apply.Outcome, index int) []begun {
	var of []begun

	late := map[string]struct{}{}

	for i := range out.Late {
		if l := &out.Late[i]; l.Restart != nil && slices.Contains(l.Scopes, p.Scopes[index].Scope.Owner) {
			of = append(of, begun{Restart: l.Restart})
			late[l.Restart.Reader()] = struct{}{}
		}
	}

	for i := range p.Restarts {
		r, err := &p.Restarts[i], out.Restarts[i].Err
		if out.Restarts[i].Result == apply.Unchanged {
			continue
		}

		if _, is := late[r.Reader()]; slices.Contains(r.Scopes, index) && (!is || !errors.Is(err, apply.ErrUnanswered)) {
			of = append(of, begun{r, err})
		}
	}

	return slices.DeleteFunc(of, func(r begun) bool { return r.Quiet })
}

// restartEvents returns one event for all restarts, and one for all that failed: the recorder takes two events that differ
// only in their text for one. Some readers may restart later than others for the same list, so the first of them is what it is
// about.
func restartEvents(p *plan.Plan, out *apply.Outcome, index int) []Event {
	var (
		restarted, failed, lists []string
		about, failing           *corev1.ObjectReference
		first                    error
	)

	for _, r := range begunFor(p, out, index) {
		if r.err != nil {
			if failed = append(failed, r.Reader()); first == nil {
				first, failing = r.err, reader(p, r.Restart)
			}

			continue
		}

		if restarted = append(restarted, r.Reader()); about == nil {
			about = reader(p, r.Restart)
		}

		lists = append(lists, r.List)
	}

	var events []Event

	if len(restarted) > 0 {
		slices.Sort(lists)
		events = append(events, Event{
			Reason: EventWorkloadRestarted, Action: "Restart",
			Message: fmt.Sprintf("restarted, because the watch list in ConfigMap %s changed: %s",
				some(slices.Compact(lists)), some(restarted)),
			Related: about,
		})
	}

	if len(failed) > 0 {
		events = append(events, Event{
			Warning: true, Reason: EventRestartFailed, Action: "Restart",
			Message: fmt.Sprintf("could not be restarted: %s: %s", some(failed), shorten(first)),
			Related: failing,
		})
	}

	return events
}

// reader refers to what restarts.
func reader(p *plan.Plan, r *plan.Restart) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Key.Namespace, Name: r.Workload.Name}

	if of := r.Workload.Kind.Type(); of != nil {
		ref.APIVersion, ref.Kind = of.Resource.GroupVersion().String(), string(of.Kind)
	} else {
		ref.Name, ref.UID = r.Evict[0].Name, r.Evict[0].UID
	}

	return ref
}

// without returns what is in a and not in b, sorted.
func without(a, b []string) []string {
	return sets.List(sets.New(a...).Difference(sets.New(b...)))
}
