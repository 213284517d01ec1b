package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	widgetGroup = "reconcile.example.com"
	cleanUp     = "example.com/clean-up"
	// held is what keeps a copy in a namespace that is being deleted.
	held = "ambit.dev/finishing"
)

// defineWidgets makes the kind that operators work on here, before any manager begins: which kinds there are is remembered for a
// while.
func (p *plane) defineWidgets(ctx context.Context) error {
	if err := p.client.Create(ctx, definitionOf(widgetGroup, "widgets", "Widget")); client.IgnoreAlreadyExists(err) != nil {
		return err
	}

	discoverer, err := discovery.NewDiscoveryClientForConfig(apiServer)
	if err != nil {
		return err
	}

	return until(ctx, func() bool {
		_, err := discoverer.ServerResourcesForGroupVersion(widgetGroup + "/v1")

		return err == nil
	})
}

func (w *world) widget(short, name string, finalizers ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: widgetGroup, Version: "v1", Kind: "Widget"})
	u.SetNamespace(w.ns(short))
	u.SetName(name)
	u.SetFinalizers(finalizers)

	return u
}

// waits makes a widget that is being deleted and waits for its operator; finish lets go of it as the operator does.
func (w *world) waits(short, name string) {
	w.Helper()

	u := w.widget(short, name, cleanUp)
	w.Make(u)
	w.Remove(u)
}

func (w *world) finish(short, name string) {
	w.Helper()

	operator := w.As("system:serviceaccount:"+w.ns(ops)+":op", "system:authenticated")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))

	if err := operator.Patch(w.Context(), w.widget(short, name), patch); err != nil {
		w.Fatalf("the operator may not let go of what waits for it: %v", err)
	}
}

// works makes an operator that works on widgets in the members a and b, and waits until the API server lets it.
func (w *world) works(spec string) {
	w.Helper()
	w.common()

	role := testbed.Role(w.ns(ops), "widgets")
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{widgetGroup}, Resources: []string{"widgets"}, Verbs: []string{"list", "patch"},
	}}
	w.Make(role, w.binding(ops, "widgets", "Role", "widgets", w.account("op")))
	w.scope(spec)
	w.settle()
	is(w, "watch list before", w.list(), "a,b,ops")
	is(w, "copies before", w.copies("a"), working)
	w.Eventually("the operator may list widgets", func() error {
		if !w.AllowedIn(w.ns(ops), "op", w.ns("a"), "list", widgetGroup, "widgets") {
			return errNotYet
		}

		return nil
	})
}

var errNotYet = errors.New("not yet")

var working = with("Role widgets: list,patch widgets", "widgets: Role widgets to ops/op")

// finishing shows what status says of namespaces that finish: "a: waiting for a finalizer: …".
func (w *world) finishing() []string {
	w.Helper()

	out := []string{}
	for _, m := range w.status("scope").FinishingMembers {
		out = append(out, w.called(m.Namespace+": "+m.Message))
	}

	return out
}

// since writes when namespaces began to finish into the status.
func (w *world) since(at time.Time) {
	w.Helper()

	nss := &operatorv1.NamespaceScope{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "scope"}, nss); err != nil {
		w.Fatal(err)
	}

	if len(nss.Status.FinishingMembers) == 0 {
		w.Fatal("no namespace finishes")
	}

	nss.Status.FinishingMembers[0].Since = metav1.NewTime(at)
	if err := w.client.Status().Update(w.Context(), nss); err != nil {
		w.Fatal(err)
	}
}

// heldIn is how many copies in a namespace outlast its content.
func (w *world) heldIn(short string) int {
	w.Helper()

	n := 0

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		for _, obj := range w.copiesOf(short, list) {
			if slices.Contains(obj.GetFinalizers(), held) {
				n++
			}
		}
	}

	return n
}

const (
	both  = `{"namespaceMembers":["a>","b>"]}`
	onlyB = `{"namespaceMembers":["b>"]}`

	waitingOne = "a: waiting for a finalizer: widgets.reconcile.example.com one"
)

func (w *world) leaves() { w.respec(onlyB) }

// TestMembersFinish: which namespaces keep what they have although they left, or are being deleted, and what is told of it.
func TestMembersFinish(t *testing.T) {
	t.Parallel()

	one := func(w *world) { w.waits("a", "one") }

	for name, tc := range map[string]struct {
		spec  string
		given func(w *world)
		leave func(w *world)
		// finishing is what status says; nothing when the namespace left.
		finishing string
		held      int
	}{
		"one in which something waits for the operator": {given: one, leave: (*world).leaves, finishing: waitingOne},
		"one in which nothing is left":                  {leave: (*world).leaves},
		"one in which something is alive that has a finalizer": {
			given: func(w *world) { w.Make(w.widget("a", "alive", cleanUp)) }, leave: (*world).leaves,
		},
		"something waits elsewhere": {given: func(w *world) { w.waits("c", "one") }, leave: (*world).leaves},
		"one of those that labels choose": {
			spec: `{"namespaceSelector":{"team":"red>"}}`, given: one, finishing: waitingOne,
			leave: func(w *world) { a := w.object("a"); w.Change(a, func() { delete(a.Labels, "team") }) },
		},
		"several things wait": {
			given: func(w *world) {
				for i := range 7 {
					w.waits("a", fmt.Sprintf("w%d", i))
				}
			},
			leave: (*world).leaves,
			finishing: "a: waiting for a finalizer: " + strings.Join([]string{
				"widgets.reconcile.example.com w0", "widgets.reconcile.example.com w1", "widgets.reconcile.example.com w2",
				"widgets.reconcile.example.com w3", "widgets.reconcile.example.com w4",
			}, ", ") + " and 2 more",
		},
		"one that is being deleted, in which all that has a finalizer waits": {
			given: func(w *world) { w.Make(w.widget("a", "one", cleanUp)) }, leave: func(w *world) { w.Remove(w.object("a")) },
			finishing: waitingOne, held: 4,
		},
		"one that left and is being deleted": {
			given: one, leave: func(w *world) { w.leaves(); w.Remove(w.object("a")) }, finishing: waitingOne, held: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			if tc.spec == "" {
				tc.spec = both
			}

			w.works(tc.spec)

			if tc.given != nil {
				tc.given(w)
			}

			tc.leave(w)
			w.settle()

			list, copies, finishing, condition := "b,ops", []string{}, []string{}, "-"
			if tc.finishing != "" {
				list, copies, finishing, condition = "a,b,ops", working, []string{tc.finishing}, "False Finishing"
			}

			is(w, "watch list", w.list(), list)
			is(w, "copies", w.copies("a"), copies)
			is(w, "copies in the other member", w.copies("b"), working)
			is(w, "status.finishingMembers", w.finishing(), finishing)
			is(w, "MembersFinished", w.condition("scope", "MembersFinished"), condition)
			is(w, "how many copies are held", w.heldIn("a"), tc.held)
		})
	}
}

// TestFinishingEnds: what ends it that a namespace keeps what it has, and what does not.
func TestFinishingEnds(t *testing.T) {
	t.Parallel()

	smaller := []string{
		"Role op-role: ", "Role widgets: list,patch widgets", "op-role: Role op-role to ops/op", "widgets: Role widgets to ops/op",
	}
	// They go with the namespace, and are of no use to anybody until then.
	emptied := []string{"Role op-role: ", "Role widgets: ", "op-role: Role op-role to ", "widgets: Role widgets to "}

	for name, tc := range map[string]struct {
		leave, change func(w *world)
		list          string
		copies        []string
	}{
		"the operator has finished": {
			change: func(w *world) { w.finish("a", "one") }, list: "b,ops", copies: []string{},
		},
		"the operator has finished in one that is being deleted": {
			leave: func(w *world) { w.Remove(w.object("a")) }, change: func(w *world) { w.finish("a", "one") }, list: "b,ops",
			copies: emptied,
		},
		"the time is over": {change: func(w *world) { w.since(time.Now().Add(-2 * time.Hour)) }, list: "b,ops", copies: []string{}},
		"the time is over in one that is being deleted": {
			leave:  func(w *world) { w.Remove(w.object("a")) },
			change: func(w *world) { w.since(time.Now().Add(-2 * time.Hour)) }, list: "b,ops", copies: emptied,
		},
		"not that somebody says it began later": {
			change: func(w *world) { w.since(time.Now().Add(time.Hour)) }, list: "a,b,ops", copies: working,
		},
		"not that something else comes to wait": {
			change: func(w *world) { w.waits("a", "two") }, list: "a,b,ops", copies: working,
		},
		"the scope goes": {change: func(w *world) { w.removeScope("scope") }, list: "-", copies: []string{}},
		"the scope goes, and the namespace": {
			leave: func(w *world) { w.Remove(w.object("a")) }, change: func(w *world) { w.removeScope("scope") }, list: "-",
			copies: []string{},
		},
		"the namespace comes back": {change: func(w *world) { w.respec(both) }, list: "a,b,ops", copies: working},
		"a rule that is taken at the source goes": {
			change: func(w *world) {
				r := testbed.Role(w.ns(ops), "op-role")
				w.Change(r, func() { r.Rules = nil })
			},
			list: "a,b,ops", copies: smaller,
		},
		"a binding that is taken at the source goes": {
			change: func(w *world) { w.Remove(w.binding(ops, "op-role", "Role", "op-role")) }, list: "a,b,ops",
			copies: []string{"Role widgets: list,patch widgets", "widgets: Role widgets to ops/op"},
		},
		"nothing comes to it": {
			change: func(w *world) { w.further(w.account("op")) }, list: "a,b,ops", copies: working,
		},
		"a copy that somebody joins goes, and not the others": {
			change: func(w *world) {
				for _, obj := range w.copiesOf("a", &rbacv1.RoleBindingList{}) {
					if b, ok := obj.(*rbacv1.RoleBinding); ok && sourceOf(b) == "op-role" {
						w.Change(b, func() { b.Subjects = append(b.Subjects, toUser("mallory")) })
					}
				}
			},
			list: "a,b,ops", copies: []string{
				"Role op-role: get secrets", "Role widgets: list,patch widgets", "widgets: Role widgets to ops/op",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.works(both)

			if tc.leave == nil {
				w.waits("a", "one")
				tc.leave = (*world).leaves
			} else {
				w.Make(w.widget("a", "one", cleanUp))
			}

			tc.leave(w)
			w.settle()
			is(w, "status.finishingMembers", w.finishing(), []string{waitingOne})

			began := w.status("scope").FinishingMembers[0].Since

			tc.change(w)
			w.finished(tc.list)

			is(w, "watch list", w.list(), tc.list)
			is(w, "copies", w.copies("a"), tc.copies)

			if tc.list != "a,b,ops" {
				is(w, "how many copies are held", w.heldIn("a"), 0)

				return
			}

			for _, m := range w.status("scope").FinishingMembers {
				is(w, "since when it finishes", m.Since.Equal(&began), true)
			}
		})
	}
}

// TestWhatWasSeenWaitsUntilItIsLookedAtAgain: an API server that fails for a while ends nothing.
func TestWhatWasSeenWaitsUntilItIsLookedAtAgain(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.works(both)
	w.waits("a", "one")
	w.leaves()

	r := w.another(w.scopes.Client)
	key := scope.NamespaceScopes.In(w.ns(ops))
	reconcile := func() { w.answered(r, key, func() { w.catchUp(r.Client, w.ns(ops), scopeKinds()...) }) }

	reconcile()
	is(w, "status.finishingMembers", w.finishing(), []string{waitingOne})

	fails := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(fails.Close)

	r.Finder = waiting.New(&rest.Config{Host: fails.URL})
	r.Now = func() time.Time { return time.Now().Add(20 * time.Second) } // It is looked again.
	reconcile()
	is(w, "status.finishingMembers", w.finishing(), []string{waitingOne})
	is(w, "copies", w.copies("a"), working)
	is(w, "watch list", w.list(), "a,b,ops")
}

// finished settles, and again after it was worth looking once more where the list is to become another one: it is looked whether
// anything waits once in a second.
func (w *world) finished(list string) {
	w.Helper()

	for last, _ := w.settle(); w.list() != list && last.again > 0 && last.again < restartInterval/2; last, _ = w.settle() {
		select {
		case <-w.Context().Done():
			w.Fatal(w.Context().Err())
		case <-time.After(min(last.again, 100*time.Millisecond)):
		}
	}
}
