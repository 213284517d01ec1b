package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// lists writes the watch lists, now that it is known which members could be served.
func (r *run) lists(ctx context.Context) {
	r.missBare()

	for i := range r.plan.Lists {
		l := &r.plan.Lists[i]
		o := ListOutcome{WriteOutcome{Result: Unchanged}, plan.ResolveList(l, r.unserved, r.refusedIn)}

		if o.Write.Action != plan.KeepList && o.Write.Action != plan.BlockedList && !r.staysForEver() {
			o.Result, o.Err = r.writeList(ctx, l, o.Write)
		}

		if o.Err != nil {
			o.Result = Failed
		}

		r.out.Lists = append(r.out.Lists, o)
	}
}

// staysForEver says whether there is nobody who may take back a list.
func (r *run) staysForEver() bool { return r.orphansAs.IsNobody() && len(r.identities) == 0 }

// missBare adds to the members that miss something those in which nobody holds anything, and no binding was written: there
// everything was refused, also where the scope allows a subset.
func (r *run) missBare() {
	for m := range r.refusedIn {
		if r.plan.Scopes[m.Scope].IsBare(m.Namespace) && !r.bound.Has(m.Scope, m.Namespace) {
			r.unserved[m] = struct{}{}
		}
	}
}

// listIdentities are who may write a list: the identities of the scopes that share it, or of those that leave it. A list that no
// scope names any more was named by one of them before, so any of them takes it back. Where none of them may, or is left, Ambit
// does, should it be who takes away what scopes left behind: a scope whose account never wrote the list would wait for ever. But
// what bears its marks alone may be a copy that somebody made, and whoever may name it need not be allowed to write it.
func (r *run) listIdentities(l *plan.ListPlan) []Identity {
	if len(l.Scopes) > 0 {
		return r.identitiesOf(l.Scopes)
	}

	var leaving, all []int

	for i := range r.plan.Scopes {
		all = append(all, i)

		if r.plan.Scopes[i].Scope.WatchList == l.Name {
			leaving = append(leaving, i)
		}
	}

	if len(leaving) == 0 {
		leaving = all
	}

	ids := r.identitiesOf(leaving)
	if l.Live.Applied.IsZero() {
		return ids
	}

	return append(ids, r.orphansAs)
}

// identitiesOf are the different identities of several scopes in their own namespace, those that are somebody first.
func (r *run) identitiesOf(scopes []int) []Identity {
	var somebody, nobody []Identity

	for _, i := range scopes {
		id := r.inOperatorNamespace[i]

		switch {
		case id.IsNobody():
			nobody = append(nobody, id)
		case !slices.Contains(somebody, id):
			somebody = append(somebody, id)
		}
	}

	return append(somebody, nobody...)
}

// asOneOf writes what several scopes ask for as the first of their identities that may: one whose account is gone, or may do
// nothing here, delays no other. Where none may, the first says why, by what it needs for that here.
func (r *run) asOneOf(
	ctx context.Context, ids []Identity, needs []rbacv1.PolicyRule, write func(client.Client) error,
) error {
	var first error

	for _, id := range ids {
		writer, err := r.as(id)
		if err == nil {
			err = r.explainOperatorNamespace(ctx, id, needs, write(writer))
		}

		if err == nil || Classify(err) != Refused || errors.Is(err, ErrBudget) {
			return err
		}

		if first == nil {
			first = err
		}
	}

	return first
}

func (r *run) writeList(ctx context.Context, l *plan.ListPlan, w plan.ListWrite) (Result, error) {
	err := r.writeBounded(ctx, writesList+l.Name, LateWrite{}, func(ctx context.Context) error {
		return r.asOneOf(ctx, r.listIdentities(l), authority.InOperatorNamespace(l.Name), func(writer client.Client) error {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.plan.Key.Namespace, Name: l.Name}}
			if w.Action == plan.DeleteList {
				return r.deleteList(ctx, writer, cm, w)
			}

			return r.applyList(ctx, writer, cm, w)
		})
	})

	switch {
	case err != nil:
		return Failed, fmt.Errorf("writing the watch list into ConfigMap %s/%s: %w", r.plan.Key.Namespace, l.Name, err)
	case w.Action == plan.DeleteList:
		return Deleted, nil
	case !w.Exists:
		return Created, nil
	default:
		return Configured, nil
	}
}

// applyList writes the key and Ambit's marks by server-side apply, so that other keys stay with whoever owns them. A
// release applies none of them, by which the API server takes back what Ambit owned. The resource version goes along: the
// decision was made from that state, and nothing is created where a ConfigMap has just been deleted.
func (a *Applier) applyList(ctx context.Context, writer client.Client, cm *corev1.ConfigMap, w plan.ListWrite) error {
	content := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name},
	}
	if w.Exists {
		content.ResourceVersion = formatVersion(w.Version)
	}

	if w.Action == plan.ApplyList {
		content.Data = map[string]string{scope.ListKey: w.Value}
		content.Annotations = listMarks(w)
	}

	if err := writer.Patch(ctx, cm, apply(content), fieldOwner, client.ForceOwnership); err != nil {
		return err //nolint:wrapcheck // writeList says what was being done.
	}

	if w.Action == plan.ReleaseList {
		if err := takeMarksOff(ctx, writer, cm, w.Intact); err != nil {
			return err
		}
	}

	a.store.Wrote(cm)

	return nil
}

// takeMarksOff takes off what a release has left of Ambit: marks that somebody else wrote as well, or of which the API server
// does not know any more that Ambit wrote them, since whoever may write an object can have that forgotten, and backups do not
// hold it. By its marks, the ConfigMap would have to be released for ever. A list that Ambit wrote goes along, unless it is
// somebody else's by now.
func takeMarksOff(ctx context.Context, writer client.Client, cm *corev1.ConfigMap, intact bool) error {
	left := map[string]any{}

	for _, mark := range []string{
		scope.AnnotationListHash, scope.AnnotationListGeneration, scope.AnnotationListSince, scope.AnnotationListBefore,
		scope.AnnotationCreated,
	} {
		if _, is := cm.Annotations[mark]; is {
			left[mark] = nil
		}
	}

	if len(left) == 0 {
		return nil
	}

	return takeOff(ctx, writer, cm, left, intact && !isListOwned(cm))
}

// takeOff takes annotations off a ConfigMap, and the list, whoever wrote them.
func takeOff(ctx context.Context, writer client.Client, cm *corev1.ConfigMap, left map[string]any, list bool) error {
	metadata := annotations(left)
	metadata["resourceVersion"] = cm.ResourceVersion

	content := map[string]any{"metadata": metadata}
	if list {
		content["data"] = map[string]any{scope.ListKey: nil}
	}

	//nolint:wrapcheck // writeList says what was being done.
	return writer.Patch(ctx, cm, merge(content), fieldOwner)
}

// beforeFirstApply is how the API server calls whoever wrote what is in an object, where it does not know who that was
// (k8s.io/apimachinery/pkg/util/managedfields/internal/skipnonapplied.go).
const beforeFirstApply = "before-first-apply"

// isListOwned says whether the API server knows who wrote the list into a ConfigMap.
func isListOwned(cm *corev1.ConfigMap) bool {
	return slices.ContainsFunc(cm.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != beforeFirstApply && scope.HasList(&e)
	})
}

func listMarks(w plan.ListWrite) map[string]string {
	marks := map[string]string{
		scope.AnnotationListHash:       scope.ListHash(w.Value, w.Generation),
		scope.AnnotationListGeneration: strconv.FormatInt(w.Generation, 10),
	}
	if w.Created {
		marks[scope.AnnotationCreated] = "true"
	}

	if !w.Since.IsZero() {
		marks[scope.AnnotationListSince] = w.Since.UTC().Format(time.RFC3339)
	}

	if !w.Before.IsZero() {
		marks[scope.AnnotationListBefore] = w.Before.UTC().Format(time.RFC3339)
	}

	return marks
}

// deleteList deletes a ConfigMap. Where finalizers keep it, nobody is to go on believing what it says, so its list goes before.
// The mark that Ambit made it stays, by which it is deleted should this be the last that Ambit does.
func (a *Applier) deleteList(ctx context.Context, writer client.Client, cm *corev1.ConfigMap, w plan.ListWrite) error {
	seen := formatVersion(w.Version)

	if w.Empties {
		cm.ResourceVersion = seen
		if err := takeOff(ctx, writer, cm, map[string]any{scope.AnnotationListHash: nil}, true); err != nil {
			return err
		}

		seen = cm.ResourceVersion
	}

	err := writer.Delete(ctx, cm, client.Preconditions{ResourceVersion: &seen})
	if err != nil && !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // writeList says what was being done.
	}

	a.store.DeletedConfigMap(cm.Namespace, cm.Name)

	return nil
}

// Bar finds the scopes of an operator namespace as whose writer the watch list may not be written that they share with scopes of
// other writers, notes that in them, and says why. The list is written as one that may; nothing enters it for the others. Their
// authors could otherwise send the operators of somebody else wherever they like. While that cannot be asked, nothing enters
// either.
func (a *Applier) Bar(
	ctx context.Context, namespace string, scopes []scope.Scope, as func(*scope.Scope) Identity,
) map[scope.Owner]error {
	barred, sharing, ids := map[scope.Owner]error{}, map[string][]int{}, make([]Identity, len(scopes))

	for i := range scopes {
		scopes[i].Barred, scopes[i].MayNotList, ids[i] = false, false, as(&scopes[i])

		if !scopes[i].Deleting() && scopes[i].WatchList != "" {
			sharing[scopes[i].WatchList] = append(sharing[scopes[i].WatchList], i)
		}
	}

	for list, of := range sharing {
		if !slices.ContainsFunc(of, func(i int) bool { return ids[i] != ids[of[0]] }) {
			continue
		}

		for _, i := range of {
			if why := a.mayNotList(ctx, ids[i], namespace, list); why != nil {
				barred[scopes[i].Owner], scopes[i].Barred = why, true
				_, scopes[i].MayNotList = errors.AsType[*MissingError](why)
			}
		}
	}

	return barred
}

// mayNotList is why an identity may not write a watch list; nil when it may.
func (a *Applier) mayNotList(ctx context.Context, id Identity, namespace, list string) error {
	writer, err := a.as(id)
	if err != nil || !a.isInDoubt(id) {
		return err
	}

	known, err := a.review(ctx, id, namespace)
	if err != nil {
		return err
	}

	missing := authority.Missing(known.held, authority.InOperatorNamespace(list)[:1])
	if len(missing) == 0 {
		return nil
	}

	var why error

	is, sure := known.isRefused("list "+list, func() error {
		why = a.breaker.dryRun(namespace, func() error { return tryList(ctx, writer, namespace, list) })

		return why
	})

	// Whatever else the API server says to it, it says to somebody who may.
	if !sure && Classify(why) == Transient {
		return fmt.Errorf("asking whether %s may write the watch list in ConfigMap %s/%s: %w", id, namespace, list, why)
	}

	if !is {
		return nil
	}

	return &MissingError{
		Identity: id, Namespace: namespace, Rules: missing, All: missing, Granted: a.isInDoubt(id),
	}
}

// tryList asks whether a watch list may be written, and writes nothing.
func tryList(ctx context.Context, writer client.Client, namespace, list string) error {
	content := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: list},
	}

	// An admission webhook is asked about this, too.
	ctx, cancel := context.WithTimeout(ctx, longTime)
	defer cancel()

	//nolint:wrapcheck // Only its class matters.
	return writer.Patch(ctx, content, apply(content), fieldOwner, client.ForceOwnership, client.DryRunAll)
}
