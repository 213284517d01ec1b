package installs_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is what became of a CSV and of its permissions.
type history struct {
	mu     sync.Mutex
	events []event
}

// event is a version of an object, or its end.
type event struct {
	version int
	object  client.Object
	gone    bool
}

// watchTold follows what a CSV and its Deployments tell the operator, and the permissions of the operator. The function that it
// returns complains when a namespace was told at a moment when there was no permission in it. Resource versions say what came
// first: the API server's authorizer hears of a binding a moment after it was written, so that what it allows would not.
func (w *world) watchTold(c *olm.ClusterServiceVersion) func() error {
	w.Helper()

	h := &history{}

	for list, in := range map[client.ObjectList]string{
		// A watch ends at an object that cannot be read, and other tests make such CSVs in their namespaces.
		&olm.ClusterServiceVersionList{}: c.Namespace, &appsv1.DeploymentList{}: c.Namespace,
		&rbacv1.RoleList{}: "", &rbacv1.RoleBindingList{}: "",
	} {
		watching, err := w.Client.Watch(w.Context(), list, client.InNamespace(in))
		if err != nil {
			w.Fatal(err)
		}

		w.Cleanup(watching.Stop)

		go func() {
			for e := range watching.ResultChan() {
				h.add(e)
			}
		}()
	}

	return func() error { return h.check(c) }
}

func (h *history) add(e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok {
		return
	}

	version, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{version: version, object: object, gone: e.Type == watch.Deleted})
}

// check goes through everything in the order in which it was written. One watch may be behind another for a moment, so a
// complaint counts once it stays.
func (h *history) check(c *olm.ClusterServiceVersion) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	slices.SortStableFunc(h.events, func(a, b event) int { return cmp.Compare(a.version, b.version) })

	var told, podsTold []string

	roles, bindings, changes := map[string]int{}, map[string]int{}, 0

	for _, e := range h.events {
		switch object := e.object.(type) {
		case *olm.ClusterServiceVersion:
			if object.UID == c.UID {
				told = strings.Split(object.Annotations["olm.targetNamespaces"], ",")
				changes++
			}
		case *appsv1.Deployment:
			if slices.ContainsFunc(object.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == c.UID }) && !e.gone {
				podsTold = strings.Split(object.Spec.Template.Annotations["olm.targetNamespaces"], ",")
			}
		case *rbacv1.Role:
			count(roles, c, e)
		case *rbacv1.RoleBinding:
			count(bindings, c, e)
		}

		for _, namespace := range slices.Concat(told, podsTold) {
			if roles[namespace] != 1 || bindings[namespace] != 1 {
				return fmt.Errorf("at version %d it is told of %q, where it has %d roles and %d bindings",
					e.version, namespace, roles[namespace], bindings[namespace])
			}
		}
	}

	if changes < 2 {
		return errors.New("nothing was heard of it")
	}

	return nil
}

// count keeps what is there of a CSV in a namespace.
func count(there map[string]int, c *olm.ClusterServiceVersion, e event) {
	switch {
	case e.object.GetAnnotations()["ambit.dev/owner"] != "ClusterServiceVersion/"+c.Namespace+"/"+c.Name:
	case e.gone:
		there[e.object.GetNamespace()] = 0
	default:
		there[e.object.GetNamespace()] = 1
	}
}
