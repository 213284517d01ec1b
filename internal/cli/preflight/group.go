package preflight

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// group is the OperatorGroup of the namespace, else the one that the files would make there; nil when there is none.
func (o *Options) group(
	ctx context.Context, v *inquiry, documents []files.Document,
) (*operatorsv1.OperatorGroup, error) {
	var list operatorsv1.OperatorGroupList

	err := v.List(ctx, &list, client.InNamespace(o.Namespace))
	groups := list.Items

	switch unknown := meta.IsNoMatchError(err) || apierrors.IsNotFound(err); {
	case unknown && o.isNamedInstall():
		return nil, errors.New("the cluster does not know OperatorGroups; install Ambit's profile with OLM's kinds, or OLM")
	case unknown:
		v.Notes = append(v.Notes, "the cluster does not know OperatorGroups, so nothing would install it; install Ambit's profile "+
			"with OLM's kinds, or OLM")
	case apierrors.IsForbidden(err) && !o.isNamedInstall():
		v.Deny(snapshot.Denied{Verb: "list", Resource: "operatorgroups", Namespace: o.Namespace})
	case err != nil:
		return nil, fmt.Errorf("listing the OperatorGroups of namespace %s: %w", o.Namespace, command.OneLine(err))
	}

	if len(groups) == 0 {
		if groups, err = o.groupsOfFiles(v, documents); err != nil {
			return nil, err
		}
	}

	switch len(groups) {
	case 0:
		return nil, nil //nolint:nilnil // None is an answer.
	case 1:
		return &groups[0], nil
	default:
		return nil, fmt.Errorf("namespace %s has %d OperatorGroups, so nothing can be installed there; delete all but one",
			o.Namespace, len(groups))
	}
}

// groupsOfFiles are the OperatorGroups that the files would make in the operator's namespace.
func (o *Options) groupsOfFiles(v *inquiry, documents []files.Document) ([]operatorsv1.OperatorGroup, error) {
	var out []operatorsv1.OperatorGroup

	for _, d := range documents {
		if d.GroupVersionKind().GroupKind() != files.OperatorGroups {
			continue
		}

		if d.GetNamespace() != "" && d.GetNamespace() != o.Namespace {
			v.Notes = append(v.Notes, fmt.Sprintf("OperatorGroup %s of the files is not one of namespace %s, where the operator would "+
				"be; if that is where it belongs, give -n %s", placeOf(d), o.Namespace, d.GetNamespace()))

			continue
		}

		// The older versions have the same fields.
		current := d.DeepCopy()
		current.SetGroupVersionKind(operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind))

		obj, err := files.Typed(v.Scheme(), current)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Source, err)
		}

		if group, is := obj.(*operatorsv1.OperatorGroup); is {
			group.Namespace = o.Namespace
			out = append(out, *group)
		}
	}

	return out, nil
}

// targets are the namespaces that the operator would serve: those of --in and --namespace-selector, else those of the group, else
// its own.
func (o *Options) targets(
	ctx context.Context, v *inquiry, group *operatorsv1.OperatorGroup, documents []files.Document,
) ([]string, error) {
	switch {
	case len(o.In) > 0 || o.Selector != "" || group == nil:
		return o.namespacesFor(ctx, v)
	case len(group.Status.Namespaces) > 0 && v.beyond == nil:
		return group.Status.Namespaces, nil
	}

	declared := install.Group{Named: group.Spec.TargetNamespaces}

	if len(declared.Named) == 0 && group.Spec.Selector != nil {
		declared.Selector = group.Spec.Selector.Raw
	}

	targets := declared.ResolveNamed()

	if v.beyond == nil {
		var existing map[string]facts.Namespace

		if declared.Selector != nil {
			var err error
			if existing, err = v.selectable(ctx, documents); err != nil {
				return nil, err
			}
		}

		targets = declared.Resolve(existing, o.AmbitNamespace)
	}

	if targets.Problem != "" {
		return nil, fmt.Errorf("the OperatorGroup %s of namespace %s has no target namespaces: %s", group.Name, o.Namespace,
			targets.Problem)
	}

	return targets.Namespaces, nil
}

// selectable are the namespaces that exist, and those that the files would make.
func (v *inquiry) selectable(ctx context.Context, documents []files.Document) (map[string]facts.Namespace, error) {
	var list corev1.NamespaceList

	err := v.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		return nil, errors.New("you may not list namespaces, so it is unknown which the OperatorGroup selects; name them by --in")
	}

	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}

	out := map[string]facts.Namespace{}

	for _, d := range documents {
		if files.IsNamespace(d.Unstructured) {
			out[d.GetName()] = facts.NamespaceWith(d.GetLabels())
		}
	}

	addNamespaces(out, list.Items)

	return out, nil
}

// notThere notes the namespaces that do not exist yet, of those in which something is missing: nobody can be granted anything
// there.
func (v *inquiry) notThere(ctx context.Context, namespaces []string) error {
	absent := make([]bool, len(namespaces))

	err := v.Each(ctx, "looking for namespaces", len(namespaces), func(i int) error {
		err := v.Get(ctx, client.ObjectKey{Name: namespaces[i]}, &corev1.Namespace{})
		absent[i] = apierrors.IsNotFound(err)

		return nil // A caller who may not read a namespace learns the rest.
	})

	for i, name := range namespaces {
		if absent[i] {
			v.Notes = append(v.Notes, fmt.Sprintf("namespace %s does not exist; make it before you apply what -o yaml prints", name))
		}
	}

	return err
}
