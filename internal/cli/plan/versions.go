package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
)

// mustBeServed fails for an object of a kind that the cluster knows in another version only: kubectl would not apply it, and
// nobody would see that a plan leaves it out.
func (p *proposer) mustBeServed(d files.Document) error {
	gvk := d.GroupVersionKind()
	if p.Scheme().Recognizes(gvk) || !p.looksAt(gvk.GroupKind()) {
		return nil
	}

	if _, err := p.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); !meta.IsNoMatchError(err) {
		return nil
	}

	served, err := p.RESTMapper().RESTMapping(gvk.GroupKind())
	if err != nil {
		return nil //nolint:nilerr // Whoever needs the kind says that it is missing.
	}

	return fmt.Errorf("%s: the cluster does not know %s of %s; write apiVersion: %s", d.Source, gvk.Kind, gvk.GroupVersion(),
		served.GroupVersionKind.GroupVersion())
}

// looksAt says whether a plan looks at objects of a kind, in whatever version.
func (p *proposer) looksAt(kind schema.GroupKind) bool {
	return slices.ContainsFunc(p.Scheme().VersionsForGroupKind(kind), func(version schema.GroupVersion) bool {
		empty, err := p.Scheme().New(version.WithKind(kind.Kind))
		obj, is := empty.(client.Object)

		return err == nil && is && (mattersToPlans(obj) || isServedKind(kind))
	})
}
