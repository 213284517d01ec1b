package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

const (
	// later is by how much a new object counts as younger than everything in the cluster.
	later = time.Hour
	// applier is the field manager of kubectl apply.
	applier = client.FieldOwner("kubectl-client-side-apply")
	// strict makes the API server refuse what it does not know, such as a misspelt field, as kubectl does.
	strict = client.FieldValidation(metav1.FieldValidationStrict)
)

// proposal is what an object of a file would make of the cluster.
type proposal struct {
	files.Document

	// object is what would be there; nil where the kind does not matter to Ambit.
	object client.Object
	// live is what is there; nil when nothing is.
	live *unstructured.Unstructured
	// result is one of those below; empty where the kind does not matter to Ambit.
	result string
	// refused is what the API server said to a dry run that it would refuse.
	refused string
}

// The results of proposals.
const (
	resultCreated   = "created"
	resultChanged   = "changed"
	resultUnchanged = "unchanged"
	resultDeleted   = "deleted"
	// resultAbsent is for an object that cannot be deleted, because it does not exist.
	resultAbsent = "absent"
)

func (d *proposal) isNamespace() bool { return files.IsNamespace(d.Unstructured) }

func isScope(obj client.Object) bool {
	switch obj.(type) {
	case *operatorv1.NamespaceScope, *namespacescopev1alpha1.NamespaceScope, *operatorsv1alpha1.ScopeTemplate,
		*operatorsv1alpha1.ScopeInstance:
		return true
	default:
		return false
	}
}

// mattersToPlans says whether a plan looks at objects of this kind.
func mattersToPlans(obj client.Object) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *apiextensionsv1.CustomResourceDefinition, // The first is of one of OLM's kinds.
		*corev1.Namespace, *corev1.ServiceAccount, *corev1.ConfigMap, *corev1.Pod,
		*rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return true
	default:
		return isScope(obj) || facts.TypeOfWorkload(obj) != nil
	}
}

// proposer finds out by dry runs what the files would make of the cluster, written as kubectl apply writes them.
type proposer struct {
	*reading.Cluster

	place  func(client.Object) error
	delete bool
	// fresh are namespaces that the files make.
	fresh map[string]bool
}

func (p *proposer) propose(ctx context.Context, d files.Document) (*proposal, error) {
	if err := p.mustBeServed(d); err != nil {
		return nil, err
	}

	// The older versions of OperatorGroups have the same fields as the stored one.
	if d.GroupVersionKind().GroupKind() == files.OperatorGroups {
		d.SetGroupVersionKind(operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind))
	}

	obj, err := p.asItIs(d.Unstructured)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Source, err)
	}

	out := &proposal{Document: d}
	if obj == nil || !mattersToPlans(obj) {
		return out, nil
	}

	if err := mustBeNamed(d); err != nil {
		return nil, err
	}

	resource, err := p.placed(d)
	if err != nil {
		return nil, err
	}

	live, hidden := &unstructured.Unstructured{}, false
	live.SetGroupVersionKind(d.GroupVersionKind())

	switch err := p.Get(ctx, client.ObjectKeyFromObject(d.Unstructured), live); {
	case err == nil:
		out.live = live
	case apierrors.IsForbidden(err):
		hidden = true

		p.Deny(snapshot.Denied{Verb: "get", Resource: resource, Namespace: d.GetNamespace()})
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading %s %s: %w", d.GetKind(), d.GetName(), err)
	}

	if p.delete {
		return out, p.proposeDeletion(ctx, out, hidden)
	}

	return out, p.try(ctx, out)
}

// placed puts an object where it would be, and returns the resource of its kind.
func (p *proposer) placed(d files.Document) (string, error) {
	mapping, err := p.RESTMapper().RESTMapping(d.GroupVersionKind().GroupKind(), d.GroupVersionKind().Version)

	switch {
	case meta.IsNoMatchError(err) && isServedKind(d.GroupVersionKind().GroupKind()):
		return "", snapshot.OLMNotInstalled(d.GetKind() + "s")
	case meta.IsNoMatchError(err):
		return "", snapshot.ErrNotInstalled
	case err != nil:
		return "", fmt.Errorf("%s: %w", d.Source, err)
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		d.SetNamespace("") // As kubectl does: many charts write one into all that they make.

		return mapping.Resource.Resource, nil
	}

	if err := p.place(d.Unstructured); err != nil {
		return "", fmt.Errorf("%s: %w", d.Source, err)
	}

	return mapping.Resource.Resource, nil
}

// mustBeNamed fails for an object without a name: kubectl applies and deletes by name, and what a plan says is by name, too.
func mustBeNamed(d files.Document) error {
	switch {
	case d.GetName() != "":
		return nil
	case d.GetGenerateName() != "":
		return fmt.Errorf("%s: %s %s* has metadata.generateName, by which kubectl applies nothing; give it a metadata.name",
			d.Source, d.GetKind(), d.GetGenerateName())
	default:
		return fmt.Errorf("%s: a %s has no metadata.name; give it one", d.Source, d.GetKind())
	}
}

// try asks the API server, by a dry run, what it would make of an object, and whether it would refuse it.
func (p *proposer) try(ctx context.Context, out *proposal) error {
	exists := out.live != nil

	result, err := p.dryRun(ctx, out)
	if err != nil {
		isNew := apierrors.IsNotFound(err) && p.fresh[out.GetNamespace()]

		switch {
		case apierrors.IsAlreadyExists(err):
			out.refused = command.OneLine(err).Error() + ", and you may not get it, as kubectl apply does first"
		case !isRefusal(err) && !apierrors.IsNotFound(err):
			return fmt.Errorf("trying %s %s: %w", out.GetKind(), out.GetName(), err)
		case !isNew:
			out.refused = command.OneLine(err).Error()
		}

		exists = exists || apierrors.IsAlreadyExists(err)

		result = out.merged()
	}

	if out.object, err = p.asItIs(result); err != nil {
		return err
	}

	switch {
	case !exists:
		out.result = resultCreated
		// What does not exist yet begins after everything that does.
		out.object.SetCreationTimestamp(metav1.NewTime(time.Now().Add(later)))
	case out.live != nil && sameContent(out.live, result):
		out.result = resultUnchanged
	default:
		out.result = resultChanged
	}

	return nil
}

// dryRun writes as kubectl apply does, but nothing is stored.
func (p *proposer) dryRun(ctx context.Context, out *proposal) (*unstructured.Unstructured, error) {
	result := out.DeepCopy()

	if out.live == nil {
		//nolint:wrapcheck // try says what was being done.
		return result, p.Create(ctx, result, client.DryRunAll, strict, applier)
	}

	obj, err := p.asItIs(out.Unstructured)
	if err != nil {
		return nil, err
	}

	patch, err := threeWay(out, obj)
	if err != nil {
		return nil, err
	}

	result = out.live.DeepCopy()

	//nolint:wrapcheck // try says what was being done.
	return result, p.Patch(ctx, result, patch, client.DryRunAll, strict, applier)
}

// threeWay is the patch that kubectl apply sends. For built-in kinds that is a strategic merge patch, which merges lists by their
// keys, so that what others added to them stays. For custom resources and their definitions it is a JSON merge patch, which
// replaces lists. obj is the object in its Go type.
func threeWay(out *proposal, obj client.Object) (client.Patch, error) {
	modified, err := annotated(out.Unstructured)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	current, err := json.Marshal(out.live.Object)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	var original []byte
	if last := out.live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; last != "" {
		original = []byte(last)
	}

	if isScope(obj) || isOfDefinition(obj) {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
		if err != nil {
			return nil, fmt.Errorf("writing the patch: %w", err)
		}

		return client.RawPatch(types.MergePatchType, patch), nil
	}

	keys, err := strategicpatch.NewPatchMetaFromStruct(obj)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, keys, true)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	return client.RawPatch(types.StrategicMergePatchType, patch), nil
}

// isOfDefinition says whether an object that declares no scope has a kind of which kubectl has no Go type.
func isOfDefinition(obj client.Object) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *apiextensionsv1.CustomResourceDefinition:
		return true
	default:
		return false
	}
}

// annotated is an object as kubectl apply writes it: with itself in an annotation. Without that annotation, the patch would
// remove all annotations, also those of others: the last applied object always has the field, if only empty.
func annotated(obj *unstructured.Unstructured) ([]byte, error) {
	self, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err)
	}

	out := obj.DeepCopy()
	out.SetAnnotations(labels.Merge(out.GetAnnotations(), map[string]string{corev1.LastAppliedConfigAnnotation: string(self)}))

	text, err := json.Marshal(out.Object)
	if err != nil {
		return nil, fmt.Errorf("writing it as JSON: %w", err)
	}

	return text, nil
}

// merged is what would be there if the API server did not refuse it.
func (d *proposal) merged() *unstructured.Unstructured {
	if d.live == nil {
		return d.Unstructured
	}

	out := d.live.DeepCopy()
	for key, value := range d.Object {
		if key != "metadata" && key != "status" {
			out.Object[key] = value
		}
	}

	return out
}

// sameContent compares what users write of an object.
func sameContent(a, b *unstructured.Unstructured) bool {
	written := func(u *unstructured.Unstructured) map[string]any {
		content, _ := output.Content(u.DeepCopy()) // It fails for no untyped object.
		unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		unstructured.RemoveNestedField(content, "status")

		if out := (&unstructured.Unstructured{Object: content}); len(out.GetAnnotations()) == 0 {
			out.SetAnnotations(nil)
		}

		return content
	}

	return reflect.DeepEqual(written(a), written(b))
}

// freshNamespaces are those that the files make.
func freshNamespaces(documents []files.Document) map[string]bool {
	out := map[string]bool{}

	for _, d := range documents {
		if files.IsNamespace(d.Unstructured) {
			out[d.GetName()] = true
		}
	}

	return out
}

// operatorNamespacesOf returns the operator namespaces to whose scopes the proposals can matter, and whether they can matter to
// all of them, and to templates.
func operatorNamespacesOf(proposals []*proposal) (namespaces []string, all, templates bool) {
	for _, p := range proposals {
		switch p.object.(type) {
		case nil, *unstructured.Unstructured, *apiextensionsv1.CustomResourceDefinition:
		case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			// Of the last two, some are a template's, and others are rights of accounts that write.
			all, templates = true, true
		case *operatorsv1alpha1.ScopeTemplate, *operatorsv1alpha1.ScopeInstance:
			templates = true
		default:
			namespaces = append(namespaces, p.object.GetNamespace())
		}
	}

	slices.Sort(namespaces)

	return append([]string{}, slices.Compact(namespaces)...), all, templates
}
