// Package follow is a client for programs that look for a long time: a watch keeps up to date what was listed once, and what the
// caller may not see is not asked for. It writes nothing, except for dry runs.
package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// stale is how long an answer about what the caller may do is believed.
const stale = 10 * time.Second

// ErrReads says that the client only reads.
var ErrReads = errors.New("the page only reads")

// Gate asks for nothing that the caller may not see: it has the API server review each kind of request first. A request that is
// denied fails as at the API server.
type Gate struct {
	client.WithWatch

	// reviewed are the answers, by their questions.
	reviewed *cache.LRUExpireCache
}

// question is about a kind of request.
type question struct {
	verb, group, resource, namespace, name string
}

// NewGate returns a gate in front of a client.
func NewGate(c client.WithWatch) *Gate {
	return &Gate{WithWatch: c, reviewed: cache.NewLRUExpireCache(maxRemembered)}
}

// List lists objects, if the caller may list them.
func (g *Gate) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := g.check(ctx, "list", list, namespaceOf(options), ""); err != nil {
		return err
	}

	return g.WithWatch.List(ctx, list, options...) //nolint:wrapcheck // Whoever asks knows best what for.
}

// Get gets an object, if the caller may get it.
func (g *Gate) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	// Mostly, callers may get all objects of a kind, or none.
	err := g.check(ctx, "get", obj, key.Namespace, "")
	if apierrors.IsForbidden(err) {
		err = g.check(ctx, "get", obj, key.Namespace, key.Name)
	}

	if err != nil {
		return err
	}

	return g.WithWatch.Get(ctx, key, obj, options...) //nolint:wrapcheck // As above.
}

// Create asks for a review. Nothing else is made.
func (g *Gate) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	switch obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectRulesReview:
	case *authorizationv1.SubjectAccessReview:
		if err := g.check(ctx, "create", obj, "", ""); err != nil {
			return err
		}
	default:
		return ErrReads
	}

	return g.WithWatch.Create(ctx, obj, options...) //nolint:wrapcheck // As above.
}

// Delete writes, so it fails.
func (*Gate) Delete(context.Context, client.Object, ...client.DeleteOption) error { return ErrReads }

// Update writes, so it fails.
func (*Gate) Update(context.Context, client.Object, ...client.UpdateOption) error { return ErrReads }

// Patch writes, so it fails.
func (*Gate) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return ErrReads
}

// Apply writes, so it fails.
func (*Gate) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return ErrReads
}

// DeleteAllOf writes, so it fails.
func (*Gate) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return ErrReads
}

// check returns an error like the API server's if the caller may not do something.
func (g *Gate) check(ctx context.Context, verb string, of runtime.Object, namespace, name string) error {
	resource, err := g.resourceOf(of)
	if err != nil {
		return err
	}

	// The API server takes a request about a namespace for one in that namespace.
	if resource.Group == "" && resource.Resource == "namespaces" && name != "" {
		namespace = name
	}

	allowed, err := g.may(ctx, question{verb, resource.Group, resource.Resource, namespace, name})
	if err != nil {
		return err
	}

	if !allowed {
		return apierrors.NewForbidden(resource, name, errors.New("the API server says so in its review"))
	}

	return nil
}

func (g *Gate) resourceOf(of runtime.Object) (schema.GroupResource, error) {
	gvk, err := apiutil.GVKForObject(of, g.Scheme())
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("looking for a kind: %w", err)
	}

	// An untyped object has the methods of a list, too, so that would prove nothing.
	if _, is := of.(client.Object); !is {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}

	mapping, err := g.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupResource{}, err //nolint:wrapcheck // It is known by what it is.
	}

	return mapping.Resource.GroupResource(), nil
}

// may asks for a review, or remembers one.
func (g *Gate) may(ctx context.Context, q question) (bool, error) {
	if known, is := g.reviewed.Get(q); is {
		allowed, _ := known.(bool) // Nothing else is in it.

		return allowed, nil
	}

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace, Name: q.name,
		},
	}}
	if err := g.WithWatch.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what you may do: %w", err)
	}

	g.reviewed.Add(q, review.Status.Allowed, stale)

	return review.Status.Allowed, nil
}

// maxRemembered bounds what is remembered of reviews, and of objects.
const maxRemembered = 50_000

func namespaceOf(options []client.ListOption) string {
	var all client.ListOptions

	all.ApplyOptions(options)

	return all.Namespace
}
