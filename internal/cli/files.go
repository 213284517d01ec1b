package cli

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	files "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errNoObject = errors.New("reading the files: there is no object in them")

// document is an object of a file.
type document struct {
	*unstructured.Unstructured

	// Source is where it was read.
	Source string
}

// readFiles reads what kubectl would apply. Objects that name no namespace get the given one once it is known that they have one.
func readFiles(names []string, recursive bool) ([]document, error) {
	infos, err := files.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().
		FilenameParam(false, &files.FilenameOptions{Filenames: names, Recursive: recursive}).Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", oneLine(err))
	}

	out := make([]document, 0, len(infos))

	for _, info := range infos {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(info.Object)
		if err != nil {
			return nil, fmt.Errorf("reading %s: it is no Kubernetes object: %w", info.Source, oneLine(err))
		}

		out = append(out, document{Unstructured: &unstructured.Unstructured{Object: content}, Source: info.Source})
	}

	if len(out) == 0 {
		return nil, errNoObject
	}

	return out, nil
}

// typed returns an object as the type that the scheme has for its kind; nil where it has none.
func typed(scheme *runtime.Scheme, from *unstructured.Unstructured) (client.Object, error) {
	empty, err := scheme.New(from.GroupVersionKind())
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // A kind that Ambit does not know is none of its business.
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, empty); err != nil {
		return nil, fmt.Errorf("%s %s has fields of the wrong type: %w", from.GetKind(), from.GetName(), oneLine(err))
	}

	obj, _ := empty.(client.Object) // Everything in the scheme is one.

	return obj, nil
}

// visit calls f for each item of a list.
func visit(list client.ObjectList, f func(client.Object)) {
	// It cannot fail for the lists of client-go and of Ambit.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, is := item.(client.Object); is {
			f(obj)
		}

		return nil
	})
}
