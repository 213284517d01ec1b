package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
)

// ErrNotInstalled is returned when the cluster knows none of Ambit's kinds.
var ErrNotInstalled = errors.New("the cluster does not know NamespaceScopes; install Ambit first")

// OLMNotInstalled is the error about something of OLM's kinds, where the cluster does not know its kind.
func OLMNotInstalled(what string) error {
	return fmt.Errorf("the cluster does not know %s; install Ambit with OLM's kinds, or OLM", what)
}

// Resources returns the resources of all kinds that declare scopes: NamespaceScopes of these namespaces, or of all where none is
// named, and if templates is set, ScopeTemplates and ScopeInstances. They are sorted by kind, namespace and name.
func (r *Reader) Resources(ctx context.Context, namespaces []string, templates bool) ([]client.Object, error) {
	type question struct {
		list                client.ObjectList
		resource, namespace string
	}

	var questions []question

	if namespaces == nil {
		namespaces = []string{""}
	}

	for _, ns := range namespaces {
		questions = append(questions,
			question{&operatorv1.NamespaceScopeList{}, "namespacescopes.operator.ibm.com", ns},
			question{&namespacescopev1alpha1.NamespaceScopeList{}, "namespacescopes.namespacescope.ibm.com", ns})
	}

	if templates {
		questions = append(questions,
			question{&operatorsv1alpha1.ScopeTemplateList{}, "scopetemplates", ""},
			question{&operatorsv1alpha1.ScopeInstanceList{}, "scopeinstances", ""})
	}

	if len(questions) == 0 {
		return nil, nil
	}

	answers := make([]Listed, len(questions))

	err := r.Each(ctx, "reading scopes", len(questions), func(i int) error {
		var err error

		q := questions[i]
		answers[i], err = r.Need(ctx, q.list, q.resource, q.namespace)

		return err
	})
	if err != nil {
		return nil, err
	}

	if !slices.ContainsFunc(answers, func(l Listed) bool { return l != Unknown }) {
		return nil, ErrNotInstalled
	}

	var out []client.Object

	for i := range questions {
		out = append(out, Objects(questions[i].list)...)
	}

	slices.SortStableFunc(out, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()))
	})

	return out, nil
}

func rank(obj client.Object) int {
	switch obj.(type) {
	case *operatorv1.NamespaceScope:
		return 0
	case *namespacescopev1alpha1.NamespaceScope:
		return 1
	case *operatorsv1alpha1.ScopeTemplate:
		return 2
	default:
		return 3
	}
}

// Objects are the items of a list.
func Objects(list client.ObjectList) []client.Object {
	var out []client.Object

	// It cannot fail for the lists of client-go and of Ambit.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			out = append(out, obj)
		}

		return nil
	})

	return out
}
