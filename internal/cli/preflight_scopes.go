package cli

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	files "k8s.io/cli-runtime/pkg/resource"

	older "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errNothingToCheck = errors.New("there is no object in the files")

// scopes are those that are asked about: of the cluster, or of files.
func (o *PreflightOptions) scopes(ctx context.Context, w *world) ([]scope.Scope, error) {
	if len(o.Files) > 0 {
		return o.scopesInFiles(w.Scheme())
	}

	w.to = o.Namespace

	wanted, err := consent.ParseWanted(o.Scope)
	if err != nil {
		return nil, usageError{err}
	}

	s, err := w.scope(ctx, wanted)
	if err != nil {
		return nil, err
	}

	return []scope.Scope{*s}, nil
}

// scopesInFiles reads what kubectl would apply. What is no scope is left out, as long as there is one.
func (o *PreflightOptions) scopesInFiles(scheme *runtime.Scheme) ([]scope.Scope, error) {
	infos, err := files.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().
		NamespaceParam(o.Namespace).DefaultNamespace().
		FilenameParam(false, &files.FilenameOptions{Filenames: o.Files}).Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", oneLineError{err})
	}

	var scopes []scope.Scope

	for _, info := range infos {
		s, is, err := scopeOf(scheme, info.Object, o.Namespace)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", info.Source, oneLineError{err})
		}

		if is {
			scopes = append(scopes, s)
		}
	}

	if len(scopes) == 0 {
		return nil, errNothingToCheck
	}

	return scopes, nil
}

// scopeOf compiles an object that is a scope.
func scopeOf(scheme *runtime.Scheme, obj runtime.Object, namespace string) (s scope.Scope, is bool, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return s, false, fmt.Errorf("it is no Kubernetes object: %w", err)
	}

	typed, err := scheme.New(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return s, false, nil //nolint:nilerr // A kind that Ambit does not know is none of its scopes.
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return s, false, fmt.Errorf("it has fields of the wrong type: %w", err)
	}

	switch nss := typed.(type) {
	case *operatorv1.NamespaceScope:
		if nss.Namespace == "" {
			nss.Namespace = namespace
		}

		return compile.NamespaceScope(nss), true, nil
	case *older.NamespaceScope:
		if nss.Namespace == "" {
			nss.Namespace = namespace
		}

		return compile.OlderNamespaceScope(nss), true, nil
	default:
		return s, false, nil
	}
}
