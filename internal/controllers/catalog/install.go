package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// create creates the InstallPlans that are missing. That needs no rights of the group's account: an InstallPlan says what is to
// be done, and does nothing.
func (p *state) create(ctx context.Context) {
	for _, t := range p.targets {
		if t.missing != nil {
			result, err := p.Applier.CreateOnce(ctx, apply.Own(), t.missing)
			p.out.Objects = append(p.out.Objects, apply.WriteOutcome{Result: result, Err: err})

			// By a quota, or an admission policy. No watch reports anything then, so it is said here.
			if err != nil && apply.Classify(err) == apply.Refused {
				t.waits = false
				t.problem(catalog.ReasonInstallPlanRefused, "no InstallPlan could be created, which is tried again: "+apply.Message(err))
			}
		}
	}
}

// install carries out InstallPlans, but none that the cache has yet to report as Ambit wrote it last: what was done would be told
// to an outdated status, which is a conflict, and the next pass would only see that everything is there, and not by whom.
func (p *state) install(ctx context.Context) {
	for _, t := range p.targets {
		if t.runs && !p.written.IsAhead(t.plan.object) {
			p.run(ctx, t)
		}
	}
}

// run carries out an InstallPlan, as far as it is approved and allowed.
func (p *state) run(ctx context.Context, t *target) {
	do := &catalog.Progress{
		Now: p.now, Steps: t.steps, States: catalog.States(t.steps, &t.plan.typed.Status), Approved: t.plan.typed.Spec.Approved,
	}

	t.plan.becomes(do.Status(&t.plan.typed.Status))

	// The steps are told before they are taken: once the version is there, the catalog may not hold them any more.
	if do.Approved && (len(t.plan.typed.Status.Plan) > 0 || p.reportPlan(ctx, t.plan)) {
		p.attempt(ctx, t, do)
		t.plan.becomes(do.Status(&t.plan.typed.Status))
	}
}

// attempt writes everything, or nothing when something is missing.
func (p *state) attempt(ctx context.Context, t *target, do *catalog.Progress) {
	var id apply.Identity

	group, why := p.group()
	if group != nil {
		id, do.Account, why = p.writer(ctx, group)
	}

	if why != "" {
		do.Failure = &catalog.Failure{Waiting: true, Reason: olmv1alpha1.InstallPlanReasonInstallCheckFailed, Message: why}

		return
	}

	w := &work{
		state: p, target: t, do: do, id: id, targets: install.Present(group.Status.Namespaces, p.facts.Namespaces),
		objects: collect.Map(t.steps.Objects, (*unstructured.Unstructured).DeepCopy),
	}

	if !w.compare() || !w.gather(ctx) {
		return
	}

	for i, obj := range w.objects {
		if do.States[i] == olmv1alpha1.StepStatusPresent || do.States[i] == olmv1alpha1.StepStatusCreated {
			continue
		}

		result, err := p.Applier.Put(ctx, id, obj)
		p.out.Objects = append(p.out.Objects, apply.WriteOutcome{Result: result, Err: err})

		if err != nil {
			w.unwritten(words(obj, err), err)

			return
		}

		do.States[i] = olmv1alpha1.StepStatusCreated
	}
}

// group is the one that is in charge of the namespace; or why none is.
func (p *state) group() (group *operatorsv1.OperatorGroup, why string) {
	switch n := len(p.found.groups); {
	case n == 0:
		return nil, catalog.NoGroup
	case n > 1:
		return nil, catalog.TooManyGroups(n)
	case len(p.found.groups[0].Status.Namespaces) == 0:
		return nil, catalog.NoTargets
	default:
		return p.found.groups[0], ""
	}
}

// writer is who writes for a group, and which account that is, where the group names one; or why nobody writes. Whether the
// account is there is read from the cluster: what the group's status says could be somebody else's words, and rights outlive
// their account.
func (p *state) writer(
	ctx context.Context, group *operatorsv1.OperatorGroup,
) (id apply.Identity, account *corev1.ObjectReference, why string) {
	of := &writer.Group{Name: group.Name, Account: group.Spec.ServiceAccountName}

	if of.Account != "" {
		var live corev1.ServiceAccountList

		err := p.Live.List(ctx, &live, client.InNamespace(group.Namespace), client.MatchingFields{"metadata.name": of.Account})
		if err != nil {
			p.errs = append(p.errs, fmt.Errorf("looking for service account %s/%s: %w", group.Namespace, of.Account, err))

			return id, nil, apply.Message(err)
		}

		if of.Exists = len(live.Items) > 0 && live.Items[0].DeletionTimestamp == nil; of.Exists {
			account = install.AccountRef(group.Namespace, of.Account, facts.Account{UID: string(live.Items[0].UID)})
		}
	}

	id = p.Writers.OfGroup(group.Namespace, of, "").Writes

	return id, account, id.Why()
}

// work is the attempt at one InstallPlan.
type work struct {
	*state
	*target

	do *catalog.Progress
	id apply.Identity
	// targets are those namespaces of the group in which something can be written now.
	targets []string
	// objects are those of the steps, which stay as the catalog has them: what is written becomes what the API server made of it.
	objects []*unstructured.Unstructured
}

// failed notes why an InstallPlan makes no progress until somebody changes something, such as permissions.
func (w *work) failed(message string) {
	w.do.Failure = &catalog.Failure{Reason: olmv1alpha1.InstallPlanReasonComponentFailed, Message: message}
	w.refused[w.found.namespace] = struct{}{}
}

// unwritten notes why something could not be written. What may pass by itself is no failure, as with a ClusterServiceVersion.
func (w *work) unwritten(message string, err error) {
	switch apply.Classify(err) {
	case apply.Transient, apply.Conflict:
		w.late(olmv1alpha1.InstallPlanReasonComponentFailed, message)
	case apply.Refused, apply.Gone, apply.Dangling:
		w.failed(message)
	}
}

// unread notes an error for which it is not known what there is to write.
func (w *work) unread(err error) {
	w.late(olmv1alpha1.InstallPlanReasonInstallCheckFailed, apply.Message(err))
	w.fail(err)
}

// late notes why an InstallPlan makes no progress yet. It is tried again, later each time.
func (w *work) late(reason olmv1alpha1.InstallPlanConditionReason, message string) {
	w.do.Failure = &catalog.Failure{Waiting: true, Reason: reason, Message: "it is tried again soon: " + message}
}

// compare finds which of the objects have to be written. A definition that does what the catalog asks for needs no writing, and
// no rights: somebody may have installed it for all namespaces.
func (w *work) compare() bool {
	if w.unknown != nil {
		w.unread(w.unknown)

		return false
	}

	for i, obj := range w.objects {
		if obj.GetKind() == olmv1alpha1.ClusterServiceVersionKind {
			continue // It is not there yet: otherwise this version would be installed already.
		}

		live := w.definitions[obj.GetName()]
		if live == nil {
			w.do.States[i] = olmv1alpha1.StepStatusNotPresent

			continue
		}

		verdict, why := catalog.Compare(live, obj, w.steps.Wants(obj.GetName()), apply.IsMade(live))
		switch verdict {
		case catalog.Differs:
			obj.SetUID(live.GetUID())

			w.do.States[i] = olmv1alpha1.StepStatusNotPresent
		case catalog.Clashes:
			w.failed(words(obj, errors.New(why)))

			return false
		case catalog.Fits:
			if w.do.States[i] != olmv1alpha1.StepStatusCreated {
				w.do.States[i] = olmv1alpha1.StepStatusPresent
			}
		}
	}

	return true
}

// gather finds everything that the identity lacks, for the objects of the InstallPlan and for those that the
// ClusterServiceVersion brings after it.
func (w *work) gather(ctx context.Context) bool {
	var write []*unstructured.Unstructured

	for i, obj := range w.objects {
		if s := w.do.States[i]; s != olmv1alpha1.StepStatusPresent && s != olmv1alpha1.StepStatusCreated {
			write = append(write, obj)
		}
	}

	needs := append(catalog.Needs(write), install.Needs(w.steps.CSV, w.found.namespace, w.targets)...)

	missing, err := w.Applier.Lacks(ctx, w.id, needs)
	if nobody, no := errors.AsType[*apply.IdentityError](err); no {
		w.failed(nobody.Why)

		return false
	}

	if err != nil {
		w.unread(err)

		return false
	}

	if len(missing) == 0 {
		return true
	}

	for _, place := range missing {
		w.refused[place.Namespace] = struct{}{}
	}

	w.failed(w.refusal(ctx, missing, write))

	return false
}

// refusal is what an InstallPlan says that may not be done: the API server's own words about the first object that it refuses,
// and everything that is missing. While the latter is the same, the former is not asked for again.
func (w *work) refusal(ctx context.Context, missing []authority.Place, write []*unstructured.Unstructured) string {
	all := catalog.MissingWords(w.id.String(), missing, w.found.namespace, w.plan.typed.Name)

	if was := w.plan.typed.Status.GetCondition(olmv1alpha1.InstallPlanInstalled).Message; strings.HasSuffix(was, all) {
		return was
	}

	for _, obj := range catalog.Tries(w.steps, write, w.targets) {
		if err := w.Applier.Try(ctx, w.id, obj); err != nil && apply.Classify(err) == apply.Refused {
			return words(obj, err) + ". " + all
		}
	}

	return all
}

// words say, as OLM does, what could not be written and why.
func words(obj *unstructured.Unstructured, err error) string {
	const most = 600

	why := printable.Cut(strings.Join(strings.Fields(apply.Message(err)), " "), most)

	return fmt.Sprintf("error creating %s %s: %s", strings.ToLower(obj.GetKind()), obj.GetName(), why)
}
