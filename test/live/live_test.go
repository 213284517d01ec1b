package live_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAnOperatorFollows holds W6 with a real operator: it serves what joins and lets go of what leaves, each in its order, and
// Ambit never restarts it. A reader beside it that does not follow is restarted as ever.
func TestAnOperatorFollows(t *testing.T) {
	w := begin(t)
	a, b := w.member("a"), w.member("b")

	w.members(a)
	w.served(a, hello)
	w.restartedTo(1)

	// What it has taken in until now is no part of what comes.
	w.settle()

	generation, pod := w.deployment(operatorName).Generation, w.pod
	joins := w.tell(b)
	begun := time.Now()

	w.members(a, b)
	w.served(b, hello)
	t.Logf("served %s after the scope changed", time.Since(begun).Round(time.Millisecond))
	w.Eventually("what joins comes in order", func() error {
		return errors.Join(joins.inOrder(granted, named, tookIn), joins.inOrder(granted, named, reconciled))
	})
	w.restartedTo(2)

	leaves := w.tell(b)

	w.members(a)
	w.Eventually("what leaves goes in order", func() error { return leaves.inOrder(forgot, letGo, tookIn, revoked) })
	w.Eventually("the operator has lost its rights", func() error {
		if w.works(b) {
			return errors.New("it has them")
		}

		return nil
	})
	w.restartedTo(3)

	// It still works, and left nothing that keeps anything.
	w.Make(greeting(a, "again"))
	w.served(a, "again")

	if err := w.Client.Delete(t.Context(), greeting(b, hello)); err != nil {
		t.Error(err)
	}

	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: b, Name: hello}, greeting(b, hello))
	if !apierrors.IsNotFound(err) {
		t.Errorf("a Greeting in the namespace that left does not go: %v", err)
	}

	if n := w.restarts(operatorName, generation); n != 0 || !slices.Equal(w.podsOf(operatorName), []string{pod}) {
		t.Errorf("the operator that follows was restarted %d times; its pods are %v, and was %s", n, w.podsOf(operatorName), pod)
	}
}

// restartedTo waits until the reader that does not follow was restarted so often, the first time for the first list.
func (w *world) restartedTo(n int64) {
	w.Helper()
	w.Eventually("the reader that does not follow is restarted", func() error {
		if got := w.restarts("plain", 1); got != n {
			return fmt.Errorf("%d times, not %d", got, n)
		}

		return nil
	})
}

// TestOperatorThatIsKilledWhileANamespaceLeaves: nobody says that it let go, so the permissions go after the grace time; with an
// operator that begins anew in its pod, as soon as it says which list it has.
func TestOperatorThatIsKilledWhileANamespaceLeaves(t *testing.T) {
	w := begin(t)
	a, b, c := w.member("a"), w.member("b"), w.member("c")
	w.members(a, b, c)
	w.served(b, hello)
	w.served(c, hello)
	w.settle()

	w.must(w.kubelet.Kill(w.pod))

	took := w.leaves(c, a, b)
	t.Logf("permissions went %s after the list forgot the namespace", took.Round(time.Millisecond))

	if took < grace/2 || took > 2*grace {
		t.Errorf("the grace time is %s", grace)
	}

	w.must(w.kubelet.Again(w.pod))
	w.Eventually("it follows again", func() error { return w.tookIn(w.list()) })
	w.must(w.kubelet.Kill(w.pod))

	begun := time.Now()

	w.members(a)
	w.listed(a + "," + w.ops)
	w.must(w.kubelet.Again(w.pod))
	w.revokedIn(b)

	took = time.Since(begun)
	t.Logf("with an operator that began anew, they went after %s", took.Round(time.Millisecond))

	if took >= grace {
		t.Errorf("that is no sooner than the grace time of %s", grace)
	}
}

// TestAmbitIsKilledWhileANamespaceLeaves: the next Ambit goes on where the other was. It takes nothing that somebody still
// works with, and takes it once nobody does.
func TestAmbitIsKilledWhileANamespaceLeaves(t *testing.T) {
	w := begin(t)
	a, b := w.member("a"), w.member("b")
	w.members(a, b)
	w.served(b, hello)
	w.settle()

	w.must(w.kubelet.Signal(w.pod, stop))

	leaves := w.tell(b)

	w.members(a)
	w.listed(a + "," + w.ops)
	w.Reborn("namespacescope")

	if !w.works(b) {
		t.Error("the permissions went although the operator had not let go")
	}

	w.must(w.kubelet.Signal(w.pod, goOn))
	w.Eventually("what leaves goes in order", func() error { return leaves.inOrder(forgot, letGo, tookIn, revoked) })
	w.revokedIn(b)

	if pods := w.podsOf(operatorName); !slices.Equal(pods, []string{w.pod}) {
		t.Errorf("the operator was restarted: its pods are %v", pods)
	}
}

// settle waits until the operator has taken in the list as it is, and nobody restarts any more.
func (w *world) settle() {
	w.Helper()
	w.Eventually("the operator follows", func() error { return w.tookIn(w.list()) })
	w.Running(w.ops)
}

// leaves takes a member out and returns how long after the list forgot it the permissions went.
func (w *world) leaves(member string, rest ...string) time.Duration {
	w.Helper()
	w.members(rest...)

	slices.Sort(rest)
	w.Eventually("the list forgets "+member, func() error {
		if slices.Contains(namesIn(w.list()), member) {
			return errors.New("it has it")
		}

		return nil
	})

	begun := time.Now()

	w.revokedIn(member)

	return time.Since(begun)
}

func (w *world) revokedIn(member string) {
	w.Helper()
	w.Eventually("the permissions in "+member+" go", func() error {
		if w.works(member) {
			return errors.New("they are there")
		}

		return nil
	})
}

func (w *world) lease(pod string) (string, error) {
	lease := newLease(w.ops, pod, "", "")
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(lease), lease)

	return lease.Annotations[takenInAnnotation], err
}
