package simulation

import (
	"maps"
	"slices"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// settle ends the time before anything is written in memory.
func (c *Cluster) settle() {
	c.version, c.proposed = max(c.version, read.Later), maps.Clone(c.permissions)

	c.records.Settle(c.deletions())

	for _, namespace := range c.installNamespaces() {
		c.attend(namespace)
	}
}

// deletions are when scopes were deleted that are still there, by namespace.
func (c *Cluster) deletions() map[string][]time.Time {
	out := map[string][]time.Time{}

	for _, group := range []string{operatorv1.GroupVersion.Group, namespacescopev1alpha1.GroupVersion.Group} {
		for namespace, scopes := range c.objects[schema.GroupKind{Group: group, Kind: "NamespaceScope"}] {
			for _, s := range scopes {
				if at := s.GetDeletionTimestamp(); at != nil {
					out[namespace] = append(out[namespace], at.Time)
				}
			}
		}
	}

	return out
}

// installNamespaces are those in which something is installed.
func (c *Cluster) installNamespaces() []string {
	var out []string

	for _, kind := range []schema.GroupKind{operatorGroups, csvs} {
		out = slices.AppendSeq(out, maps.Keys(c.objects[kind]))
	}

	return out
}

// attend has records of what is installed in a namespace, as the watches do that the manager starts there.
func (c *Cluster) attend(namespace string) {
	if c.records.Install(namespace) {
		c.all(namespace, func(_ Key, obj client.Object) { c.record(obj) })
	}
}

// attendCatalogs has records of the ConfigMaps that catalogs are in.
func (c *Cluster) attendCatalogs() {
	for _, key := range c.keys(schema.GroupKind{Group: olm.GroupName, Kind: olm.CatalogSourceKind}, "") {
		u, err := c.json(key)
		if err != nil {
			continue
		}

		name, _, _ := unstructured.NestedString(u.Object, "spec", "configMap")
		if name == "" || !c.records.Catalog(key.Namespace, name) {
			continue
		}

		if cm := c.get(named(schema.GroupKind{Kind: "ConfigMap"}, key.Namespace, name)); cm != nil {
			c.record(cm)
		}
	}
}

// record tells the records of an object, as a watch does.
func (c *Cluster) record(obj client.Object) {
	if obj = c.recorded(obj); obj != nil {
		c.records.Add(obj)
	}
}

// recorded is an object in the form in which the manager's watches have it; nil where it is read from a cache.
func (c *Cluster) recorded(obj client.Object) client.Object {
	u, is := obj.(*unstructured.Unstructured)
	if !is {
		return obj
	}

	switch gvk := u.GroupVersionKind(); gvk.Group {
	case "", appsv1.GroupName, batchv1.GroupName, rbacv1.GroupName, admissionv1.GroupName:
		typed, err := c.scheme.New(gvk)
		if obj, is := typed.(client.Object); is && err == nil && fromJSON(u, obj) == nil {
			return obj
		}
	case olm.GroupName:
		if gvk.Kind == scope.KindCSV {
			return u
		}
	}

	return nil
}
