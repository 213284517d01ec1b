package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// maxFinishing bounds the namespaces in status that finish; their full count is in the condition.
const maxFinishing = 50

// noneLeaves says that what is to leave the list could not yet.
func noneLeaves(list *apply.ListOutcome) bool { return list != nil && !list.Written() }

// finishing fills in since when namespaces finish, and sums it up; nil when none does. A namespace that is to leave the list, and
// could not yet, stays in the status: the next plan must not take it for one that left just now.
func finishing(s *plan.ScopePlan, status *operatorv1.NamespaceScopeStatus, list *apply.ListOutcome) *metav1.Condition {
	those := s.Finishing
	if noneLeaves(list) {
		those = s.Leaves
	}

	status.FinishingMembers, status.FinishingSince = nil, nil

	for i := range those {
		since := metav1.NewTime(those[i].Since.Truncate(time.Second))
		if i < maxFinishing {
			status.FinishingMembers = append(status.FinishingMembers, operatorv1.FinishingMember{
				Namespace: those[i].Namespace, Since: since, Message: printable.Text(Waits(&those[i].Waiting, those[i].Looked)),
			})
		} else {
			status.FinishingSince = earlier(status.FinishingSince, since)
		}
	}

	if len(s.Finishing) == 0 {
		return nil
	}

	listed := make([]string, 0, maxNames)
	for i := range s.Finishing[:min(len(s.Finishing), maxNames)] {
		listed = append(listed, s.Finishing[i].Namespace+" ("+Waits(&s.Finishing[i].Waiting, s.Finishing[i].Looked)+")")
	}

	first := &s.Finishing[0]

	return new(isNot(ConditionMembersFinished, ReasonFinishing, fmt.Sprintf(
		"namespaces that left keep their permissions for %s at most: %s",
		first.Until.Sub(first.Since), printable.Counted(listed, ", ", len(s.Finishing)-len(listed)))))
}

func earlier(a *metav1.Time, b metav1.Time) *metav1.Time {
	if a != nil && a.Before(&b) {
		return a
	}

	return &b
}

// Waits says what waits in a namespace.
func Waits(w *facts.Waiting, looked bool) string {
	var parts []string

	if w.Count > 0 {
		parts = append(parts, "waiting for a finalizer: "+Listed(w.Objects, w.Count))
	}

	if w.Unseen != "" {
		parts = append(parts, "what waits is unknown: "+w.Unseen)
	}

	switch {
	case !looked && w.Unanswered != "":
		parts = append(parts, "it could not be checked what waits: "+w.Unanswered)
	case !looked:
		parts = append(parts, "not checked yet what waits")
	}

	return strings.Join(parts, "; ")
}

// Listed joins names, and says how many more there are.
func Listed(names []string, count int) string {
	return printable.Counted(names, ", ", count-len(names))
}

// firstFinishing are those that come first and take no more than some bytes, and since when the others finish.
func firstFinishing(status *operatorv1.NamespaceScopeStatus, limit int) ([]operatorv1.FinishingMember, *metav1.Time) {
	all, since := status.FinishingMembers, status.FinishingSince

	for i := range all {
		all[i].Message = shortened(all[i].Message, maxMessage/4)

		if limit -= size(&all[i]); limit >= 0 {
			continue
		}

		for _, m := range all[i:] {
			since = earlier(since, m.Since)
		}

		return all[:i:i], since
	}

	return all, since
}

// finishingEvents say which namespaces begin to finish, and which did not in time.
func finishingEvents(s *plan.ScopePlan, list *apply.ListOutcome, before, after *operatorv1.NamespaceScopeStatus) []Event {
	var began, over []string

	for i := range s.Leaves {
		name := s.Leaves[i].Namespace
		was := reportsFinishing(before, name, s.Leaves[i].Began)
		is := reportsFinishing(after, name, false) && (s.IsFinishing(name) || noneLeaves(list))

		switch {
		case is && !was:
			began = append(began, name)
		case was && !is && s.Leaves[i].Over:
			over = append(over, name)
		}
	}

	return append(about(began, Event{
		Reason: EventNamespaceFinishing, Action: "Finish",
		Message: "permissions stay for a while, until nothing waits for a finalizer: ",
	}), about(over, Event{
		Warning: true, Reason: EventNamespaceUnfinished, Action: "Finish",
		Message: "the time is over, although something still waits for a finalizer: ",
	})...)
}

// reportsFinishing says whether a namespace finishes, by a status. One that has no room for all says of those after the last that
// it lists only that there are some; each is taken for one of these, unless it is known to have begun since.
func reportsFinishing(status *operatorv1.NamespaceScopeStatus, namespace string, began bool) bool {
	at, listed := slices.BinarySearchFunc(status.FinishingMembers, namespace, func(m operatorv1.FinishingMember, name string) int {
		return strings.Compare(m.Namespace, name)
	})

	return listed || !began && status.FinishingSince != nil && at == len(status.FinishingMembers)
}
