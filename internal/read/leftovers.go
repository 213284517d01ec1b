package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// maxName is how long the name of an object can be, and maxMark the longest annotation that names one with its kind and its
	// namespace. Whatever is longer names nothing, and is not remembered: annotations and role references may be megabytes.
	maxName = validation.DNS1123SubdomainMaxLength
	maxMark = maxName + 2*(1+validation.DNS1123LabelMaxLength)
	// listsAtOnce bounds how many ConfigMaps are in one answer: whoever made them decides how long their annotations are.
	listsAtOnce = 50
)

// Leftovers returns what bears the marks of a reconcile key for which there is nothing to serve, and whether everything was
// listed. It needs no watch of the operator namespace: marks can be written by anybody, with any name in them, so no watch
// may be started because of one.
func (s *Store) Leftovers(reconcileKey scope.Key, now time.Time) (*facts.Facts, bool) {
	s.mu.Lock() // The projected objects are lent, which is noted in the table.
	defer s.mu.Unlock()

	if s.waiting > 0 {
		return nil, false
	}

	return &facts.Facts{Key: reconcileKey, Now: now, Projected: s.projected.of(reconcileKey)}, true
}

// Lists reads, in a namespace that is not watched, the ConfigMaps into which Ambit wrote a watch list, by name.
func (w *Watches) Lists(ctx context.Context, namespace string) (map[string]facts.ConfigMap, error) {
	out := map[string]facts.ConfigMap{}

	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	for {
		page := []client.ListOption{client.InNamespace(namespace), client.Limit(listsAtOnce), client.Continue(all.Continue)}
		if err := w.client.List(ctx, all, page...); err != nil {
			return nil, fmt.Errorf("listing the ConfigMaps of namespace %s: %w", namespace, err)
		}

		for i := range all.Items {
			if all.Items[i].Annotations[scope.AnnotationListHash] == "" {
				continue
			}

			one := &corev1.ConfigMapList{}
			if err := w.client.List(ctx, one, client.InNamespace(namespace),
				client.MatchingFields{metav1.ObjectNameField: all.Items[i].Name}); err != nil {
				return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, all.Items[i].Name, err)
			}

			for j := range one.Items {
				cm, _ := convertConfigMap(&one.Items[j])
				cm.List = "" // It goes, whatever it says.
				out[one.Items[j].Name] = cm
			}
		}

		if all.Continue == "" {
			return out, nil
		}
	}
}

// keyOf is the reconcile key to which the marks of an object point; none where they name nothing that can exist.
func keyOf(owner, source string) scope.Key {
	for _, reconcileKey := range []scope.Key{scope.OwnerKey(owner), scope.OwnerKey(source)} {
		if reconcileKey == scope.TemplatesKey() || len(validation.IsDNS1123Label(reconcileKey.Namespace)) == 0 {
			return reconcileKey
		}
	}

	return scope.Key{}
}

// mark is a mark as it is remembered: one that names nothing is as good as any other that does not.
func mark(value string) string {
	if len(value) > maxMark {
		return ""
	}

	return value
}

// roleName is the name of a role as it is remembered. One that nothing can have written differs from every one that is wanted.
func roleName(name string) string {
	if len(name) > maxName {
		name = strings.Repeat("-", maxName)
	}

	return shared(name)
}
