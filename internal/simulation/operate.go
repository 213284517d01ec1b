package simulation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// operate does what Kubernetes' own controllers do with an object that was written, as far as a reconciler waits for that: a
// definition is established, and the pods of a Deployment get ready. Whether they would, only the cluster can tell.
func (*Cluster) operate(u *unstructured.Unstructured) {
	switch u.GroupVersionKind().GroupKind() {
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		if observed == u.GetGeneration() {
			return
		}

		replicas, set, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !set {
			replicas = 1
		}

		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
			"readyReplicas": replicas, "availableReplicas": replicas,
		}
	case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		if established(u) != "" {
			return
		}

		u.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": ""},
		}}
	}
}

// established is the status of the condition Established of a definition; empty when nobody decided that yet.
func established(definition *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")

	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "Established" {
			status, _ := condition["status"].(string)

			return status
		}
	}

	return ""
}

// kinds are those of a cluster, and those that definitions in memory bring.
type kinds struct {
	meta.RESTMapper

	cluster *Cluster
}

// RESTMapping finds the resource of a kind.
func (k *kinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := k.RESTMapper.RESTMapping(kind, versions...)
	if err == nil || !meta.IsNoMatchError(err) {
		return mapping, err //nolint:wrapcheck // It is asked in place of the other.
	}

	var found *meta.RESTMapping

	definitions := schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	for _, key := range k.cluster.keys(definitions, "") {
		u, failed := k.cluster.json(key)
		if failed != nil {
			continue
		}

		if m := mappingOf(u, kind, versions); m != nil {
			found = m
		}
	}

	if found == nil {
		return nil, err //nolint:wrapcheck // It is asked in place of the other.
	}

	return found, nil
}

// serves says whether there is a kind in a version, at any time.
func (c *Cluster) serves(_ time.Time, group, version, kind string) bool {
	_, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)

	return err == nil
}

func mappingOf(crd *unstructured.Unstructured, kind schema.GroupKind, versions []string) *meta.RESTMapping {
	d := facts.ReadDefinition(crd)
	at := slices.IndexFunc(d.Served, func(name string) bool { return len(versions) == 0 || slices.Contains(versions, name) })

	if d.Kind != kind || at < 0 {
		return nil
	}

	out := &meta.RESTMapping{
		Resource:         d.Resource.WithVersion(d.Served[at]),
		GroupVersionKind: kind.WithVersion(d.Served[at]), Scope: meta.RESTScopeRoot,
	}
	if d.Namespaced {
		out.Scope = meta.RESTScopeNamespace
	}

	return out
}

func named(kind schema.GroupKind, namespace, name string) Key {
	return Key{kind, types.NamespacedName{Namespace: namespace, Name: name}}
}
