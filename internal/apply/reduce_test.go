package apply_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestNobodyHoldsRulesThatWereNeverTheirs changes a role that gains rules in place, as the ClusterRoles of templates do, and
// those who hold it at once, and goes through every state between: who
// left never holds the new rules, and who stays is never without the role.
func TestNobodyHoldsRulesThatWereNeverTheirs(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	before, after := binding("b", "r"), binding("b", "r")
	before.Subjects = append(before.Subjects, account("leaves"))
	after.Subjects = append(after.Subjects, account("comes"))

	b.grant(b.change(plan.Create, role("r", "get"), 0), b.change(plan.Create, before, 0))

	inPlace := func(verb string) *plan.Copy {
		c := role("r", verb)
		c.Fixed = true

		return c
	}

	seen := len(b.notes.wrote)
	out := b.grant(b.change(plan.Update, inPlace("delete"), 0), b.change(plan.Update, after, 0))

	if out.Results[apply.Configured] != 2 || len(out.Failures) > 0 {
		t.Fatalf("got %+v", out)
	}

	want := []string{"b operator", "r delete", "b operator comes"}
	if got := b.notes.since(seen); !slices.Equal(got, want) {
		t.Errorf("the API server saw %q, want %q", got, want)
	}

	// Where the role stays as it is, one write does.
	seen = len(b.notes.wrote)
	b.grant(b.change(plan.Update, before, 0))
	b.grant(b.change(plan.Update, inPlace("get"), 0))

	want = []string{"b operator leaves", "r get"}
	if got := b.notes.since(seen); !slices.Equal(got, want) {
		t.Errorf("the API server saw %q, want %q", got, want)
	}
}

// TestHeldObjectThatIsWrittenAllTheTime: a binding that somebody deleted and holds, or goes on writing, gives nothing to those
// who are to lose it, however that ends.
func TestHeldObjectThatIsWrittenAllTheTime(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	before, after := binding("b", "r"), binding("b", "r")
	before.Subjects = append(before.Subjects, account("leaves"))
	b.grant(b.change(plan.Create, role("r", "get"), 0), b.change(plan.Create, before, 0))

	obj := before.Kind.Empty(b.member, before.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["tenants.example.com/mine"]}}`))

	if err := errors.Join(b.client.Patch(t.Context(), obj, patch), b.client.Delete(t.Context(), obj)); err != nil {
		t.Fatal(err)
	}

	update := b.change(plan.Update, after, 1)
	update.Named = true

	out := b.apply(writer.Own(), plan.ScopePlan{Revoke: []plan.Change{update}}).Scopes[0]
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) || len(out.Failures) > 0 {
		t.Errorf("it is there still (%v): %+v, %+v", err, obj, out)
	}
}

func account(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: name}
}

// since returns what the API server answered to the writes since a number of them, in their order.
func (n *notes) since(before int) []string {
	n.mu.Lock()
	defer n.mu.Unlock()

	var said []string

	for _, obj := range n.wrote[before:] {
		words := []string{obj.GetName()}

		switch obj := obj.(type) {
		case *rbacv1.Role:
			words = append(words, obj.Rules[0].Verbs...)
		case *rbacv1.RoleBinding:
			for _, s := range obj.Subjects {
				words = append(words, s.Name)
			}
		}

		said = append(said, strings.Join(words, " "))
	}

	return said
}
