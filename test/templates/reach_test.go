package templates_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const allow = "ambit.dev/allow-cluster-wide"

// TestPolicyKeepsInstancesFromTheWholeCluster: where the profile's policies are, the API server refuses the change itself.
func TestPolicyKeepsInstancesFromTheWholeCluster(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	in := w.instance("i", "t", a)
	// By then Ambit has written what it has to say of the instance; until then, the change may meet a conflict with that.
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", a)

	w.Eventually("the refusal", func() error {
		fresh := in.DeepCopy()
		w.get(fresh)
		fresh.Spec.Namespaces = nil

		err := w.Client.Update(t.Context(), fresh)
		if apierrors.IsConflict(err) {
			return err
		}

		if err == nil || !strings.Contains(err.Error(), "ambit-cluster-wide") || !strings.Contains(err.Error(), allow) {
			t.Fatalf("want it refused, got %v", err)
		}

		return nil
	})

	w.Change(in, func() {
		in.Spec.Namespaces = nil
		in.Annotations = map[string]string{allow: "true"}
	})
	w.binds("i", "")
	w.May(ops, "op", "", "get secrets")
	w.says(in, yes, "ScopingSuccessful")

	if in.Status.Reach != operatorsv1alpha1.ReachCluster {
		t.Errorf("status %+v", in.Status)
	}

	// The annotation is about the way there; nobody is thrown out for taking it off.
	w.Change(in, func() { in.Annotations = nil })
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", "")
}

// TestNoGapBetweenReaches: from namespaces to the whole cluster, and back, every right comes before the old one goes.
func TestNoGapBetweenReaches(t *testing.T) {
	const rounds = 3

	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	in := w.instance("i", "t", a)
	w.May(ops, "op", a, "get secrets")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 1)[0]}}
	w.get(role)

	h := w.record("i")

	for range rounds {
		w.Change(in, func() { in.Spec.Namespaces, in.Annotations = nil, map[string]string{allow: "true"} })
		w.binds("i", "")
		w.May(ops, "op", "", "get secrets")
		w.Change(in, func() { in.Spec.Namespaces = []string{a} })
		w.binds("i", a)
		w.MayNot(ops, "op", "", "get secrets")
	}

	// Two watches tell of the bindings, each in its own time: of the one at first, and of four changes in every round.
	w.Eventually("the history is complete", func() error {
		if n := h.changes(); n < 1+4*rounds {
			return fmt.Errorf("%d changes", n)
		}

		return nil
	})

	if err := h.check(); err != nil {
		t.Error(err)
	}

	before := role.ResourceVersion
	if w.get(role); role.ResourceVersion != before {
		t.Errorf("the ClusterRole was changed: %+v", role)
	}
}

// history is which bindings of an instance came and went, in the order in which the API server did it. Resource versions give
// that order also between kinds. To ask the API server whether the right holds would not do: it learns of each kind by a watch
// of its own, so that it may hear of the end of one binding before it hears of the other, which was there first.
type history struct {
	mu     sync.Mutex
	events []event
}

// event is a binding that came, changed, or went.
type event struct {
	version uint64
	object  string
	kind    watch.EventType
	// grants says that the binding is there, and binds somebody.
	grants bool
}

// record begins the history of an instance.
func (w *world) record(instance string) *history {
	w.Helper()

	h, owner := &history{}, "ScopeInstance//"+w.name(instance)

	for _, list := range []client.ObjectList{&rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}} {
		told, err := w.Client.Watch(w.Context(), list, client.HasLabels{"ambit.dev/scope"})
		if err != nil {
			w.Fatal(err)
		}

		w.Cleanup(told.Stop)

		go func() {
			for e := range told.ResultChan() {
				if obj, ok := e.Object.(client.Object); ok && obj.GetAnnotations()["ambit.dev/owner"] == owner {
					h.add(obj, e.Type)
				}
			}
		}()
	}

	return h
}

func (h *history) add(obj client.Object, kind watch.EventType) {
	var subjects []rbacv1.Subject

	switch o := obj.(type) {
	case *rbacv1.RoleBinding:
		subjects = o.Subjects
	case *rbacv1.ClusterRoleBinding:
		subjects = o.Subjects
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.events = append(h.events, event{
		version: scope.ParseVersion(obj.GetResourceVersion()), object: fmt.Sprintf("%T %s", obj, obj.GetName()), kind: kind,
		grants: kind != watch.Deleted && len(subjects) == 1,
	})
}

// changes counts the bindings that came and those that went.
func (h *history) changes() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	n := 0

	for _, e := range h.events {
		if e.kind != watch.Modified {
			n++
		}
	}

	return n
}

// check replays the history: there is a binding at every moment.
func (h *history) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()

	slices.SortFunc(h.events, func(a, b event) int { return cmp.Compare(a.version, b.version) })

	held := map[string]bool{}

	for _, e := range h.events {
		if delete(held, e.object); e.grants {
			held[e.object] = true
		}

		if len(held) == 0 {
			return fmt.Errorf("at version %d there is no binding: %+v", e.version, h.events)
		}
	}

	return nil
}
