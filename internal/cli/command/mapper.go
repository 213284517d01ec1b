package command

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper knows what the API server serves. A client asks it before each request, and returns its errors as those of the request:
// a 404 of something that is no API server would say that the object does not exist, or that the cluster does not know the kind,
// and a 403 that the caller may not read it. So what is said of discovery is no answer about anything else.
type mapper struct {
	meta.RESTMapper

	discovery discovery.ServerResourcesInterface
}

func newMapper(config *rest.Config) (meta.RESTMapper, error) {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err //nolint:wrapcheck // Connect says what was being done.
	}

	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, h)
	if err != nil {
		return nil, err //nolint:wrapcheck // As above.
	}

	m, err := apiutil.NewDynamicRESTMapper(config, h)

	return &mapper{m, d}, err //nolint:wrapcheck // As above.
}

// OfDiscovery says of an answer that no API server gives that it is about what one serves, and about nothing else.
func OfDiscovery(err error) error {
	// Every command asks it first. An API server that is there no more later is one that was found.
	if utilnet.IsConnectionRefused(err) {
		return NoCluster(err)
	}

	status, syntax := apierrors.APIStatus(nil), (*json.SyntaxError)(nil) // The latter is what a page for people to log in leads to.
	if meta.IsNoMatchError(err) || apierrors.IsUnauthorized(err) || !errors.As(err, &status) && !errors.As(err, &syntax) {
		return err
	}

	return errors.New("asking the API server what it serves (is --server one?): " + OneLine(err).Error())
}

// KindFor is that of the mapper beneath, like the others.
func (m *mapper) KindFor(of schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := m.RESTMapper.KindFor(of)

	return kind, OfDiscovery(err)
}

// KindsFor returns all that match.
func (m *mapper) KindsFor(of schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := m.RESTMapper.KindsFor(of)

	return kinds, OfDiscovery(err)
}

// ResourceFor returns the resource of a partial name.
func (m *mapper) ResourceFor(of schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	resource, err := m.RESTMapper.ResourceFor(of)

	return resource, OfDiscovery(err)
}

// ResourcesFor returns all that match or, where none does, all that have the name as a short one, such as kubectl's "deploy".
func (m *mapper) ResourcesFor(of schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	resources, err := m.RESTMapper.ResourcesFor(of)
	if meta.IsNoMatchError(err) {
		if short, failed := m.shortNamed(of); failed != nil || len(short) > 0 {
			return short, OfDiscovery(failed)
		}
	}

	return resources, OfDiscovery(err)
}

// shortNamed reads what no mapper keeps. As with other names, a group may be given by its beginning.
func (m *mapper) shortNamed(of schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	_, lists, err := m.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err //nolint:wrapcheck // ResourcesFor says what was being done.
	}

	var out []schema.GroupVersionResource

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !strings.HasPrefix(gv.Group, of.Group) {
			continue
		}

		for i := range list.APIResources {
			if slices.Contains(list.APIResources[i].ShortNames, of.Resource) {
				out = append(out, gv.WithResource(list.APIResources[i].Name))
			}
		}
	}

	return out, nil
}

// RESTMapping returns the resource of a kind.
func (m *mapper) RESTMapping(of schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(of, versions...)

	return mapping, OfDiscovery(err)
}

// RESTMappings returns those of all versions.
func (m *mapper) RESTMappings(of schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := m.RESTMapper.RESTMappings(of, versions...)

	return mappings, OfDiscovery(err)
}
