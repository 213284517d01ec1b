package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
)

// WebhookPlan is a webhook configuration that is limited to the members, or was. To which members is known once the watch
// list is, so ResolveWebhook decides it after that was written.
type WebhookPlan struct {
	Live facts.WebhookConfiguration
	// Scope is the index of the scope that it is for, or was; -1 when that is gone.
	Scope int
	// List names the watch list; empty when the limit is to be taken back.
	List string
}

// Target names it, for users.
func (w *WebhookPlan) Target() string { return w.Live.Kind + " " + w.Live.Name }

// IsTakenBack says whether the limit ends.
func (w *WebhookPlan) IsTakenBack() bool { return w.List == "" }

func (p *Plan) planWebhooks(f *facts.Facts, covered map[string]string, index int) {
	if !f.OperatorNamespace.CSVsListed {
		return
	}

	for i := range f.OperatorNamespace.Webhooks {
		live := f.OperatorNamespace.Webhooks[i]
		at := slices.IndexFunc(f.OperatorNamespace.CSVs, func(c facts.CSV) bool { return c.Name == live.CSV })
		_, isCovered := covered[live.CSV]

		switch {
		case index >= 0 && isCovered && at >= 0 && f.OperatorNamespace.CSVs[at].ManagedWebhooks:
			p.Webhooks = append(p.Webhooks, WebhookPlan{Live: live, Scope: index, List: p.Scopes[index].Scope.WatchList})
		case live.Replaced != "":
			p.Webhooks = append(p.Webhooks, WebhookPlan{Live: live, Scope: p.remaining(index)})
		}
	}
}

// limit edits one webhook. The requirement that Ambit put in is known by its values, which the annotation remembers.
func (w *WebhookPlan) limit(i int, want string) []injection.Op {
	hook := &w.Live.Webhooks[i]
	selector := fmt.Sprintf("/webhooks/%d/namespaceSelector", i)
	ours := w.ours(i, want)

	requirementOf := facts.LimitTo(want)

	switch {
	case ours >= 0 && hook.Requirements[ours].Values == want, ours < 0 && want == "":
		return nil
	case ours >= 0 && want == "":
		return []injection.Op{{Op: "remove", Path: fmt.Sprintf("%s/matchExpressions/%d", selector, ours)}}
	case ours >= 0:
		return []injection.Op{{
			Op: "replace", Path: fmt.Sprintf("%s/matchExpressions/%d/values", selector, ours), Value: requirementOf.Values,
		}}
	case !hook.Selected:
		return []injection.Op{{Op: "add", Path: selector, Value: metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{requirementOf},
		}}}
	case len(hook.Requirements) == 0:
		return []injection.Op{{
			Op: "add", Path: selector + "/matchExpressions", Value: []metav1.LabelSelectorRequirement{requirementOf},
		}}
	default:
		return []injection.Op{{Op: "add", Path: selector + "/matchExpressions/-", Value: requirementOf}}
	}
}

// ours finds the requirement that Ambit put in. Where nothing is remembered, one that asks for the same members in whatever order
// is that of IBM's operator, and is taken over; but not the one by which Ambit limits what it made to the targets of a group.
func (w *WebhookPlan) ours(webhook int, want string) int {
	if w.Live.Replaced != "" || w.Live.Made {
		return w.Live.LimitOf(webhook)
	}

	for i, r := range slices.Backward(w.Live.Webhooks[webhook].Requirements) {
		if r.IsOfNames() && sameMembers(r.Values, want) {
			return i
		}
	}

	return -1
}

// sameMembers says whether two lists name the same namespaces, in whatever order.
func sameMembers(a, b string) bool {
	return sets.New(strings.Split(a, ",")...).Equal(sets.New(strings.Split(b, ",")...))
}
