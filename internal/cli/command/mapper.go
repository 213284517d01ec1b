package command

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper knows what the API server serves. A client asks it before each request, and returns its errors as those of the request:
// a 404 of something that is no API server would say that the object does not exist, or that the cluster does not know the kind,
// and a 403 that the caller may not read it. So what is said of discovery is no answer about anything else.
type mapper struct{ meta.RESTMapper }

func newMapper(config *rest.Config) (meta.RESTMapper, error) {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err //nolint:wrapcheck // Connect says what was being done.
	}

	m, err := apiutil.NewDynamicRESTMapper(config, h)

	return &mapper{m}, err //nolint:wrapcheck // As above.
}

func ofDiscovery(err error) error {
	if status := apierrors.APIStatus(nil); err == nil || meta.IsNoMatchError(err) || !errors.As(err, &status) {
		return err
	}

	return errors.New("asking the API server what it serves (is --server one?): " + OneLine(err).Error())
}

// KindFor is that of the mapper beneath, like the others.
func (m *mapper) KindFor(of schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := m.RESTMapper.KindFor(of)

	return kind, ofDiscovery(err)
}

// KindsFor returns all that match.
func (m *mapper) KindsFor(of schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := m.RESTMapper.KindsFor(of)

	return kinds, ofDiscovery(err)
}

// ResourceFor returns the resource of a partial name.
func (m *mapper) ResourceFor(of schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	resource, err := m.RESTMapper.ResourceFor(of)

	return resource, ofDiscovery(err)
}

// ResourcesFor returns all that match.
func (m *mapper) ResourcesFor(of schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	resources, err := m.RESTMapper.ResourcesFor(of)

	return resources, ofDiscovery(err)
}

// RESTMapping returns the resource of a kind.
func (m *mapper) RESTMapping(of schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(of, versions...)

	return mapping, ofDiscovery(err)
}

// RESTMappings returns those of all versions.
func (m *mapper) RESTMappings(of schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := m.RESTMapper.RESTMappings(of, versions...)

	return mappings, ofDiscovery(err)
}
