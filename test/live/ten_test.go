package live_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// operators are as many as follow one list here.
const operators = 10

// TestTenOperatorsFollow: each change of the scope is taken in by each of ten operators before anything is taken from any of
// them, also where Ambit is killed in the middle, and none is ever restarted.
func TestTenOperatorsFollow(t *testing.T) {
	w := begin(t)
	names := w.moreOperators()
	pods := map[string][]string{}

	a, b := w.member("a"), w.member("b")
	w.members(a)
	w.served(a, hello)
	w.allTookIn(names)

	generation := map[string]int64{}
	for _, name := range names {
		generation[name], pods[name] = w.deployment(name).Generation, w.podsOf(name)
	}

	joins := w.tell(b)

	w.members(a, b)
	w.Reborn("namespacescope")
	w.allTookIn(names)
	w.served(b, hello)
	w.Eventually("what joins comes in order", func() error {
		return errors.Join(joins.inOrder(granted, named, tookIn), joins.inOrder(granted, named, reconciled),
			joins.atLeast(tookIn, operators))
	})

	leaves := w.tell(b)

	w.members(a)
	w.Reborn("namespacescope")
	w.Eventually("what leaves goes in order", func() error {
		// The operators share the Greetings. One that serves the namespace still puts its finalizer back, and takes it off again
		// before it takes in the list.
		return errors.Join(leaves.inOrder(forgot, letGo, revoked), leaves.inOrder(forgot, tookIn, revoked),
			leaves.begins(letGo, tookIn), leaves.atLeast(tookIn, operators))
	})

	for _, name := range names {
		if n := w.restarts(name, generation[name]); n != 0 || !slices.Equal(w.podsOf(name), pods[name]) {
			t.Errorf("%s was restarted %d times; its pods are %v, and were %v", name, n, w.podsOf(name), pods[name])
		}
	}
}

// moreOperators installs others like the first one, and returns the names of all.
func (w *world) moreOperators() []string {
	w.Helper()

	names := []string{operatorName}
	first := w.deployment(operatorName)

	for i := 1; i < operators; i++ {
		name := fmt.Sprintf("%s-%d", operatorName, i)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: name}, Spec: *first.Spec.DeepCopy()}
		d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = name, name
		w.Make(d)

		names = append(names, name)
	}

	w.Running(w.ops)
	w.allTookIn(names)

	return names
}

// allTookIn waits until each operator has taken in the list as it is.
func (w *world) allTookIn(names []string) {
	w.Helper()
	w.Eventually("all operators have taken in the list", func() error {
		for _, name := range names {
			pods := w.podsOf(name)
			if len(pods) != 1 {
				return fmt.Errorf("the pods of %s are %v", name, pods)
			}

			pod := &corev1.Pod{}
			if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: pods[0]}, pod); err != nil {
				return err
			}

			said, err := w.lease(string(pod.UID))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}

			if said != scope.TakenIn(w.list()) {
				return fmt.Errorf("%s has taken in %s", name, said)
			}
		}

		return nil
	})
}

// atLeast says whether something happened so often.
func (s *story) atLeast(what string, times int) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if n := len(s.moments[what]); n < times {
		return fmt.Errorf("%s happened %d times, not %d", what, n, times)
	}

	return nil
}
