package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Put writes an object of an install as an identity. One with a UID is known to be there, and is changed by server-side
// apply; another is created. An object that Ambit did not make is left as it is, with ErrNameClash. The managed fields and the
// resource version in obj are those of the live one. Afterwards obj is what the API server made of it.
func (a *Applier) Put(ctx context.Context, id Identity, obj *unstructured.Unstructured) (Result, error) {
	result, err := a.put(ctx, id, obj)
	if err != nil {
		return Failed, fmt.Errorf("writing %s %s: %w", obj.GetKind(), name(obj), err)
	}

	return result, nil
}

func (a *Applier) put(ctx context.Context, id Identity, obj *unstructured.Unstructured) (Result, error) {
	writer, err := a.as(id)
	if err != nil {
		return Failed, err
	}

	if obj.GetUID() != "" {
		return a.replaceFields(ctx, writer, obj)
	}

	created := obj.DeepCopy()

	err = writer.Create(ctx, created, fieldOwner)
	if err == nil {
		a.wrote(created)
		obj.Object = created.Object
	}

	if !apierrors.IsAlreadyExists(err) {
		return Created, err //nolint:wrapcheck // Put says what was being done.
	}

	live := obj.DeepCopy()
	if getErr := writer.Get(ctx, client.ObjectKeyFromObject(obj), live); getErr != nil {
		return Failed, err //nolint:wrapcheck // Put says what was being done. The next reconcile may know whose it is.
	}

	if !IsMade(live) {
		return Failed, ErrNameClash
	}

	obj.SetUID(live.GetUID())
	obj.SetResourceVersion(live.GetResourceVersion())
	obj.SetManagedFields(live.GetManagedFields())

	return a.replaceFields(ctx, writer, obj)
}

func (a *Applier) replaceFields(ctx context.Context, writer client.Client, obj *unstructured.Unstructured) (Result, error) {
	if err := countAsApplied(ctx, writer, obj); err != nil {
		return Failed, err
	}

	applied := obj.DeepCopy()
	if err := serverSideApply(ctx, writer, applied); err != nil {
		return Failed, err
	}

	a.wrote(applied)
	obj.Object = applied.Object

	return Configured, nil
}

// countAsApplied has what the creation of an object wrote count as applied. Server-side apply takes out only what was applied
// before, and a request that creates applies nothing: a container that is not asked for any more would stay forever.
func countAsApplied(ctx context.Context, writer client.Client, obj *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(obj, sets.New(scope.FieldManager), scope.FieldManager)
	if err != nil {
		return fmt.Errorf("reading who wrote what: %w", err)
	}

	if patch == nil {
		return nil
	}

	//nolint:wrapcheck // Put says what was being done.
	return writer.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), fieldOwner)
}

// wrote tells the store of an object of the kinds that it watches for installs.
func (a *Applier) wrote(obj *unstructured.Unstructured) {
	if !slices.Contains([]string{
		"Deployment", "ServiceAccount", "Service", facts.ValidatingWebhooks, facts.MutatingWebhooks,
	}, obj.GetKind()) {
		return
	}

	// Other groups have kinds of these names, too.
	made, err := clientgoscheme.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return
	}

	typed, is := made.(client.Object)
	if is && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed) == nil {
		a.store.Wrote(typed)
	}
}

// IsMade says whether the API server recorded Ambit as who made an object.
func IsMade(live client.Object) bool {
	field := ""
	if live.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
		field = scope.MadeDeployment
	}

	return scope.WrittenByAmbit(live.GetManagedFields(), field)
}

// serverSideApply sets what Ambit decides, and leaves alone what others put beside it; obj becomes the result. The UID in the
// object makes the API server refuse it when somebody made another of that name meanwhile.
func serverSideApply(
	ctx context.Context, writer client.Client, obj *unstructured.Unstructured, with ...client.PatchOption,
) error {
	// What is not Ambit's to say must not be applied, and a version would refuse what others write beside it.
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")

	options := append([]client.PatchOption{fieldOwner, client.ForceOwnership}, with...)

	//nolint:wrapcheck // The caller says what was being done.
	return writer.Patch(ctx, obj, apply(obj), options...)
}

// Try makes the write of Put as a dry run, for the API server's own words about it.
func (a *Applier) Try(ctx context.Context, id Identity, obj *unstructured.Unstructured) error {
	writer, err := a.as(id)
	if err != nil {
		return err
	}

	if obj.GetUID() != "" {
		err = serverSideApply(ctx, writer, obj.DeepCopy(), client.DryRunAll)
	} else {
		err = writer.Create(ctx, obj.DeepCopy(), fieldOwner, client.DryRunAll)
	}

	return err //nolint:wrapcheck // The API server's own words are what is asked for.
}

// Remove deletes an object of an install, if it is still the one that was seen.
func (a *Applier) Remove(ctx context.Context, id Identity, obj client.Object) error {
	writer, err := a.as(id)
	if err != nil {
		return err
	}

	uid := obj.GetUID()
	err = writer.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy("Background"))

	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", obj.GetName(), err)
	}

	return nil
}

// Annotate sets annotations of somebody else's object, as an identity.
func (a *Applier) Annotate(ctx context.Context, id Identity, obj client.Object, annotations map[string]string) error {
	return a.merge(ctx, id, obj, map[string]any{
		metadataField: map[string]any{"uid": obj.GetUID(), "annotations": annotations},
	}, injector)
}

// AnnotatePods sets annotations of the pods of a Deployment that Ambit made, as an identity.
func (a *Applier) AnnotatePods(ctx context.Context, id Identity, d *appsv1.Deployment, annotations map[string]string) error {
	template := map[string]any{metadataField: map[string]any{"annotations": annotations}}

	err := a.merge(ctx, id, d, map[string]any{
		metadataField: map[string]any{"uid": d.UID}, "spec": map[string]any{"template": template},
	}, fieldOwner)
	if err == nil {
		a.store.Wrote(d)
	}

	return err
}

// merge sets fields of an object. The UID among them makes the API server refuse it when it is another one by now.
func (a *Applier) merge(
	ctx context.Context, id Identity, obj client.Object, fields map[string]any, manager client.FieldOwner,
) error {
	writer, err := a.as(id)
	if err != nil {
		return err
	}

	if err := writer.Patch(ctx, obj, merge(fields), manager); err != nil {
		return fmt.Errorf("annotating %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}

	return nil
}

// PutAggregated writes a ClusterRole that belongs to no scope: one that is missing, when live is nil; else what differs
// between the two, unless somebody wrote live meanwhile. What an identity is known not to be allowed is tried by a dry run,
// and once only.
func (a *Applier) PutAggregated(ctx context.Context, id Identity, live, role *rbacv1.ClusterRole) error {
	change := &plan.Change{
		Action: plan.Create, Key: facts.ProjectedKey{Kind: projected.ClusterRole, Name: role.Name},
		Copy: &plan.Copy{Object: projected.Object{Kind: projected.ClusterRole, Name: role.Name, Rules: role.Rules}},
	}
	if live != nil {
		change.Action = plan.Update
	}

	writer, err := a.as(id)
	if err == nil {
		err = a.mayNot(ctx, id, change, func() error { return putAggregated(ctx, client.NewDryRunClient(writer), live, role) })
	}

	if err == nil {
		err = putAggregated(ctx, writer, live, role)
	}

	if err != nil {
		return fmt.Errorf("writing ClusterRole %s: %w", role.Name, err)
	}

	return nil
}

func putAggregated(ctx context.Context, writer client.Writer, live, role *rbacv1.ClusterRole) error {
	if live == nil {
		return writer.Create(ctx, role.DeepCopy(), fieldOwner) //nolint:wrapcheck // PutAggregated says what was being done.
	}

	changes := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})

	//nolint:wrapcheck // PutAggregated says what was being done.
	return writer.Patch(ctx, role.DeepCopy(), changes, fieldOwner)
}

// mayNot says what an identity lacks for a change that has no namespace, if a dry run is refused as well.
func (a *Applier) mayNot(ctx context.Context, id Identity, c *plan.Change, dryRun func() error) error {
	if !a.isInDoubt(id) {
		return nil
	}

	known, err := a.review(ctx, id, "")
	if nobody, no := errors.AsType[*IdentityError](err); no {
		return nobody
	}

	if err != nil {
		return nil //nolint:nilerr // The write is tried, and fails in its own words.
	}

	missing := authority.OfChange(known.held, c, nil)
	if len(missing) == 0 {
		return nil
	}

	if is, _ := known.isRefused(what(c), dryRun); !is {
		return nil
	}

	return &MissingError{Identity: id, Rules: missing, All: missing, Granted: true}
}

// Lacks returns what an identity misses of what is needed, for each place in which it misses something. Ambit itself, where
// it holds everything, is not asked.
func (a *Applier) Lacks(ctx context.Context, id Identity, needs []authority.Place) ([]authority.Place, error) {
	if !a.isInDoubt(id) {
		_, err := a.as(id)

		return nil, err
	}

	var missing []authority.Place

	for _, place := range authority.Places(needs) {
		known, err := a.review(ctx, id, place.Namespace)
		if err != nil {
			return nil, err
		}

		if rules := authority.MissingAt(known.held, place); rules != nil {
			known.lacked.Store(true)

			missing = append(missing, authority.Place{Namespace: place.Namespace, Rules: rules})
		}
	}

	if a.Lacking != nil && len(missing) > 0 {
		a.Lacking(id.User(), missing)
	}

	return missing, nil
}

func name(obj client.Object) string { return cache.MetaObjectToName(obj).String() }
