package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// maxInjected bounds the workloads that are listed in status.
const maxInjected = 500

// waitingFor says why a target that nobody refused is not injected yet.
const waitingFor = "the others wait until the list is written, or until Ambit has read what somebody else just wrote"

// injected is the result of a scope's injectors.
type injected struct {
	scope *plan.ScopePlan
	// failed are the targets that could not be written, with the reason.
	failed map[string]error
	// webhooks are the configurations that are limited, or should be; limited those that are.
	webhooks, limited []string

	csvs, workloads *metav1.Condition
	patched, into   []string
	// stuck are the targets from which something could not be taken back, with the reason.
	stuck []string
	// unknown says that something may be injected still, so that what the status says of it stays as evidence.
	unknown bool
}

func injectionOf(p *plan.Plan, out *apply.Outcome, index int) *injected {
	in := &injected{scope: &p.Scopes[index], failed: map[string]error{}}
	leaves := in.notTakenBack(p, out, index)

	if in.scope.Scope.Deleting() {
		return in
	}

	in.unknown = in.scope.Scope.Injected && (!p.CSVsDecided || leaves)

	// A target that waits for its list is not injected yet either.
	waiting := map[string]struct{}{}

	for i := range p.Injections {
		if o := &out.Injections[i]; o.Err != nil && !o.Is(apply.Conflict) {
			in.failed[p.Injections[i].Target()] = o.Err
		} else if o.Result != apply.Configured {
			waiting[p.Injections[i].Target()] = struct{}{}
		}
	}

	in.ofWorkloads(waiting)
	in.ofCSVs(waiting)

	in.ofWebhooks(p, out, index)

	return in
}

func (in *injected) ofWebhooks(p *plan.Plan, out *apply.Outcome, index int) {
	for i := range p.Webhooks {
		w, o := &p.Webhooks[i], &out.Webhooks[i]
		if w.Scope != index || w.IsTakenBack() {
			continue
		}

		in.webhooks = append(in.webhooks, w.Live.Name)

		// While its list cannot be written, it stays as it is.
		if o.Err == nil && (w.Live.Replaced != "" || out.WrittenList(p, w.List) != nil) {
			in.limited = append(in.limited, w.Live.Name)
		} else if o.Err != nil && !o.Is(apply.Conflict) && in.csvs != nil && in.csvs.Reason != ReasonInjectionFailed {
			in.csvs.Status, in.csvs.Reason = metav1.ConditionFalse, ReasonInjectionFailed
			in.csvs.Message = w.Target() + ": " + shorten(o.Err)
		}
	}

	in.webhooks = slices.Compact(slices.Sorted(slices.Values(in.webhooks)))
	in.limited = slices.Compact(slices.Sorted(slices.Values(in.limited)))
}

// notTakenBack notes what could not be taken back, and says whether there is anything. A deleted scope waits for that, so it has
// to be told there, too; but for a conflict, after which it is only tried again.
func (in *injected) notTakenBack(p *plan.Plan, out *apply.Outcome, index int) (leaves bool) {
	note := func(target string, o *apply.WriteOutcome) {
		if leaves = true; !o.Is(apply.Conflict) {
			in.stuck = append(in.stuck, target+": "+in.why(o.Err))
		}
	}

	for i := range out.Injections {
		if t, o := &p.Injections[i], &out.Injections[i]; t.Scope == index && t.IsTakenBack() && o.Err != nil {
			note(t.Target(), o)
		}
	}

	for i := range out.Webhooks {
		if t, o := &p.Webhooks[i], &out.Webhooks[i]; t.Scope == index && t.IsTakenBack() && o.Err != nil {
			note(t.Target(), o)
		}
	}

	return leaves
}

func (in *injected) ofWorkloads(waiting map[string]struct{}) {
	if in.scope.Scope.InjectWorkloads == nil {
		return
	}

	not := in.notInto(waiting)
	c := metav1.Condition{Type: ConditionWorkloadsInjected, Status: metav1.ConditionFalse}

	switch reason, message := in.leftAlone(&not); {
	case reason != "":
		c.Reason, c.Message = reason, message
	case len(in.scope.Injectables) == 0:
		c.Reason, c.Message = ReasonNothingToInject, in.nothing()
	case len(in.into) < len(in.scope.Injectables):
		c.Reason = ReasonWaiting
		c.Message = fmt.Sprintf("%d of %d workloads read the watch list; %s", len(in.into), len(in.scope.Injectables), waitingFor)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonInjected
		c.Message = printable.Number(len(in.into), "workload reads", "workloads read") + " the watch list"
	}

	in.workloads = &c
}

// leftAlone says why workloads are not injected into, the worst first; reason is empty when all are, or wait.
func (in *injected) leftAlone(not *notInjected) (reason, message string) {
	var messages []string

	add := func(why string, of []string, words func() string) {
		if len(of) > 0 {
			reason, messages = cmp.Or(reason, why), append(messages, words())
		}
	}

	add(ReasonInjectionFailed, not.failed, func() string { return some(not.failed) })
	add(ReasonInjectionRefused, not.refused, func() string { return "never injected: " + some(not.refused) })
	add(ReasonInjectionConflict, not.conflicts, func() string { return in.conflictsWith(not.conflicts) })
	add(ReasonInjectionConflict, not.older, func() string {
		return "left alone: " + someOf(not.older, in.scope.OlderCount) + "; have both scopes inject the same, or tell their " +
			"workloads apart by spec.restartLabels"
	})

	return reason, strings.Join(messages, "; ")
}

// notInjected are the workloads that are left alone, each with the reason.
type notInjected struct{ conflicts, older, failed, refused []string }

// notInto sorts the workloads of the scope by what became of them, and keeps those that were injected into.
func (in *injected) notInto(waiting map[string]struct{}) (not notInjected) {
	if in.scope.InjectionRefused != "" {
		not.refused = append(not.refused, in.scope.InjectionRefused)
	}

	for _, w := range in.scope.Injectables {
		_, waits := waiting[w.Target]

		switch err := in.failed[w.Target]; {
		case w.Refused != "":
			not.refused = append(not.refused, w.Target+": "+w.Refused)
		case w.Conflict != "":
			not.conflicts = append(not.conflicts, w.Target+": "+w.Conflict)
		case w.Older != "":
			not.older = append(not.older, w.Target+": it is injected for the older scope "+w.Older)
		case errors.Is(err, apply.ErrFieldClash):
			not.conflicts = append(not.conflicts, w.Target+": "+in.why(err))
		case err != nil:
			not.failed = append(not.failed, w.Target+": "+in.why(err))
		case !waits:
			in.into = append(in.into, w.Target)
		}
	}

	return not
}

// nothing says what there is to be for something to be injected into it.
func (in *injected) nothing() string {
	out := "no Deployment, StatefulSet or DaemonSet of namespace " + in.scope.Scope.Key.Namespace +
		" carries spec.restartLabels on its pod template"

	if len(in.scope.Scope.InjectWorkloads.Containers) > 0 {
		out += " and has a container that spec.workloadInjector.containers names"
	}

	return out
}

// conflictsWith says what stands in the way, and each way out.
func (in *injected) conflictsWith(conflicts []string) string {
	out := "left alone, because somebody else set what should be injected: " + some(conflicts) + "; remove it there"

	if !in.scope.Scope.Confined {
		out += ", or set spec.workloadInjector.conflicts to Replace"
	}

	if w := in.scope.Scope.InjectWorkloads; len(w.Arguments) > 0 {
		out += "; arguments that it has already, such as those of a chart, need no injection: add " +
			strings.Join(w.Arguments, " ") + " to them yourself"
	}

	return out
}

func (in *injected) ofCSVs(waiting map[string]struct{}) {
	if !in.scope.Scope.InjectCSVs {
		return
	}

	found := &in.scope.CSVs
	problems := slices.Clone(found.Problems)

	for _, name := range found.Found {
		ready := true

		for _, csv := range found.ByPackage[name] {
			target := string(plan.CSVKind) + " " + csv
			_, waits := waiting[target]
			_, leftAlone := slices.BinarySearch(found.LeftAlone, csv)
			ready = ready && !waits && !leftAlone

			if err := in.failed[target]; err != nil {
				problems = append(problems, target+": "+in.why(err))
				ready = false
			}
		}

		if ready {
			in.patched = append(in.patched, name)
		}
	}

	c := metav1.Condition{Type: ConditionCSVsInjected, Status: metav1.ConditionFalse}

	switch {
	case !found.Listed:
		c.Reason = ReasonOLMNotFound
		c.Message = "OLM is not installed, or its ClusterServiceVersions may not be read; they are injected once they can be"
	case len(problems) > 0:
		c.Reason, c.Message = ReasonInjectionFailed, some(problems)
	case len(found.Found) == 0:
		c.Reason = ReasonNothingToInject
		c.Message = "no ClusterServiceVersion of namespace " + in.scope.Scope.Key.Namespace +
			" belongs to a package that an annotation nss.operator.ibm.com/managed-operators names"
	case len(in.patched) < len(found.Found):
		c.Reason = ReasonWaiting
		c.Message = fmt.Sprintf("%d of %d packages read the watch list; %s", len(in.patched), len(found.Packages), waitingFor)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonInjected
		c.Message = fmt.Sprintf("%d of %d packages read the watch list", len(in.patched), len(found.Packages))
	}

	if len(found.Unlimited) > 0 {
		c.Message += "; webhooks stay as they are, since their configurations have no namespace and this Ambit works in single ones: " +
			"those of " + some(found.Unlimited)
	}

	in.csvs = &c
}

// Announce has a status say that something is about to be injected into ClusterServiceVersions.
func Announce(status *operatorv1.NamespaceScopeStatus, generation int64) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionCSVsInjected, Status: metav1.ConditionFalse, Reason: ReasonWaiting,
		Message: "nothing is injected yet", ObservedGeneration: generation,
	})
}

// why says why a write was refused, and which authorization allows it.
func (in *injected) why(err error) string {
	if missing, ok := errors.AsType[*apply.MissingError](err); ok {
		return unauthorized(in.scope, missing).Message
	}

	return shorten(err)
}

// fill writes the result of the injectors into a status. Where nothing is known of the CSVs, what was known stays.
func (in *injected) fill(status *operatorv1.NamespaceScopeStatus, set func(metav1.Condition)) {
	// What is not known to be taken back is looked for again, and this says so.
	stays := in.unknown || in.scope.Scope.Deleting()

	for kind, c := range map[string]*metav1.Condition{
		ConditionCSVsInjected: in.csvs, ConditionWorkloadsInjected: in.workloads,
	} {
		if c != nil {
			set(*c)
		} else if !stays || kind != ConditionCSVsInjected {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}

	status.InjectedWorkloads = in.into[:min(len(in.into), maxInjected)]

	if in.scope.Scope.InjectCSVs && !in.scope.CSVs.Listed || stays {
		return
	}

	status.ManagedCSVList, status.PatchedCSVList = in.scope.CSVs.Packages, in.patched
	status.ManagedWebhookList, status.PatchedWebhookList = in.webhooks, in.limited
}

// problem says what keeps the scope from being ready; empty when nothing does.
func (in *injected) problem() string {
	for _, c := range []*metav1.Condition{in.workloads, in.csvs} {
		if c != nil && slices.Contains([]string{ReasonInjectionFailed, ReasonInjectionConflict, ReasonInjectionRefused}, c.Reason) {
			return c.Message
		}
	}

	if len(in.stuck) > 0 {
		return "what was injected could not be taken back: " + some(in.stuck)
	}

	return ""
}

// wroteInto are the targets of a scope that were injected into, and those from which that was taken back.
func wroteInto(p *plan.Plan, out *apply.Outcome, index int) (put, back []string) {
	note := func(target string, takenBack bool) {
		if takenBack {
			back = append(back, target)
		} else {
			put = append(put, target)
		}
	}

	for i := range out.Late {
		if l := &out.Late[i]; l.Target != "" && slices.Contains(l.Scopes, p.Scopes[index].Scope.Owner) {
			note(l.Target, l.TakenBack)
		}
	}

	for i := range p.Injections {
		if in := &p.Injections[i]; in.Scope == index && out.Injections[i].Result == apply.Configured {
			note(in.Target(), in.IsTakenBack())
		}
	}

	for i := range p.Webhooks {
		if w := &p.Webhooks[i]; w.Scope == index && out.Webhooks[i].Result == apply.Configured {
			note(w.Target(), w.IsTakenBack())
		}
	}

	return put, back
}

// injectionEvents returns one event for all that was injected, and one for all that was taken back.
func injectionEvents(p *plan.Plan, out *apply.Outcome, index int) []Event {
	put, back := wroteInto(p, out, index)

	return append(about(put, Event{Reason: EventInjected, Action: "Inject", Message: "injected into "}),
		about(back, Event{Reason: EventTakenBack, Action: "Inject", Message: "took back what was injected into "})...)
}
