package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// lists writes the watch lists, now that it is known which members could be served.
func (r *run) lists(ctx context.Context) {
	for i := range r.plan.Lists {
		l := &r.plan.Lists[i]
		o := ListOutcome{Write: l.Resolve(r.missing), Fate: Unchanged}

		if o.Write.Action != plan.KeepList && o.Write.Action != plan.BlockedList && !r.staysForEver() {
			o.Fate, o.Err = r.writeList(ctx, l, o.Write)
		}

		if o.Err != nil {
			o.Fate, o.Class = Failed, Classify(o.Err)
		}

		r.out.Lists = append(r.out.Lists, o)
	}
}

// staysForEver says whether there is nobody who may take back a list.
func (r *run) staysForEver() bool { return r.NeedDelegate && len(r.identities) == 0 }

// missing says whether something that the scope projects is still missing in a member.
func (r *run) missing(index int, namespace string) bool {
	_, unserved := r.unserved[member{index, namespace}]

	return unserved
}

// listIdentity is who writes a list: one of the scopes that share it, or one that leaves it. A list that no scope speaks of
// any more is what one of them called its list before, so any of them takes it back; Ambit does where there is no scope left.
func (r *run) listIdentity(l *plan.ListPlan) Identity {
	if len(l.Scopes) > 0 {
		return r.writer(l.Scopes)
	}

	var leaving, all []int

	for i := range r.plan.Scopes {
		all = append(all, i)

		if r.plan.Scopes[i].Scope.WatchList == l.Name {
			leaving = append(leaving, i)
		}
	}

	switch {
	case len(leaving) > 0:
		return r.writer(leaving)
	case len(all) > 0:
		return r.writer(all)
	default:
		return Own()
	}
}

// writer is who writes what several scopes ask for: the first of them that has somebody to write for it, so that one whose
// account is missing holds up no other.
func (r *run) writer(scopes []int) Identity {
	for _, i := range scopes {
		if id := r.identities[i]; id.own || id.user != "" {
			return id
		}
	}

	return r.identities[scopes[0]]
}

func (r *run) writeList(ctx context.Context, l *plan.ListPlan, w plan.ListWrite) (Fate, error) {
	id := r.listIdentity(l)

	writer, err := r.as(id)
	if err == nil {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.plan.Home, Name: l.Name}}

		if w.Action == plan.DeleteList {
			err = r.deleteList(ctx, writer, cm, w)
		} else {
			err = r.applyList(ctx, writer, cm, w)
		}

		err = r.explainHome(ctx, id, l.Name, err)
	}

	switch {
	case err != nil:
		return Failed, fmt.Errorf("writing the watch list into ConfigMap %s/%s: %w", r.plan.Home, l.Name, err)
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

	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}

	patch := client.RawPatch(types.ApplyPatchType, body)
	if err := writer.Patch(ctx, cm, patch, fieldOwner, client.ForceOwnership); err != nil {
		return err //nolint:wrapcheck // writeList says what was being done.
	}

	a.store.Wrote(cm)

	return nil
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

	return marks
}

func (a *Applier) deleteList(ctx context.Context, writer client.Client, cm *corev1.ConfigMap, w plan.ListWrite) error {
	seen := formatVersion(w.Version)

	err := writer.Delete(ctx, cm, client.Preconditions{ResourceVersion: &seen})
	if err != nil && !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // writeList says what was being done.
	}

	a.store.DeletedConfigMap(cm.Namespace, cm.Name)

	return nil
}
