package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
)

// identity names an object of any kind.
type identity struct{ kind, namespace, name string }

// identityOf is that of a typed object.
func identityOf(obj client.Object) identity {
	kind := fmt.Sprintf("%T", obj)

	return identity{kind[strings.LastIndex(kind, ".")+1:], obj.GetNamespace(), obj.GetName()}
}

// newSnapshot is empty, and takes in nothing of what is gone.
func newSnapshot(operatorNamespaces []string, gone []client.Object) *Snapshot {
	s := &Snapshot{
		Live: map[facts.ClusterKey]client.Object{}, once: read.NewOnce(operatorNamespaces), taken: time.Now(),
		closed: map[string]struct{}{}, assumed: map[string]struct{}{}, gone: map[identity]struct{}{},
		lists: map[string][]string{},
	}

	for _, obj := range gone {
		if _, is := obj.(*corev1.Namespace); !is {
			s.gone[identityOf(obj)] = struct{}{}
		}
	}

	return s
}

func namespacesIn(objects []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(obj client.Object) bool {
		_, is := obj.(*corev1.Namespace)

		return !is
	})
}

// ownersDeep is how far what matters can be from its first owner: a pod belongs to a Job, and that to a CronJob.
const ownersDeep = 2

// remaining are the objects that would still be there without those that are gone and what belongs to them.
func remaining(objects []client.Object, gone map[identity]struct{}) []client.Object {
	for range ownersDeep {
		for _, obj := range objects {
			owner := read.ControllerOf(obj)
			if _, goes := gone[identity{string(owner.Kind), obj.GetNamespace(), owner.Name}]; goes {
				gone[identityOf(obj)] = struct{}{}
			}
		}
	}

	var out []client.Object

	for _, obj := range objects {
		if _, is := gone[identityOf(obj)]; !is {
			out = append(out, obj)
		}
	}

	return out
}
