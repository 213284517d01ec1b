package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// restarts makes the readers begin again whose list changed.
func (r *run) restarts(ctx context.Context) {
	r.out.Restarts = make([]WriteOutcome, len(r.plan.Restarts))
	written := r.writtenLists()

	r.each(ctx, len(r.plan.Restarts), func(i int) {
		restart := &r.plan.Restarts[i]
		if r.beginsAgain(restart.Workload) {
			r.out.Restarts[i] = WriteOutcome{Result: Unchanged}

			return
		}

		late := LateWrite{Scopes: r.ownersOf(restart.Scopes...), Restart: restart}

		err := r.writeBounded(ctx, restartsReader+restart.Reader(), late, func(ctx context.Context) error {
			needs := authority.InOperatorNamespace(restart.List)

			return r.asOneOf(ctx, r.identitiesOf(restart.Scopes), needs, func(writer client.Client) error {
				return r.restart(ctx, writer, restart, plan.ResolveHash(restart.Reads, written))
			})
		})

		r.out.Restarts[i] = WriteOutcome{Result: Configured}
		if err != nil {
			r.out.Restarts[i] = WriteOutcome{Result: Failed, Err: fmt.Errorf("restarting %s: %w", restart.Reader(), err)}
		}
	})
}

// writtenLists are the hashes of the lists that this run wrote, by name. A reader that was due for the earlier list begins with
// this one, and is annotated with its hash: the time alone does not tell a later plan which of the two was first.
func (r *run) writtenLists() map[string]string {
	written := map[string]string{}

	for i := range r.out.Lists {
		o := &r.out.Lists[i]
		if o.Write.Action == plan.ApplyList && o.Err == nil && o.Result != Unchanged {
			written[r.plan.Lists[i].Name] = scope.ListHash(o.Write.Value, o.Write.Generation)
		}
	}

	return written
}

// restart annotates the pod template, by which the workload's controller rolls its pods; or, where OLM would undo that, records
// the time on the workload and evicts the pods. The time comes first: should Ambit die between the two, the restart still
// happens, after an interval. Pods of kinds that are not restarted by their template are only evicted.
func (r *run) restart(ctx context.Context, writer client.Client, restart *plan.Restart, hash string) error {
	if restart.Workload.Kind.Restarts() == facts.ByTemplate {
		if err := r.annotate(ctx, writer, restart, hash); err != nil {
			return err
		}
	}

	return errors.Join(collect.Map(restart.Evict, func(pod facts.PodRef) error { return r.evict(ctx, writer, pod) })...)
}

func (r *run) annotate(ctx context.Context, writer client.Client, restart *plan.Restart, hash string) error {
	content := map[string]any{"metadata": annotations(map[string]any{
		scope.AnnotationRestarted:   restart.At.UTC().Format(time.RFC3339),
		scope.AnnotationRestartWait: restart.Wait.String(),
	})}
	template := map[string]any{scope.AnnotationListHash: hash}

	if restart.Last {
		content["metadata"] = annotations(map[string]any{scope.AnnotationRestarted: nil, scope.AnnotationRestartWait: nil})
		template[scope.AnnotationListHash] = nil
	}

	if len(restart.Evict) == 0 && !restart.TemplateStays {
		content["spec"] = map[string]any{"template": map[string]any{"metadata": annotations(template)}}
	}

	obj := workload(restart.Workload, r.plan.Key.Namespace)

	err := writer.Patch(ctx, obj, merge(content), fieldOwner)
	if apierrors.IsNotFound(err) {
		return nil // It is gone, and its pods with it.
	}

	if err != nil {
		return err //nolint:wrapcheck // restarts says what was being done.
	}

	r.store.Wrote(obj)

	return nil
}

func annotations(values map[string]any) map[string]any {
	return map[string]any{"annotations": values}
}

// evict asks for the end of a pod in the way that honours PodDisruptionBudgets. It asks for the pod that the plan saw: one that
// was made again under its name, as those of a StatefulSet are, began later and reads the list already.
func (r *run) evict(ctx context.Context, writer client.Client, ref facts.PodRef) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.plan.Key.Namespace, Name: ref.Name}}
	seen := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ref.UID}}

	err := writer.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{DeleteOptions: seen})

	switch {
	case err == nil, apierrors.IsNotFound(err), isReplaced(err):
		return nil // It is gone. The watch of pods asks for a plan that decides about one of the same name.
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("evicting pod %s: %w", ref.Name, ErrBudget)
	default:
		return fmt.Errorf("evicting pod %s: %w", ref.Name, err)
	}
}

// isReplaced says whether a conflict is about the pod. One about its PodDisruptionBudget, which the API server could not write,
// says nothing of the pod.
func isReplaced(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsConflict(err) {
		return false
	}

	about := status.ErrStatus.Details

	return about != nil && about.Kind != "poddisruptionbudgets"
}

func workload(ref facts.WorkloadRef, namespace string) client.Object {
	obj := ref.Kind.Type().New()
	obj.SetNamespace(namespace)
	obj.SetName(ref.Name)

	return obj
}
