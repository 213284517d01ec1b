package bounds_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestContentsOfAnOperatorNamespaceAreBounded: who administers the namespace of a scope fills it with Roles, bindings and lists
// as large as they can be, and goes on writing them. Ambit stays small, others are served meanwhile, the scope says what is left
// out, and what it serves goes on being served.
func TestContentsOfAnOperatorNamespaceAreBounded(t *testing.T) {
	const large = 90

	w := beds.Quiet(t, "delegated")
	evil, served := w.Namespace("evil"), w.Namespace("served")
	home, member, joins := w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")

	for ns, member := range map[string]string{evil: served, home: member} {
		w.Operator(ns, "op", "get secrets")
		w.Delegate(ns, []string{"get secrets"}, member)
	}

	nss := w.Scope(evil, testbed.DelegatedBy("delegate", served))
	w.Reports(nss, yes, "Reconciled")

	others := w.Scope(home, testbed.DelegatedBy("delegate", member))
	w.Reports(others, yes, "Reconciled")
	w.Grant(joins, "in-member", home, "delegate", append(testbed.InMember(), "get secrets")...)

	// A tenant may write no rules that they do not hold; these name secrets of the namespace, which its administrator may read.
	mallory := w.Tenant("mallory-"+evil, evil)
	flood(w, mallory, large, 3, func(i int) client.Object { return testbed.Large(evil, i) })

	stop, written := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(written)

		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}

			patch := []byte(`{"metadata":{"annotations":{"note":"` + strings.Repeat("n", round%50) + `"}}}`)
			_ = mallory.Patch(t.Context(), testbed.Large(evil, round%large), client.RawPatch(types.MergePatchType, patch))

			pause()
		}
	}()

	edit := func(names ...string) func() {
		return func() { w.Change(others, func() { others.Spec = testbed.DelegatedBy("delegate", names...) }) }
	}

	for range 2 {
		w.Serves(edit(member, joins), func() bool { return w.Allowed(home, "op", joins, "get secrets") })
		w.Serves(edit(member), func() bool { return !w.Allowed(home, "op", joins, "get secrets") })
	}

	close(stop)
	<-written

	w.Reports(nss, no, "LimitExceeded", "Roles", "are left out")
	w.May(evil, "op", served, "get secrets")

	if peak := w.Peak(); peak > maxMemory {
		t.Errorf("the manager took %d MiB", peak>>20)
	} else {
		t.Logf("the manager took %d MiB", peak>>20)
	}

	// Once there is room, everything is read again.
	for i := range large {
		w.Remove(testbed.Large(evil, i))
	}

	w.Within(long, "it is well again", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		for _, c := range nss.Status.Conditions {
			if c.Reason == "LimitExceeded" {
				return errStillThere
			}
		}

		return nil
	})
}
