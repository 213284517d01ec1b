package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// other is the second namespace whose scopes the manager of beginTwo serves, beside its own, and outdated a third one, in which
// Ambit holds what it needed before it acted as an account of each.
const (
	other    = "team-b"
	outdated = "team-c"
)

var (
	letIntoOther sync.Once
	errNotListed = errors.New("the watch list is not as expected")
)

// beginTwo starts a test in the profile namespaced, with a manager that serves several namespaces, in each with the Role of the
// profile.
func beginTwo(t *testing.T) *testbed.World {
	t.Helper()

	w := beds.Begin(t, "namespaced", "--namespaces="+other+","+outdated)

	letIntoOther.Do(func() {
		role := &rbacv1.Role{}

		key := client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit-namespaced"}
		if err := w.Client.Get(w.Context(), key, role); err != nil {
			t.Fatal(err)
		}

		before := slices.DeleteFunc(slices.Clone(role.Rules), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "impersonate")
		})

		for ops, rules := range map[string][]rbacv1.PolicyRule{outdated: before, other: role.Rules} {
			w.MakeNamespace(ops)
			w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: role.Name}, Rules: rules},
				testbed.Bind(ops, "Role", role.Name, embedded.Namespace, embedded.ServiceAccount))
		}

		w.Eventually("Ambit is let in", func() error {
			group := operatorv1.GroupVersion.Group
			for _, ops := range []string{other, outdated} {
				if !w.AllowedIn(embedded.Namespace, embedded.ServiceAccount, ops, "list", group, "namespacescopes") {
					return errMissing
				}
			}

			return nil
		})

		// It would look again within a minute.
		if err := w.Manager.Restart(); err != nil {
			t.Fatal(err)
		}
	})

	return w
}

// cleanup outlives a test.
func cleanup() context.Context { return context.Background() }

func isInvalid(err error) bool { return apierrors.IsInvalid(err) }

// listing says whether the watch list of a scope names a namespace.
func listing(w *testbed.World, nss *operatorv1.NamespaceScope, namespace string, want bool) func() error {
	return func() error {
		cm := &corev1.ConfigMap{}

		key := client.ObjectKey{Namespace: nss.Namespace, Name: nss.Spec.ConfigmapName}
		if err := w.Client.Get(w.Context(), key, cm); err != nil {
			return err
		}

		if slices.Contains(strings.Split(cm.Data["namespaces"], ","), namespace) != want {
			return fmt.Errorf("%w: it is %q", errNotListed, cm.Data["namespaces"])
		}

		return nil
	}
}

// unauthorized waits until a scope says that a member did not let it in, for the present generation.
func unauthorized(w *testbed.World, nss *operatorv1.NamespaceScope, member string) {
	w.Helper()
	w.Eventually(nss.Namespace+" says that "+member+" did not let it in", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		for _, f := range nss.Status.FailedMembers {
			if f.Namespace == member && f.Reason == "AuthorizationRequired" &&
				strings.Contains(f.Message, "ambit authorize "+member+" --to "+nss.Namespace) {
				return nil
			}
		}

		return fmt.Errorf("%w: %+v", errUndecided, nss.Status)
	})
}

// run runs a command line that has to succeed.
func run(w *testbed.World, arguments ...string) {
	w.Helper()

	if out, code := w.Ambit(arguments...); code != 0 {
		w.Fatalf("%v: exit code %d: %s", arguments, code, out)
	}
}

// two is a scope in each of the two namespaces, with an operator, and a namespace that both name.
type two struct {
	*testbed.World

	member, account string
	ours, theirs    *operatorv1.NamespaceScope
}

func newTwo(t *testing.T) *two {
	t.Helper()

	w := &two{World: beginTwo(t)}
	w.member = w.Namespace("member")
	w.account = w.member

	for ops, nss := range map[string]**operatorv1.NamespaceScope{embedded.Namespace: &w.ours, other: &w.theirs} {
		w.Operator(ops, w.account, "get secrets")

		spec := testbed.Members(w.member)
		spec.ConfigmapName, spec.ServiceAccountMembers = w.member, []string{w.account}
		spec.RestartLabels = map[string]operatorv1.LabelValue{"only": "named"}
		*nss = &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: w.member}, Spec: spec}
		w.Make(*nss)
	}

	return w
}

// authorizations has the owner of the member let a namespace in.
func (w *two) authorizes(ops string, more ...string) {
	w.Helper()
	run(w.World, append([]string{"authorize", w.member, "--to", ops, "--scope", w.member}, more...)...)
}

// TestAuthorizationToOneNamespaceServesNoOther has one manager serve two operator namespaces. What the owner of a member granted
// to the one is of no use to whoever writes scopes in the other, however much it is, and whatever else the other one was granted.
func TestAuthorizationToOneNamespaceServesNoOther(t *testing.T) {
	w := newTwo(t)

	w.authorizes(embedded.Namespace, "--all")
	w.May(embedded.Namespace, w.account, w.member, "get secrets")
	w.Eventually("the one is served", listing(w.World, w.ours, w.member, true))

	unauthorized(w.World, w.theirs, w.member)
	w.nothing("get secrets")

	// Ambit's own namespace and its account's rights are no exception.
	w.Change(w.theirs, func() { w.theirs.Spec.NamespaceMembers = append(w.theirs.Spec.NamespaceMembers, embedded.Namespace) })
	unauthorized(w.World, w.theirs, embedded.Namespace)

	if w.Allowed(other, w.account, embedded.Namespace, "get secrets") {
		t.Error("a scope got into Ambit's own namespace")
	}

	w.Change(w.theirs, func() { w.theirs.Spec.NamespaceMembers = []string{w.member} })

	// With an authorization of its own the other is served, as far as that goes.
	w.authorizes(other)
	w.May(other, w.account, w.member, "get secrets")
	w.Eventually("the other is served, too", listing(w.World, w.theirs, w.member, true))

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: w.account + "-role"}}
	w.Change(role, func() { role.Rules = append(role.Rules, testbed.Rule("create secrets")) })
	unauthorized(w.World, w.theirs, w.member)
	w.nothing("create secrets")
	w.Remove(w.theirs)
	w.MayNot(other, w.account, w.member, "get secrets")
	w.Eventually("the scope goes", w.Gone(w.theirs))
}

// nothing holds that the operator of the other namespace has no such right in the member.
func (w *two) nothing(words string) {
	w.Helper()

	for range 5 {
		if w.Allowed(other, w.account, w.member, words) {
			w.Fatalf("the operator of %s may %s in %s, by %v", other, words, w.member, copies(w.World, w.member))
		}

		pause()
	}
}

// TestAuthorizationsEndOneByOne takes back what was granted to one of two namespaces: that ends its access, and keeps the
// other's.
func TestAuthorizationsEndOneByOne(t *testing.T) {
	w := newTwo(t)

	for _, ops := range []string{embedded.Namespace, other} {
		w.authorizes(ops)
		w.May(ops, w.account, w.member, "get secrets")
	}

	w.Eventually("both are served", func() error {
		return errors.Join(listing(w.World, w.ours, w.member, true)(), listing(w.World, w.theirs, w.member, true)())
	})

	grant := "ambit-authorized-from-" + embedded.Namespace + "." + w.member
	w.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.member, Name: grant}})
	unauthorized(w.World, w.ours, w.member)
	w.Eventually("it is out of the one list", listing(w.World, w.ours, w.member, false))

	// The other one is served as before: what goes missing comes back.
	copied := copyOf(w.World, other, w.account+"-role", w.member)
	w.Remove(copied)
	w.Eventually("it comes back", func() error {
		back := copyOf(w.World, other, w.account+"-role", w.member)
		if back.UID == copied.UID {
			return errMissing
		}

		return nil
	})
	w.May(other, w.account, w.member, "get secrets")

	if err := listing(w.World, w.theirs, w.member, true)(); err != nil {
		t.Error(err)
	}

	// The command takes the other one back, and with it what was projected; and what is granted anew serves whom it is granted
	// to.
	run(w.World, "revoke", w.member, "--to", other, "--scope", w.member)
	w.MayNot(other, w.account, w.member, "get secrets")
	w.authorizes(embedded.Namespace)
	w.Eventually("the one is served again", listing(w.World, w.ours, w.member, true))
	w.nothing("get secrets")
}

// TestServedNamespaceWithoutItsAccount has a namespace served in which Ambit may not act as the account to which owners grant. It
// does not act as itself instead, whatever it was granted, and says what it lacks.
func TestServedNamespaceWithoutItsAccount(t *testing.T) {
	w := newTwo(t)
	w.authorizes(embedded.Namespace, "--all")
	w.Eventually("Ambit itself is let in", listing(w.World, w.ours, w.member, true))
	w.Operator(outdated, w.account, "get secrets")

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: outdated, Name: w.member}, Spec: w.theirs.Spec}
	w.Make(nss)
	w.authorizes(outdated)
	unauthorized(w.World, nss, w.member)

	said := nss.Status.FailedMembers[0].Message
	if !strings.Contains(said, "may not act as") || !strings.Contains(said, "ambit-namespaced") {
		t.Errorf("it says %q", said)
	}

	if w.Allowed(outdated, w.account, w.member, "get secrets") {
		t.Error("it got in as somebody else")
	}
}
