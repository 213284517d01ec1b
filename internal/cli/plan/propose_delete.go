package plan

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
)

// proposeDeletion asks the API server, by a dry run, whether it would delete an object, and marks what is there as deleted.
func (p *proposer) proposeDeletion(ctx context.Context, out *proposal, hidden bool) error {
	there := out.live

	switch {
	case there == nil && !hidden:
		out.result = resultAbsent

		return nil
	case there == nil:
		// What may not be read may be there all the same.
		there = out.Unstructured
	}

	// A namespace that is on its way out refuses to be deleted again.
	if there.GetDeletionTimestamp() == nil {
		err := p.Delete(ctx, there.DeepCopy(), client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationBackground))

		switch {
		case apierrors.IsNotFound(err):
			out.result = resultAbsent

			return nil
		case isRefusal(err):
			out.refused = command.OneLine(err).Error()
		case err != nil:
			return fmt.Errorf("trying to delete %s %s: %w", out.GetKind(), out.GetName(), err)
		}
	}

	gone, err := p.asItIs(there.DeepCopy())
	if err != nil {
		return err
	}

	markDeleted(gone)

	out.object, out.result = gone, resultDeleted

	return nil
}

// markDeleted marks an object as deleted. Ambit serves no scope without its finalizer, so one has it that may not be read, or
// that Ambit has not seen yet.
func markDeleted(obj client.Object) {
	if isScope(obj) && obj.GetNamespace() != "" {
		controllerutil.AddFinalizer(obj, operatorv1.Finalizer)
	}

	obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	obj.SetResourceVersion(strconv.FormatUint(math.MaxUint64, 10)) // After everything that is there.
}

// isRefusal says whether an error is the API server's answer to what was tried, and not a failure to ask.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err)
}

// endScopes marks as deleted the scopes of namespaces that would be deleted: they go with their namespace.
func endScopes(resources []client.Object, proposals []*proposal) {
	ending := map[string]bool{}

	for _, p := range proposals {
		if ns, is := p.object.(*corev1.Namespace); is && p.result == resultDeleted {
			ending[ns.Name] = true
		}
	}

	for _, obj := range resources {
		if ending[obj.GetNamespace()] && obj.GetDeletionTimestamp() == nil {
			markDeleted(obj)
		}
	}
}

// goesAlong are notes on definitions of kinds that Ambit serves: all objects of the kind would be deleted with them.
func goesAlong(proposals []*proposal) []string {
	var notes []string

	for _, p := range proposals {
		crd, is := p.object.(*apiextensionsv1.CustomResourceDefinition)
		if !is || p.result != resultDeleted {
			continue
		}

		switch crd.Spec.Group {
		case operatorv1.GroupVersion.Group, namespacescopev1alpha1.GroupVersion.Group, operatorsv1alpha1.GroupVersion.Group:
			notes = append(notes, fmt.Sprintf("each %s goes with CustomResourceDefinition %s; what follows from that is not "+
				"in the plan", crd.Spec.Names.Kind, crd.Name))
		}
	}

	return notes
}
