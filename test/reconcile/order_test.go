package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// at is where the first write begins with words; the case fails when there is none.
func (w *world) at(writes []string, words string) int {
	w.Helper()

	i := slices.IndexFunc(writes, func(what string) bool { return strings.HasPrefix(what, words) })
	if i < 0 {
		w.Fatalf("nothing of %q among %q", words, writes)
	}

	return i
}

// TestOrder: what comes before what, in one call.
func TestOrder(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		before, after string
		// order are beginnings of writes, each of which comes after the one before it.
		order []string
	}{
		"the finalizer comes before anything is made": {
			after: `{"namespaceMembers":["a>"]}`, order: []string{"patch namespacescopes ops/scope", "create roles a/"},
		},
		"permissions come before the list names a member, and status comes last": {
			after: `{"namespaceMembers":["a>"]}`,
			order: []string{"create roles a/", "create rolebindings a/", "patch configmaps ops/namespace-scope",
				"patch namespacescopes ops/scope/status"},
		},
		"permissions of a member that is added come before the list": {
			before: `{"namespaceMembers":["a>"]}`, after: `{"namespaceMembers":["a>","b>"]}`,
			order: []string{"create rolebindings b/", "patch configmaps ops/namespace-scope"},
		},
		"the list forgets a member before its permissions go": {
			before: `{"namespaceMembers":["a>","b>"]}`, after: `{"namespaceMembers":["a>"]}`,
			order: []string{"patch configmaps ops/namespace-scope", "delete rolebindings b/", "delete roles b/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			if tc.before == "" {
				w.scope(tc.after)
			} else {
				w.scope(tc.before)
				w.settle()
				w.respec(tc.after)
			}

			_, wrote := w.settle()
			last := -1

			for _, words := range tc.order {
				i := w.at(wrote, words)
				if i <= last {
					t.Errorf("%q comes too early in %q", words, wrote)
				}

				last = i
			}
		})
	}
}

// TestScopeGoes: what a scope made goes with it, and so does it itself.
func TestScopeGoes(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		spec  string
		given func(w *world)
	}{
		"from all of its members":         {spec: `{"namespaceMembers":["a>","b>"]}`},
		"from members that labels chose":  {spec: `{"namespaceSelector":{"team":"red>"}}`},
		"although a member never existed": {spec: `{"namespaceMembers":["a>","gone>"]}`},
		"although a member is being deleted": {
			spec: `{"namespaceMembers":["a>","b>"]}`, given: func(w *world) { w.Remove(w.object("b")) },
		},
		"although its operators have gone": {
			spec: `{"namespaceMembers":["a>","b>"]}`, given: func(w *world) { w.Remove(w.workload("Deployment", "op")) },
		},
		"although the pod of a restarted reader has not begun": {spec: `{"namespaceMembers":["a>"]}`, given: (*world).beginsAnew},
		"although somebody took the list away": {
			spec: `{"namespaceMembers":["a>"]}`, given: func(w *world) { w.Remove(w.configMap("namespace-scope", nil)) },
		},
		"although its selector cannot be read":  {spec: `{"namespaceMembers":["a>"],"namespaceSelector":{}}`},
		"although it was never reconciled once": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			if tc.spec == "" {
				w.scope(`{"namespaceMembers":["a>"]}`)
			} else {
				w.scope(tc.spec)
				w.settle()
			}

			if tc.given != nil {
				tc.given(w)
			}

			w.removeScope("scope")
			w.settle()

			for _, namespace := range []string{"a", "b", "c", "ops"} {
				is(w, "copies in "+namespace, w.copies(namespace), []string{})
			}

			is(w, "ConfigMap", w.data("namespace-scope"), "-")

			nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "scope"}}
			if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); !apierrors.IsNotFound(err) {
				t.Errorf("the scope is there still: %v, %v", err, nss.Finalizers)
			}
		})
	}
}

// TestScopeComesAgain: whoever makes a scope again after it is gone has what they had.
func TestScopeComesAgain(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	for range 3 {
		w.asks(func(w *world) { w.scope(`{"namespaceMembers":["a>"]}`) })
		w.settle()
		w.sees(seen{list: "a,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one}})

		w.asks(func(w *world) { w.removeScope("scope") })
		w.settle()
		is(w, "copies", w.copies("a"), []string{})
		is(w, "ConfigMap", w.data("namespace-scope"), "-")

		// What makes a scope again watches its namespace again.
		w.watch(w.ns(ops))
	}
}

// TestRefused: a delegate that may not write everything, and what becomes of the rest.
func TestRefused(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		// granted are the namespaces in which the delegate holds what the operator has, and written those in which it may write only.
		// less those in which it holds nothing of the operator's but to list pods, which the operator may then, too.
		granted, written, less []string
		spec                   string
		want                   seen
		// unprojected is how many roles status names, where the case is about it.
		unprojected int
	}{
		"a delegate that holds all of it serves all": {
			granted: []string{"a", "b"}, spec: `{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`,
			want: seen{list: "a,b,ops", ready: reconciled, copies: map[string][]string{"a": one, "b": one}},
		},
		"one bad namespace never blocks another": {
			granted: []string{"a"}, spec: `{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`,
			want: seen{list: "a,ops", ready: "False AuthorizationRequired", failed: []string{"b AuthorizationRequired"},
				copies: map[string][]string{"a": one, "b": {}}},
		},
		"a role that may not be projected keeps its member from the list": {
			granted: []string{"a"}, written: []string{"b"},
			spec: `{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`,
			want: seen{list: "a,ops", ready: "False AuthorizationRequired", failed: []string{"b AuthorizationRequired"},
				copies: map[string][]string{"a": one, "b": {}}},
		},
		"roles that may not be projected are named in order": {
			written: []string{"b", "a"}, spec: `{"namespaceMembers":["b>","gone>","a>"],"serviceAccountName":"delegate"}`,
			want: seen{list: "ops", ready: "False MembersFailed",
				failed: []string{"a AuthorizationRequired", "b AuthorizationRequired", "gone NamespaceNotFound"},
				copies: map[string][]string{"a": {}, "b": {}}},
			unprojected: 2,
		},
		"with allowSubsetProjection it is left out": {
			granted: []string{"a"}, less: []string{"b"},
			spec: `{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate","allowSubsetProjection":true}`,
			want: seen{list: "a,b,ops", ready: "True SubsetProjected", copies: map[string][]string{
				"a": with("Role more: list pods", "more: Role more to ops/op"), "b": {"Role more: list pods", "more: Role more to ops/op"},
			}},
		},
		"a member of which that leaves nothing does not enter the list": {
			granted: []string{"a"}, written: []string{"b"},
			spec: `{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate","allowSubsetProjection":true}`,
			want: seen{list: "a,ops", ready: "False AuthorizationRequired", failed: []string{"b AuthorizationRequired"},
				copies: map[string][]string{"a": one, "b": {}}},
		},
		"a delegate that is missing writes nothing": {
			spec: `{"namespaceMembers":["a>"],"serviceAccountName":"nobody"}`,
			want: seen{list: "-", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired"},
				copies: map[string][]string{"a": {}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			w.Delegate(w.ns(ops), []string{"get secrets"})

			for _, short := range tc.granted {
				w.grant(short, "in-member", "delegate", append(testbed.InMember(), "get secrets", "list pods")...)
			}

			for _, short := range tc.less {
				w.grant(ops, "more", "op", "list pods")
				w.grant(short, "in-member", "delegate", append(testbed.InMember(), "list pods")...)
			}

			for _, short := range tc.written {
				w.grant(short, "in-member", "delegate", testbed.InMember()...)
			}

			// The API server's own authorizer hears of a grant in its own time.
			for _, short := range slices.Concat(tc.granted, tc.written, tc.less) {
				w.May(w.ns(ops), "delegate", w.ns(short), "patch rolebindings")
			}

			w.scope(tc.spec)
			w.settle()

			if tc.want.failed == nil {
				tc.want.failed = []string{}
			}

			w.sees(tc.want)

			if tc.unprojected > 0 {
				is(w, "unprojected roles", len(w.status("scope").UnprojectedRoles), tc.unprojected)
			}
		})
	}
}
