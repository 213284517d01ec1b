package namespacescope_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// vandal does something to the copies of a Role and of its RoleBinding.
type vandal func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding)

// tamper changes an object that may be gone by now.
func (w *world) tamper(obj client.Object, edit func()) {
	w.Helper()

	err := testbed.Change(w.Context(), w.client, obj, edit)
	if client.IgnoreNotFound(err) != nil {
		w.Fatalf("changing %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// replaced deletes the binding and puts another in its place. Ambit restores the original just as eagerly; who is faster
// is no matter, but the other one has to have been there once.
func replaced(edit func(b *rbacv1.RoleBinding)) vandal {
	return func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
		other := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: b.Namespace, Name: b.Name, Labels: b.Labels, Annotations: b.Annotations,
			},
			RoleRef: b.RoleRef, Subjects: b.Subjects,
		}
		edit(other)

		err := retry.OnError(retry.DefaultRetry, apierrors.IsAlreadyExists, func() error {
			if err := w.client.Delete(w.Context(), b); client.IgnoreNotFound(err) != nil {
				return err
			}

			return w.client.Create(w.Context(), other.DeepCopy(), client.FieldOwner("somebody"))
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatal(err)
		}
	}
}

func TestDriftIsUndone(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		do     vandal
	}{
		"Deleted": {"what is deleted comes back", func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding) {
			w.delete(r)
			w.discard(b)
		}},
		"RulesAdded": {"nobody widens a projection", func(w *world, r *rbacv1.Role, _ *rbacv1.RoleBinding) {
			w.change(r, func() { r.Rules = append(r.Rules, rule("* *")) })
		}},
		"SubjectsAdded": {"nor hands it to others", func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
			w.change(b, func() { b.Subjects = append(b.Subjects, subject("default", "default")) })
		}},
		"LabelsAndOwnerGone": {"without any mark", func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding) {
			for _, obj := range []client.Object{r, b} {
				w.tamper(obj, func() { obj.SetLabels(nil); obj.SetAnnotations(nil) })
			}
		}},
		"RoleRefChanged": {"a roleRef cannot be changed, so it is a new object", replaced(func(b *rbacv1.RoleBinding) {
			b.RoleRef.Kind, b.RoleRef.Name = "ClusterRole", "view"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), w.namespace("member")
			w.operator(ops, "op")

			nss := w.scope(ops, "scope", members(member))
			w.ready(nss)

			r, b := w.projectedRole(ops, "secrets", member), w.projectedBinding(ops, "secrets", member)
			wantRole, wantBinding := r.DeepCopy(), b.DeepCopy()

			tc.do(w, r, b)

			w.eventually(tc.reason, func() error {
				// What is replaced comes under another name.
				roles, bindings := w.projections(member)
				if len(roles) != 1 || len(bindings) != 1 {
					return fmt.Errorf("there are %d roles and %d bindings", len(roles), len(bindings))
				}

				var err error

				r, b := &roles[0], &bindings[0]
				wantBinding.RoleRef.Name = r.Name

				for _, same := range [][2]any{
					{r.Labels, wantRole.Labels}, {r.Annotations, wantRole.Annotations}, {r.Rules, wantRole.Rules},
					{b.Labels, wantBinding.Labels}, {b.Annotations, wantBinding.Annotations},
					{b.RoleRef, wantBinding.RoleRef}, {b.Subjects, wantBinding.Subjects},
				} {
					if !reflect.DeepEqual(same[0], same[1]) {
						err = errors.Join(err, fmt.Errorf("got %v, want %v", same[0], same[1]))
					}
				}

				return err
			})
			w.may(ops, "op", member, "get secrets")
			w.lists(ops, defaultList, ops, member)
			w.ready(nss)
		})
	}
}

func TestWatchListIsRestoredWithoutRestarts(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		do     func(w *world, ops string)
	}{
		"Edited": {"a value that somebody wrote", func(w *world, ops string) {
			cm := configMap(ops, defaultList)
			w.change(cm, func() { cm.Data["namespaces"] = "wrong" })
		}},
		"AnnotationsRemoved": {"marks that somebody took off", func(w *world, ops string) {
			cm := configMap(ops, defaultList)
			w.change(cm, func() { cm.Annotations = nil; cm.Data["namespaces"] = "wrong" })
		}},
		"Deleted": {"a ConfigMap that somebody deleted", func(w *world, ops string) {
			w.delete(configMap(ops, defaultList))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), w.namespace("member")

			// One reader is older than the scope and was restarted for it; one began with the list, in the same second.
			older, younger := deployment(ops, "older", readsList), deployment(ops, "younger", readsList)
			w.run(older)
			w.running(ops, 1)
			secondBegins()
			w.scope(ops, "scope", withMarker(members(member)))
			w.lists(ops, defaultList, ops, member)
			w.restarted(older, 1)
			w.run(younger)
			w.running(ops, 2)

			tc.do(w, ops)
			w.lists(ops, defaultList, ops, member)
			w.seen(ops, member)

			w.steadily(tc.reason, func() error {
				return errors.Join(w.checkRestarts(older, 1), w.checkRestarts(younger, 0))
			})
		})
	}
}

// TestWhoWritesOnCopiesDelaysNothing: somebody writes on the copies all the time while their source loses rules, so that every
// version that Ambit looked at is old by the time it writes.
func TestWhoWritesOnCopiesDelaysNothing(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")

	source := role(ops, "secrets")
	nss := w.scope(ops, "scope", members(member))
	w.ready(nss)

	var (
		writers sync.WaitGroup
		stop    atomic.Bool
		wrote   atomic.Int64
	)

	for range 3 {
		writers.Go(func() {
			for n := 0; !stop.Load(); n++ {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, n))

				roles, bindings, _ := w.listProjections(member) // What cannot be listed is written the next time.

				for i := range roles {
					if w.client.Patch(w.Context(), &roles[i], patch) == nil {
						wrote.Add(1)
					}
				}

				for i := range bindings {
					if w.client.Patch(w.Context(), &bindings[i], patch) == nil {
						wrote.Add(1)
					}
				}

				time.Sleep(10 * time.Millisecond) // Each object is written some hundred times a second.
			}
		})
	}

	for range 4 {
		w.change(source, func() { source.Rules = append(source.Rules, rule("get pods")) })
		w.may(ops, "op", member, "get pods")
		w.change(source, func() { source.Rules = source.Rules[:len(source.Rules)-1] })
		w.mayNot(ops, "op", member, "get pods")
	}

	stop.Store(true)
	writers.Wait()

	if wrote.Load() < 20 {
		t.Errorf("they wrote %d times only", wrote.Load())
	}

	w.may(ops, "op", member, "get secrets")
	w.ready(nss)
}
