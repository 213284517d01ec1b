package templates_test

import (
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

const allow = "ambit.dev/allow-cluster-wide"

// TestPolicyKeepsInstancesFromTheWholeCluster: where the profile's policies are, the API server refuses the change itself.
func TestPolicyKeepsInstancesFromTheWholeCluster(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	in := w.instance("i", "t", a)
	w.binds("i", a)

	in.Spec.Namespaces = nil
	w.Eventually("the refusal", func() error {
		fresh := in.DeepCopy()
		w.get(fresh)
		fresh.Spec.Namespaces = nil

		err := w.Client.Update(t.Context(), fresh)
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

// TestEveryRightComesBeforeTheOldOneGoes: from namespaces to the whole cluster, and back, there is no moment without.
func TestNoGapBetweenReaches(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	in := w.instance("i", "t", a)
	w.May(ops, "op", a, "get secrets")

	stop, gaps := make(chan struct{}), make(chan int)

	go func() {
		n := 0
		defer func() { gaps <- n }()

		for {
			select {
			case <-stop:
				return
			default:
				if !w.Allowed(ops, "op", a, "get secrets") {
					n++
				}
			}
		}
	}()

	for range 3 {
		w.Change(in, func() { in.Spec.Namespaces, in.Annotations = nil, map[string]string{allow: "true"} })
		w.binds("i", "")
		w.Change(in, func() { in.Spec.Namespaces = []string{a} })
		w.binds("i", a)
	}

	close(stop)

	if n := <-gaps; n > 0 {
		t.Errorf("%d times it could not", n)
	}
}
