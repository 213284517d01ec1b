package attacks_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// Two scopes of one namespace share a watch list, and name different accounts. The author of the one whose account may not write
// the list gets no namespace onto it by way of the other's: the operators that read it would be sent wherever that author likes.
func TestSharedListNamesNothingForAnAccountThatMayNotWriteIt(t *testing.T) {
	w := begin(t, "delegated")
	home, member, victim := w.Namespace("home"), w.Namespace("member"), w.Namespace("victim")
	w.Operator(home, "op", "get secrets")
	w.Delegate(home, []string{"get secrets"}, member)
	w.Reports(w.ScopeCalled(home, "strong", testbed.DelegatedBy("delegate", member)), yes, "Reconciled")

	w.Make(testbed.Account(home, "weak"))

	// Nothing has to be projected for this scope, so nothing is refused in the namespace that it names.
	spec := testbed.DelegatedBy("weak", victim)
	spec.RestartLabels = map[string]operatorv1.LabelValue{"intent": "of-nobody"}
	weak := w.ScopeCalled(home, "weak", spec)

	list := func() string {
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "namespace-scope"}, cm); err != nil {
			t.Fatal(err)
		}

		return cm.Data["namespaces"]
	}

	w.Reports(weak, no, "AuthorizationRequired", "configmaps")
	holdsWithout(w, func() error {
		if got, want := list(), home+","+member; got != want {
			return fmt.Errorf("the list is %q, want %q", got, want)
		}

		return nil
	})

	// The other scope goes on as before, and may name more.
	more := w.Namespace("more")
	w.Grant(more, "in-member", home, "delegate", append(testbed.InMember(), "get secrets")...)

	strong := w.ScopeCalled(home, "stronger", testbed.DelegatedBy("delegate", more))
	w.Reports(strong, yes, "Reconciled")

	// Once its account may write the list, its namespace is on it.
	w.Grant(home, "weak", home, "weak", testbed.InOperatorNamespace()...)
	w.Reports(weak, yes, "Reconciled")
	w.Eventually("the namespace is listed", func() error {
		if got, want := list(), fmt.Sprintf("%s,%s,%s,%s", home, member, more, victim); got != want {
			return fmt.Errorf("the list is %q, want %q", got, want)
		}

		return nil
	})
	// Nobody else's author keeps a namespace on it that leaves, and in which the operators have nothing any more.
	w.Make(testbed.Account(home, "weaker"))

	spec = testbed.DelegatedBy("weaker", more)
	spec.RestartLabels = map[string]operatorv1.LabelValue{"intent": "of-nobody"}
	w.Reports(w.ScopeCalled(home, "weaker", spec), no, "AuthorizationRequired", "configmaps")
	w.Remove(strong)
	w.Eventually("the namespace that left is not listed", func() error {
		if got, want := list(), fmt.Sprintf("%s,%s,%s", home, member, victim); got != want {
			return fmt.Errorf("the list is %q, want %q", got, want)
		}

		return nil
	})
}
