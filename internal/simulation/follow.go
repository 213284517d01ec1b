package simulation

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// takeIn does what operators do that follow a list: they serve it as it is by now, and say so. Whether those that run would, they
// alone know. It returns the operator namespaces in which one did.
func (c *Cluster) takeIn() []string {
	var out []string

	for _, key := range c.keys(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), "") {
		lease, is := c.get(key).(*coordinationv1.Lease)
		if !is || lease.Labels[scope.LabelFollows] != scope.Follows || lease.Annotations[scope.AnnotationFollowed] == "" {
			continue
		}

		takenIn := scope.TakenIn(c.list(key.Namespace, lease.Annotations[scope.AnnotationFollowed]))
		if lease.Annotations[scope.AnnotationTakenIn] == takenIn {
			continue
		}

		lease = lease.DeepCopy()
		lease.Annotations[scope.AnnotationTakenIn] = takenIn
		c.put(key, lease)
		c.record(lease)

		out = append(out, key.Namespace)
	}

	return out
}

// list is the watch list in a ConfigMap; empty where there is none.
func (c *Cluster) list(namespace, name string) string {
	cm := c.get(named(schema.GroupKind{Kind: "ConfigMap"}, namespace, name))
	if cm == nil {
		return ""
	}

	u, err := c.toJSON(cm)
	if err != nil {
		return ""
	}

	list, _, _ := unstructured.NestedString(u.Object, "data", scope.ListKey)

	return list
}
