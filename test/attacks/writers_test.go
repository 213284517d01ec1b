package attacks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// reported is an object whose status Ambit writes whenever its spec changes.
type reported struct {
	client.Object

	// change makes the spec another one, seen says whether the status is that of the present spec.
	change     func(round int)
	seen       func() bool
	conditions func() []metav1.Condition
}

// Somebody else, such as OLM, puts conditions into a status while Ambit writes it. A merge patch replaces the whole list, so what
// came after Ambit had read was lost.
func TestConditionsOfAnotherWriterAreKept(t *testing.T) {
	const rounds = 40

	for name, begun := range map[string]func(*testbed.World) reported{
		"NamespaceScope": reportedScope, "OperatorGroup": reportedGroup, "ScopeInstance": reportedInstance,
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			it := begun(w)
			caughtUp := func() error {
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(it), it.Object); err != nil || it.seen() {
					return err
				}

				return errMissing
			}

			w.Make(it.Object)
			w.Eventually("Ambit has said something", caughtUp)

			for round := range rounds {
				w.Change(it.Object, func() { it.change(round) })
				time.Sleep(time.Duration(rand.IntnRange(0, 40)) * time.Millisecond)
				say(w, it.Object, another(round))
			}

			w.Eventually("Ambit has seen the last change", caughtUp)

			var lost []string

			for round := range rounds {
				if meta.FindStatusCondition(it.conditions(), another(round)) == nil {
					lost = append(lost, another(round))
				}
			}

			if len(lost) > 0 {
				t.Errorf("of %d conditions of somebody else's, Ambit's writes undid %v", rounds, lost)
			}
		})
	}
}

func another(round int) string { return fmt.Sprintf("Another%02d", round) }

// say puts a condition into a status, beside all that are there at that moment.
func say(w *testbed.World, obj client.Object, condition string) {
	w.Helper()

	value := `{"type":"` + condition + `","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
	add := func(path, value string) error {
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"`+path+`","value":`+value+`}]`))
		seen, _ := obj.DeepCopyObject().(client.Object)

		return w.Client.Status().Patch(w.Context(), seen, patch)
	}

	err := add("/status/conditions/-", value)
	if apierrors.IsInvalid(err) { // There is no list yet, and nothing that could be lost.
		err = add("/status/conditions", "["+value+"]")
	}

	if err != nil {
		w.Fatalf("saying %s: %v", condition, err)
	}
}

func reportedScope(w *testbed.World) reported {
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}, Spec: testbed.Members()}

	return reported{
		Object: nss,
		change: func(round int) { nss.Spec.NamespaceMembers = [][]string{{member}, nil}[round%2] },
		seen:   func() bool { return observed(nss.Status.Conditions, nss.Generation) },
		conditions: func() []metav1.Condition {
			return nss.Status.Conditions
		},
	}
}

// observed says whether the conditions of Ambit's are those of a generation.
func observed(conditions []metav1.Condition, generation int64) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Reason != "Test" && c.ObservedGeneration == generation
	})
}

func reportedGroup(w *testbed.World) reported {
	own, other := w.Namespace("own"), w.Namespace("other")
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "group"}}
	g.Spec.TargetNamespaces = []string{own}

	return reported{
		Object:     g,
		change:     func(round int) { g.Spec.TargetNamespaces = [][]string{{other}, {own}}[round%2] },
		seen:       func() bool { return slices.Equal(g.Spec.TargetNamespaces, g.Status.Namespaces) },
		conditions: func() []metav1.Condition { return g.Status.Conditions },
	}
}

func reportedInstance(w *testbed.World) reported {
	a, b := w.Namespace("a"), w.Namespace("b")
	template := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "attack-" + a}}
	template.Spec.ClusterRoles = []operatorsv1alpha1.ClusterRoleTemplate{{
		GenerateName: "reader-", Rules: testbed.Role("", "", "get secrets").Rules,
		Subjects: []operatorsv1alpha1.Subject{{Kind: "User", Name: "jane"}},
	}}
	w.Make(template)

	in := &operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: "attack-" + a}}
	in.Spec = operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: template.Name, Namespaces: []string{a}}
	w.Cleanup(func() {
		for _, obj := range []client.Object{in, template} {
			if err := w.Client.Delete(context.Background(), obj); err != nil {
				w.Error(err)
			}
		}
	})

	return reported{
		Object:     in,
		change:     func(round int) { in.Spec.Namespaces = [][]string{{a, b}, {a}}[round%2] },
		seen:       func() bool { return observed(in.Status.Conditions, in.Generation) },
		conditions: func() []metav1.Condition { return in.Status.Conditions },
	}
}

// What is written carries the version that was read: whoever wrote meanwhile is not undone, and an object that was made again
// under the same name does not get what was said of the one before.
func TestStatusIsNotWrittenOverWhatCameBetween(t *testing.T) {
	w := begin(t, "cluster")
	ns := w.Namespace("home")
	// A Service has a list of conditions, too, and Ambit's manager does not write it.
	made := func() *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "it"}, Spec: corev1.ServiceSpec{ClusterIP: "None"},
		}
	}
	service := made()
	w.Make(service)

	read := service.DeepCopy()
	say(w, service, "Another")

	written := read.DeepCopy()
	meta.SetStatusCondition(&written.Status.Conditions, metav1.Condition{Type: "Ours", Status: yes, Reason: "Test"})

	if err := generic.WriteStatus(t.Context(), w.Client, written.DeepCopy(), read); !apierrors.IsConflict(err) {
		t.Errorf("somebody wrote between: want a conflict, got %v", err)
	}

	w.Change(service, func() {})

	if meta.FindStatusCondition(service.Status.Conditions, "Another") == nil {
		t.Errorf("the condition of somebody else is gone: %+v", service.Status)
	}

	w.Remove(service)

	if err := generic.WriteStatus(t.Context(), w.Client, written.DeepCopy(), read); err != nil {
		t.Errorf("it is gone, which is no failure: %v", err)
	}

	w.Make(made())

	if err := generic.WriteStatus(t.Context(), w.Client, written.DeepCopy(), read); !apierrors.IsConflict(err) {
		t.Errorf("it was made again: want a conflict, got %v", err)
	}
}
