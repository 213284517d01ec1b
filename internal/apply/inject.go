package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// injector is the field manager of what is injected into objects of others.
const injector = client.FieldOwner(scope.InjectionManager)

// injections writes into operators: what is taken back before the lists are written, the rest after.
func (r *run) injections(ctx context.Context, takenBack bool) {
	if r.out.Injections == nil {
		r.out.Injections = make([]WriteOutcome, len(r.plan.Injections))
	}

	written := r.writtenLists()

	r.each(ctx, len(r.plan.Injections), func(i int) {
		in := plan.ResolveInjection(&r.plan.Injections[i], written)
		if in.IsTakenBack() != takenBack {
			return
		}

		o := WriteOutcome{Result: Unchanged}
		// An operator that begins without a list, or with an empty one, would watch everything.
		if in.List == "" || r.out.WrittenList(r.plan, in.List) != nil {
			needs := authority.OfInjection(in.Workload.Kind)
			late := LateWrite{Scopes: r.ownersOf(in.Scope), Target: in.Target(), TakenBack: in.IsTakenBack()}
			o = r.inject(ctx, r.injectAs(&in), late, needs, func(ctx context.Context, writer client.Client) error {
				return r.writeInjection(ctx, writer, &in)
			})
		}

		// Nobody waits for a record to go that nobody may write.
		if in.Action == plan.DisownInjection && o.Is(Refused) {
			o = WriteOutcome{Result: Unchanged}
		}

		r.out.Injections[i] = o
	})
}

// beginsAgain says whether this run injects something into a workload by which its pods begin with the present lists, or may
// still do so.
func (r *run) beginsAgain(workload facts.WorkloadRef) bool {
	i := slices.IndexFunc(r.plan.Injections, func(in plan.Injection) bool { return in.Workload == workload && in.Reads != nil })

	return i >= 0 && (r.out.Injections[i].Result == Configured || errors.Is(r.out.Injections[i].Err, ErrUnanswered))
}

// webhooks limits the webhooks of operators to the members that the list names.
func (r *run) webhooks(ctx context.Context) {
	r.out.Webhooks = make([]WriteOutcome, len(r.plan.Webhooks))

	for i := range r.plan.Webhooks {
		w := &r.plan.Webhooks[i]
		r.out.Webhooks[i].Result = Unchanged

		var members []string

		if !w.IsTakenBack() {
			list := r.out.WrittenList(r.plan, w.List)
			if list == nil {
				continue
			}

			members = list.Members
		}

		ops := plan.ResolveWebhook(w, members)
		if ops == nil {
			continue
		}

		// What is missing for one is not granted in a namespace, so the API server's own words say it best.
		late := LateWrite{Scopes: r.ownersOf(w.Scope), Target: w.Target(), TakenBack: w.IsTakenBack()}
		ids := []Identity{r.takesBackAs(w.Scope)}
		r.out.Webhooks[i] = r.inject(ctx, ids, late, nil, func(ctx context.Context, writer client.Client) error {
			return r.patchObject(ctx, writer, webhookConfiguration(w), ops, w.Live.Version)
		})
	}
}

// WrittenList returns a watch list that is in the cluster as a plan wants it to be, with somebody in it, or nil.
func (o *Outcome) WrittenList(p *plan.Plan, name string) *plan.ListWrite {
	if l := o.List(p, name); l != nil && l.Written() && len(l.Write.Members) > 0 {
		return &l.Write
	}

	return nil
}

// takesBackAs is who writes for the scope with an index, or for one that is gone where it is negative.
func (r *run) takesBackAs(index int) Identity {
	if index < 0 {
		return r.orphansAs
	}

	return r.inOperatorNamespace[index]
}

// injectAs are those who may make an injection. Nothing changes by the end of a record but that the owner of the object meets no
// conflict, so anybody does.
func (r *run) injectAs(in *plan.Injection) []Identity {
	if in.Action == plan.DisownInjection {
		return append([]Identity{r.orphansAs}, r.inOperatorNamespace...)
	}

	return []Identity{r.takesBackAs(in.Scope)}
}

// inject makes one write as the first of some that may, of what there is to tell should it be late. needs are the rights in the
// operator namespace that it takes.
func (r *run) inject(
	ctx context.Context, ids []Identity, of LateWrite, needs []rbacv1.PolicyRule, write func(context.Context, client.Client) error,
) WriteOutcome {
	err := r.writeBounded(ctx, injectsInto+of.Target, of, func(ctx context.Context) error {
		return r.asOneOf(ctx, ids, needs, func(writer client.Client) error { return write(ctx, writer) })
	})

	switch {
	case apierrors.IsNotFound(err):
		return WriteOutcome{Result: Unchanged} // It is gone, and the injection with it.
	case err != nil:
		err = fmt.Errorf("injecting into %s: %w", of.Target, err)

		return WriteOutcome{Result: Failed, Err: err}
	default:
		return WriteOutcome{Result: Configured}
	}
}

func (r *run) writeInjection(ctx context.Context, writer client.Client, in *plan.Injection) error {
	obj := r.target(in.Workload)

	switch in.Action {
	case plan.ApplyInjection, plan.ReleaseInjection:
		return r.applyInjection(ctx, writer, obj, in)
	case plan.PatchInjection:
		return r.patchObject(ctx, writer, obj, in.Patch, in.Version)
	case plan.RestoreInjection, plan.DisownInjection:
		if err := r.patchObject(ctx, writer, obj, in.Patch, in.Version); err != nil {
			return err
		}

		return r.disown(ctx, writer, obj)
	}

	return nil
}

func (r *run) target(ref facts.WorkloadRef) client.Object {
	if ref.Kind != plan.CSVKind {
		return workload(ref, r.plan.Key.Namespace)
	}

	csv := scope.NewOLM(scope.KindCSV)
	csv.SetNamespace(r.plan.Key.Namespace)
	csv.SetName(ref.Name)

	return csv
}

// applyInjection applies what is wanted, or nothing at all, by which the API server takes back what was applied. It is
// never forced: a field of somebody else's is a conflict, or is written over so that it can be put back.
func (r *run) applyInjection(ctx context.Context, writer client.Client, obj client.Object, in *plan.Injection) error {
	err := r.applyFields(ctx, writer, obj, in, in.Version)

	switch {
	case len(in.Otherwise) == 0:
		return err
	case errors.Is(err, ErrFieldClash):
		return r.patchObject(ctx, writer, obj, in.Otherwise, in.Version)
	case in.Action == plan.ReleaseInjection && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueNotFound):
		// Somebody else mounts the volume that would go.
		if err := r.patchObject(ctx, writer, obj, in.Otherwise, in.Version); err != nil {
			return err
		}

		return r.applyFields(ctx, writer, obj, in, scope.ParseVersion(obj.GetResourceVersion()))
	default:
		return err
	}
}

// applyFields makes one server-side apply. The resource version goes along, so that nothing is created where a workload has just
// been deleted.
func (r *run) applyFields(
	ctx context.Context, writer client.Client, obj client.Object, in *plan.Injection, seen uint64,
) error {
	head := map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace(), "resourceVersion": formatVersion(seen)}
	version := in.Workload.Kind.Type().Resource.GroupVersion().String()
	content := map[string]any{"apiVersion": version, "kind": string(in.Workload.Kind), "metadata": head}

	if in.Action == plan.ApplyInjection {
		head["annotations"] = in.Marks
		content["spec"] = in.Spec
	}

	// A field of somebody else's, which stays in the way, is told from an object that changed meanwhile. The API server answers
	// both with a conflict.
	err := r.send(ctx, writer, obj, apply(content))
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("%w: %w", ErrFieldClash, err)
	}

	return err
}

// send makes one write into an operator, and stores what came of it.
func (r *run) send(ctx context.Context, writer client.Client, obj client.Object, p client.Patch) error {
	if err := writer.Patch(ctx, obj, p, injector); err != nil {
		return err //nolint:wrapcheck // inject says what was being done.
	}

	r.store.Wrote(obj)

	return nil
}

// patchObject makes changes at named places of the object that was seen with a resource version, and of no other.
func (r *run) patchObject(
	ctx context.Context, writer client.Client, obj client.Object, ops []injection.Op, seen uint64,
) error {
	ops = append([]injection.Op{{Op: "replace", Path: "/metadata/resourceVersion", Value: formatVersion(seen)}}, ops...)

	return r.send(ctx, writer, obj, patch{types.JSONPatchType, ops})
}

// disownTries is how often the record of a write is taken off at once. Kubernetes writes the status of an operator when what it
// runs has changed, just while its record goes.
const disownTries = 5

// disown removes the record that the injector wrote what it only restored, so that its owner can change it without a conflict.
// What was written with the status was not the injector's, whatever it is called, and stays known.
func (r *run) disown(ctx context.Context, writer client.Client, obj client.Object) error {
	var err error

	for range disownTries {
		left := slices.DeleteFunc(slices.Clone(obj.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == scope.InjectionManager && e.Subresource == ""
		})
		if len(left) == len(obj.GetManagedFields()) {
			return nil
		}

		err = r.patchObject(ctx, writer, obj, []injection.Op{{Op: "replace", Path: "/metadata/managedFields", Value: left}},
			scope.ParseVersion(obj.GetResourceVersion()))
		if !apierrors.IsConflict(err) {
			return err
		}

		// It is read again by a patch of nothing, which takes the right to patch it. Who writes may have no other.
		if err := r.send(ctx, writer, obj, client.RawPatch(types.JSONPatchType, []byte("[]"))); err != nil {
			return err
		}
	}

	return err
}

func webhookConfiguration(w *plan.WebhookPlan) client.Object {
	named := metav1.ObjectMeta{Name: w.Live.Name}
	if w.Live.Kind == facts.MutatingWebhooks {
		return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: named}
	}

	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named}
}
