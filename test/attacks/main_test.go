// Package attacks_test tries what broke other projects of this kind, and what an attacker would try next. Each test says
// what must hold, and asks the API server whether it does. Run it alone: go test ./test/attacks -v
package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

func begin(t *testing.T, profile string) *testbed.World {
	t.Helper()

	return beds.Begin(t, profile)
}

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

var errMissing = errors.New("it is not there")

// refused fails unless the API server forbade something.
func refused(w *testbed.World, what string, err error) {
	w.Helper()

	if !apierrors.IsForbidden(err) {
		w.Errorf("%s: want a refusal, got %v", what, err)
	}
}

// forbidden complains unless the API server forbade something.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}

	return fmt.Errorf("want a refusal, got: %w", errors.Join(err, errMissing))
}

func pause() { time.Sleep(50 * time.Millisecond) }

// copies returns the projected Roles and RoleBindings in a namespace, as "<kind> <name>".
func copies(w *testbed.World, namespace string) []string {
	w.Helper()

	var out []string

	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	for _, l := range []client.ObjectList{roles, bindings} {
		if err := w.Client.List(context.Background(), l, client.InNamespace(namespace)); err != nil {
			w.Fatal(err)
		}
	}

	for i := range roles.Items {
		if roles.Items[i].Annotations["ambit.dev/owner"] != "" {
			out = append(out, "Role "+roles.Items[i].Name)
		}
	}

	for i := range bindings.Items {
		if bindings.Items[i].Annotations["ambit.dev/owner"] != "" {
			out = append(out, "RoleBinding "+bindings.Items[i].Name)
		}
	}

	return out
}

// copyOf waits for the copy of a Role of an operator namespace in a namespace.
func copyOf(w *testbed.World, ops, role, namespace string) *rbacv1.Role {
	w.Helper()

	found := &rbacv1.Role{}

	w.Eventually("the copy of "+role+" in "+namespace, func() error {
		list := &rbacv1.RoleList{}
		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}

		for i := range list.Items {
			if list.Items[i].Annotations["ambit.dev/source"] == "Role/"+ops+"/"+role {
				*found = list.Items[i]

				return nil
			}
		}

		return errMissing
	})

	return found
}

// writes are the requests by which Ambit, as whomever, changed or tried to change something.
func writes(w *testbed.World) []testbed.Request {
	w.Helper()

	return slices.DeleteFunc(w.Requests(), func(r testbed.Request) bool {
		return slices.Contains([]string{"get", "list", "watch"}, r.Verb) || strings.HasPrefix(r.Object.Resource, "selfsubject")
	})
}
