package predict_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestCopiesGoWithTheirAuthorization holds that the cluster takes copies with the authorization that owns them, and that Ambit
// makes them again as far as it may.
func TestCopiesGoWithTheirAuthorization(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason  string
		lacks   bool
		made    int
		refused int
		list    string
	}{
		"allowed": {"an account that may write there by something else makes them again", false, 2, 0, ""},
		"refused": {"otherwise nobody holds anything there, and the list forgets the member", true, 0, 2, "ops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a")
			w.delegate()

			authorization := authorizationIn("a")
			w.add(authorization)

			in, cluster := w.begin()
			if out := predicted(w, in); out.Refused() || len(out.Changes) != 2 {
				t.Fatalf("there is nothing that could go: %+v", out.Changes)
			}

			cluster.Begin()

			if err := cluster.Delete(authorization.DeepCopyObject().(client.Object)); err != nil {
				t.Fatal(err)
			}

			w.lacks["a"] = tc.lacks

			out := predicted(w, in)
			collected, made, refused := 0, 0, 0

			for i := range out.Changes {
				switch c := &out.Changes[i]; {
				case c.Purpose == predict.Collected && c.Action == plan.Delete && c.Owner == w.owner():
					collected++
				case c.Refusal != nil:
					refused++
				default:
					made++
				}
			}

			if collected != 2 || made != tc.made || refused != tc.refused {
				t.Errorf("%s: collected %d, made %d, refused %d", tc.reason, collected, made, refused)
			}

			list := ""
			for i := range out.Lists {
				list = out.Lists[i].After
			}

			if list != tc.list {
				t.Errorf("%s: the list becomes %q", tc.reason, list)
			}
		})
	}
}

func authorizationIn(namespace string) *rbacv1.RoleBinding {
	b := bindingOf(namespace, scope.AuthorizationPrefix+"ops", "granted")
	b.Subjects[0].Name = "delegate"
	b.Labels = map[string]string{scope.LabelAuthorizationTo: "ops", scope.LabelManagedBy: scope.ManagedByAuthorization}

	return b
}

func (w *world) owner() scope.Owner { return w.manager.Compile([]client.Object{w.scope})[0].Owner }

// TestLostCopy holds that a member leaves the list in which a part of what was there is deleted, and refused again.
func TestLostCopy(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()
	w.add(&rbacv1.Role{ObjectMeta: at("ops", "more"), Rules: []rbacv1.PolicyRule{ruleOf("get", "", "pods")}})
	w.add(bindingOf("ops", "more", "more"))

	in, cluster := w.begin()

	first := predicted(w, in)
	if first.Refused() || len(first.Changes) != 4 {
		t.Fatalf("there is nothing that could be lost: %+v", first.Changes)
	}

	at := slices.IndexFunc(first.Changes, func(c predict.Change) bool { return c.Key.Kind.IsBinding() })
	gone := &rbacv1.RoleBinding{}
	gone.Namespace, gone.Name = "a", first.Changes[at].Key.Name

	if err := cluster.Delete(gone); err != nil {
		t.Fatal(err)
	}

	w.lacks["a"] = true

	if out := predicted(w, in); len(out.Lists) != 1 || out.Lists[0].After != "ops" || !out.Refused() {
		t.Errorf("got %+v, lists %+v", out.Changes, out.Lists)
	}
}
