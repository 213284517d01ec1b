package preflight

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// scopeOfCluster finds the scope in the cluster that is asked about.
func (o *Options) scopeOfCluster(ctx context.Context, c client.Reader) ([]scope.Scope, error) {
	wanted, err := grant.ParseWanted(o.Scope)
	if err != nil {
		return nil, command.Usage(err)
	}

	s, err := reading.FindScope(ctx, c, o.Namespace, wanted, reading.Naming{
		Before: "ambit preflight ", WithoutOne: "give the files of one with -f",
	})
	if err != nil {
		return nil, err
	}

	if s.Deleting() {
		return nil, fmt.Errorf("%s is being deleted; its status names what it lacks to remove what it projected", grant.Title(s.Owner))
	}

	return []scope.Scope{*s}, nil
}

// scopesIn returns the NamespaceScopes among the documents. About these, the question is what the account lacks that writes for
// them; a user or a group never does. left names the other objects.
func (o *Options) scopesIn(
	scheme *runtime.Scheme, documents []files.Document,
) (scopes []scope.Scope, left []string, err error) {
	if o.User != "" || o.Group != "" {
		return nil, nil, nil
	}

	for _, d := range documents {
		s, is, err := o.scopeOf(scheme, d.Unstructured)

		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s: %w", d.Source, command.OneLine(err))
		case is:
			scopes = append(scopes, s)
		default:
			left = append(left, output.Title(d, d.GetKind()))
		}
	}

	return scopes, left, nil
}

// noteLeftOut says which objects were not asked about, because scopes were.
func noteLeftOut(left []string) []string {
	if len(left) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("left out, because of files with NamespaceScopes only those are asked about: %s; ask about the "+
		"rest by --for-user or --for-group, or in files of their own", output.Some(left))}
}

// scopeOf compiles an object that is a scope. Only of one does it matter that it is of another namespace than is asked about.
func (o *Options) scopeOf(scheme *runtime.Scheme, obj *unstructured.Unstructured) (s scope.Scope, is bool, err error) {
	typed, err := files.Typed(scheme, obj)
	if typed == nil {
		return s, false, err
	}

	elsewhere := o.Place(typed)
	if s, is = compile.AnyNamespaceScope(typed); !is {
		return s, false, nil
	}

	return s, true, elsewhere
}
