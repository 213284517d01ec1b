package bounds_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestRolesTimesMembersAreBounded: who administers one namespace has a scope ask for a thousand Roles in each namespace that a
// label selects, none of which grants anything. What is planned is bounded, the scope names the limit, and others are served
// meanwhile.
//
// It is the last of those that share a manager: what it leaves there, in the limits, stays in the manager's memory, and would be
// taken for what the others cost.
func TestRolesTimesMembersAreBounded(t *testing.T) {
	const roles, namespaces = 1000, 150

	w := beds.Quiet(t, "delegated")
	evil, home, member, joins := w.Namespace("evil"), w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")

	w.Operator(evil, "op", "get secrets")
	w.Delegate(evil, nil)
	w.Operator(home, "op", "get secrets")
	w.Delegate(home, []string{"get secrets"}, member)

	others := w.Scope(home, testbed.DelegatedBy("delegate", member))
	w.Reports(others, yes, "Reconciled")
	w.Grant(joins, "in-member", home, "delegate", append(testbed.InMember(), "get secrets")...)

	label := "selected-by-" + evil
	for range namespaces {
		w.Namespace("closed", label+"=yes")
	}

	mallory := w.Tenant("mallory-"+evil, evil)
	many(w, mallory, roles, func(i int) client.Object {
		return &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: evil, Name: fmt.Sprintf("role-%04d", i)},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{strconv.Itoa(i)},
			}},
		}
	})
	many(w, mallory, roles, func(i int) client.Object {
		return testbed.Bind(evil, "Role", fmt.Sprintf("role-%04d", i), evil, "op")
	})

	spec := testbed.DelegatedBy("delegate")
	spec.NamespaceSelector = &operatorv1.NamespaceSelector{Raw: fmt.Appendf(nil, `{"matchLabels":{%q:"yes"}}`, label)}
	nss := w.Scope(evil, spec)

	edit := func(names ...string) func() {
		return func() { w.Change(others, func() { others.Spec = testbed.DelegatedBy("delegate", names...) }) }
	}

	for range 2 {
		w.Serves(edit(member, joins), func() bool { return w.Allowed(home, "op", joins, "get secrets") })
		w.Serves(edit(member), func() bool { return !w.Allowed(home, "op", joins, "get secrets") })
	}

	saysLimit := func() bool {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			t.Fatal(err)
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, "Ready")

		return c != nil && c.Reason == "LimitExceeded" && strings.Contains(c.Message, strconv.Itoa(plan.MaxObjects)) &&
			strings.Contains(c.Message, "by name are left out")
	}

	w.Within(5*time.Minute, "the scope names its limit", func() error {
		if !saysLimit() {
			return errMissing
		}

		return nil
	})

	if peak := w.Peak(); peak > maxMemory {
		t.Errorf("the manager took %d MiB", peak>>20)
	} else {
		t.Logf("the manager took %d MiB", peak>>20)
	}
}
