package predict_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestCopiesGoWithTheirAuthorization holds that the cluster takes copies with the authorization that owns them, and that Ambit
// makes them again as far as it may.
func TestCopiesGoWithTheirAuthorization(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		// byRole deletes the Role of the authorization, beside says that another one remains.
		byRole, beside bool
		lacks          bool
		// collected, made and refused count copies.
		collected, made, refused int
		list                     string
	}{
		"allowed": {
			"an account that may write there by something else makes them again", false, false, false, 2, 2, 0, "",
		},
		"refused": {
			"otherwise nobody holds anything there, and the list forgets the member", false, false, true, 2, 0, 2, "ops",
		},
		"its Role": {"the authorization goes with its Role", true, false, true, 2, 0, 2, "ops"},
		"another":  {"they stay with the last authorization that allows them", false, true, false, 0, 0, 0, ""},
		"another, its Role": {
			"that goes for the Role as well", true, true, false, 0, 0, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a")
			w.delegate()

			role, authorization := authorizationIn("a", "")
			w.add(role)
			w.add(authorization)

			if tc.beside {
				role, beside := authorizationIn("a", ".s")
				w.add(role)
				w.add(beside)
			}

			in, cluster := w.begin()
			if out := predicted(w, in); out.Refused() || len(out.Changes) != 2 {
				t.Fatalf("there is nothing that could go: %+v", out.Changes)
			}

			cluster.Begin()

			var gone client.Object = authorization
			if tc.byRole {
				gone = role
			}

			if err := cluster.Delete(gone.DeepCopyObject().(client.Object)); err != nil {
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

			if collected != tc.collected || made != tc.made || refused != tc.refused {
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

// authorizationIn is an authorization of everything in a namespace; suffix is how its name ends.
func authorizationIn(namespace, suffix string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	role := &rbacv1.Role{ObjectMeta: at(namespace, scope.AuthorizationPrefix+"ops"+suffix)}
	role.Rules = []rbacv1.PolicyRule{ruleOf("*", "*", "*")}
	role.Labels = map[string]string{scope.LabelAuthorizationTo: "ops", scope.LabelManagedBy: scope.ManagedByAuthorization}
	role.UID = types.UID("role" + suffix)

	b := bindingOf(namespace, role.Name, role.Name)
	b.Subjects[0].Name, b.Labels, b.OwnerReferences = "delegate", role.Labels, grant.GoesWith(role)

	return role, b
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
