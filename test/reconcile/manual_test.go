package reconcile_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// consent is what "ambit authorize" writes in a namespace for the scope called scope, with rules in words besides the right to
// write Roles and RoleBindings.
func (w *world) consent(short string, rules ...string) *grant.Grant {
	g := &grant.Grant{
		Namespace: w.ns(short), To: w.ns(ops), Account: grant.DefaultAccount,
		Scope: compile.OwnerOf(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "scope"}}),
	}

	if g.InOperatorNamespace() {
		g.Rules = authority.GrantInOperatorNamespace(&scope.Scope{WatchList: operatorv1.DefaultConfigmapName})

		return g
	}

	for _, words := range append([]string{
		"create,delete,get,list,patch,watch roles", "create,delete,get,list,patch,watch rolebindings",
	}, rules...) {
		g.Rules = append(g.Rules, testbed.Rule(words))
	}

	return g
}

// authorizes writes a consent, and waits until the API server goes by it.
func (w *world) authorizes(short string, rules ...string) *rbacv1.RoleBinding {
	w.Helper()

	g := w.consent(short, rules...)
	role, binding := g.Role(), g.RoleBinding()
	w.Make(role)

	binding.OwnerReferences = grant.GoesWith(role)
	w.Make(binding)

	first := "create roles"
	if g.InOperatorNamespace() {
		first = "patch deployments"
	}

	w.May(w.ns(ops), grant.DefaultAccount, w.ns(short), first)

	return binding
}

const manual = `{"namespaceMembers":["a>","b>"],"manualManagement":true}`

// TestManualManagement: what a scope that is managed by hand is served with, whatever Ambit may do itself: nothing but what was
// authorized.
func TestManualManagement(t *testing.T) {
	t.Parallel()

	account := func(w *world) { w.Make(testbed.Account(w.ns(ops), grant.DefaultAccount)) }

	for name, tc := range map[string]struct {
		given func(w *world)
		want  seen
		// says are words about the first failed member.
		says []string
	}{
		"without an account nothing": {
			given: func(*world) {}, says: []string{"ambit authorize a --to ops"},
			want: seen{
				list: "-", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired", "b AuthorizationRequired"},
				copies: map[string][]string{"a": {}, "b": {}},
			},
		},
		"with an account that nobody authorized nothing": {
			given: account, says: []string{"to grant it: ambit authorize a --to ops --scope scope"},
			want: seen{
				list: "-", ready: "False AuthorizationRequired",
				failed: []string{"a AuthorizationRequired", "b AuthorizationRequired", "ops AuthorizationRequired"},
				copies: map[string][]string{"a": {}, "b": {}},
			},
		},
		"members that authorized, and no others": {
			given: func(w *world) {
				account(w)
				w.authorizes(ops)
				w.authorizes("a", "get secrets")
			},
			says: []string{"to grant it: ambit authorize b --to ops --scope scope"},
			want: seen{
				list: "a,ops", ready: "False AuthorizationRequired", failed: []string{"b AuthorizationRequired"},
				copies: map[string][]string{"a": one, "b": {}},
			},
		},
		"members that authorized too little are not served, and say so": {
			given: func(w *world) {
				account(w)
				w.authorizes(ops)
				w.authorizes("a")
				w.authorizes("b", "get secrets")
			},
			says: []string{"get secrets", "to grant it: ambit authorize a --to ops --scope scope"},
			want: seen{
				list: "b,ops", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired"},
				copies: map[string][]string{"a": {}, "b": one},
			},
		},
		"all that authorized": {
			given: func(w *world) {
				account(w)
				w.authorizes(ops)
				w.authorizes("a", "get secrets")
				w.authorizes("b", "get secrets")
			},
			want: seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": one, "ops": {}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			tc.given(w)
			w.scope(manual)
			w.settle()
			w.sees(tc.want)

			if failed := w.status("scope").FailedMembers; len(failed) > 0 {
				w.names("the failed member", w.called(failed[0].Message), tc.says...)
			}
		})
	}
}

// TestConsentIsTakenBack: what becomes of a member whose owner takes the consent back, however they do so, and that it comes back
// with another one.
func TestConsentIsTakenBack(t *testing.T) {
	t.Parallel()

	consents := func(w *world) (*rbacv1.Role, *rbacv1.RoleBinding) {
		g := w.consent("a")

		return g.Role(), g.RoleBinding()
	}

	for name, take := range map[string]func(w *world){
		"by its binding": func(w *world) {
			_, binding := consents(w)
			w.Remove(binding)
		},
		"by its Role": func(w *world) {
			role, binding := consents(w)
			w.Remove(role)
			w.Remove(binding) // The garbage collector takes it.
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w, consent := consented(t)
			w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": one}})
			w.belongs("a", consent)

			take(w)
			w.MayNot(w.ns(ops), grant.DefaultAccount, w.ns("a"), "create roles")

			// So are the copies, which belong to it.
			w.removeCopies(true, "")
			w.removeCopies(false, "")
			w.settle()

			is(w, "watch list", w.list(), "b,ops")
			is(w, "Ready", w.condition("scope", "Ready"), "False AuthorizationRequired")
			is(w, "failed members", w.failed("scope"), []string{"a AuthorizationRequired"})
			w.names("the failed member", w.called(w.status("scope").FailedMembers[0].Message),
				"to grant it: ambit authorize a --to ops --scope scope")

			is(w, "copies", w.copies("a"), []string{})

			for _, obj := range []client.Object{w.consent("a").Role(), w.consent("a").RoleBinding()} {
				if err := w.Client.Delete(t.Context(), obj); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
			}

			again := w.authorizes("a", "get secrets")
			w.rest()
			w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": one}})
			w.belongs("a", again)
		})
	}
}

// consented is a manual scope of which both members have authorized the account that writes, settled, and the consent of one.
func consented(t *testing.T) (*world, *rbacv1.RoleBinding) {
	t.Helper()

	w := begin(t)
	w.common()
	w.Make(testbed.Account(w.ns(ops), grant.DefaultAccount))
	w.authorizes(ops)
	w.authorizes("b", "get secrets")

	consent := w.authorizes("a", "get secrets")

	w.scope(manual)
	w.settle()

	return w, consent
}

// belongs fails the case unless every copy in a namespace goes with a consent and with nothing else.
func (w *world) belongs(short string, consent *rbacv1.RoleBinding) {
	w.Helper()

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		for _, obj := range w.copiesOf(short, list) {
			if owners := obj.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != consent.UID {
				w.Errorf("%s goes with %+v, not with %s", obj.GetName(), owners, consent.UID)
			}
		}
	}
}

// TestConsentWithoutMarks: a consent of which somebody takes the marks lets the scope go on, since the rights are there.
func TestConsentWithoutMarks(t *testing.T) {
	t.Parallel()

	w, consent := consented(t)
	w.belongs("a", consent)

	w.Change(consent, func() { consent.Labels = nil })
	w.settle()
	w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": one}})
}

// TestConsentIsNarrowed: what is no longer in a consent is granted no more, and what was granted by it before stays.
func TestConsentIsNarrowed(t *testing.T) {
	t.Parallel()

	w, consent := consented(t)
	role := w.consent("a").Role()
	w.Change(role, func() { role.Rules = role.Rules[:2] })
	w.MayNot(w.ns(ops), grant.DefaultAccount, w.ns("a"), "get secrets")
	w.settle()

	w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": one}})
	w.belongs("a", consent)

	w.removeCopies(true, "")
	w.settle()
	w.sees(seen{list: "b,ops", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired"},
		copies: map[string][]string{"b": one}})
}

// TestCommandsOfScopesOfOneName: a scope of each group may have the same name. Each says the command that authorizes for itself.
func TestCommandsOfScopesOfOneName(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.scopeCalled("x", `{"namespaceMembers":["a>"],"manualManagement":true}`)
	w.settle()

	const command = "ambit authorize a --to ops --scope "

	if got := w.messageOn("x", report.ConditionReady); !strings.HasSuffix(got, command+"x") {
		t.Errorf("alone: %s", got)
	}

	w.Make(&namespacescopev1alpha1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "x"},
		Spec: namespacescopev1alpha1.NamespaceScopeSpec{
			NamespaceMembers: []string{w.ns("a")}, ConfigmapName: "mine", ManualManagement: true,
		},
	})
	w.settle()

	if got := w.messageOn("x", report.ConditionReady); !strings.HasSuffix(got, command+"operator.ibm.com/x") {
		t.Errorf("beside one of the other group: %s", got)
	}
}
