package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/read"
)

// defined reads lists from a cache. Of a kind whose CustomResourceDefinition is known to be missing there are no objects, what
// was read before notwithstanding: what was made for them is revoked. ClusterServiceVersions are read only once they are
// followed, so that no change of them is missed.
type defined struct {
	client.Reader

	scheme *runtime.Scheme
	// definition says whether a CustomResourceDefinition is there, and whether that is known.
	definition func(name string) (there, known bool)
	followed   atomic.Bool
}

// newDefined returns a reader of OLM's kinds, which has everything planned again when one of their definitions comes or goes. It
// is called before the watches start.
func newDefined(cache client.Reader, scheme *runtime.Scheme, watches *read.Watches, dirty *changes.Changes) *defined {
	for _, kind := range forGroups() {
		watches.FollowDefinition(definitionOf(kind), dirty.EverythingChanged)
	}

	return &defined{Reader: cache, scheme: scheme, definition: watches.Definition}
}

// List reads the objects of a kind.
func (d *defined) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, d.scheme)
	if err != nil {
		return fmt.Errorf("telling the kind of %T: %w", list, err)
	}

	kind.Kind = strings.TrimSuffix(kind.Kind, "List")

	switch definition := definitionOf(kind); {
	case d.isMissing(definition):
		return meta.SetList(list, nil) //nolint:wrapcheck // It cannot fail for a list.
	case definition == csvDefinition() && !d.followed.Load():
		return fmt.Errorf("the %s are not followed yet", definition)
	default:
		return d.Reader.List(ctx, list, opts...) //nolint:wrapcheck // Callers tell API errors apart.
	}
}

// isMissing says whether a definition is known to be missing. One that nobody follows is not known.
func (d *defined) isMissing(definition string) bool {
	there, known := d.definition(definition)

	return known && !there
}
