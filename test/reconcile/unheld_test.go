package reconcile_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// refusing refuses one write.
func refusing(what string, status int) func(string) int {
	return func(write string) int {
		if write == what {
			return status
		}

		return 0
	}
}

// refusingAll refuses all writes, or questions, whose words begin so.
func refusingAll(words string, status int) func(string) int {
	return func(what string) int {
		if strings.HasPrefix(what, words) {
			return status
		}

		return 0
	}
}

// tried calls the reconciler of NamespaceScopes a few times, whatever it returns, and returns the last error.
func (w *world) tried() error {
	w.Helper()

	var last error

	for range 4 {
		w.catchUp(w.scopes.Client, w.ns(ops), scopeKinds()...)
		last = w.call(w.scopes, scope.NamespaceScopes.In(w.ns(ops))).err
	}

	return last
}

func (w *world) isThere(nss *operatorv1.NamespaceScope) bool {
	w.Helper()

	err := w.client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	return !apierrors.IsNotFound(err)
}

// TestScopeThatCannotBeWritten: a scope that is as large as the storage of the API server takes gets no finalizer, and no status.
// The other scopes of its namespace do not wait for it: what is taken back at the source is taken back in their members, and one
// that is deleted goes. Nothing is made for a scope without a finalizer until it has one.
func TestScopeThatCannotBeWritten(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		refused string
		// served are the copies in the member of the scope, while it cannot be written.
		served []string
	}{
		"no finalizer": {refused: "patch namespacescopes ops/large", served: []string{}},
		"no status":    {refused: "patch namespacescopes ops/large/status", served: one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>"]}`)
			goes := w.scopeCalled("goes", `{"namespaceMembers":["b>"]}`)
			w.settle()
			is(w, "copies of the scope that goes", w.copies("b"), one)

			w.refuses = refusing(tc.refused, http.StatusInternalServerError)
			w.scopeCalled("large", `{"namespaceMembers":["c>"]}`)
			w.Remove(goes)

			if err := w.tried(); err == nil {
				t.Error("it is not tried again")
			}

			is(w, "copies of the scope that cannot be written", w.copies("c"), tc.served)
			is(w, "copies of the scope that goes", w.copies("b"), []string{})
			is(w, "the scope that goes is there", w.isThere(goes), false)

			w.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op-role"}})

			_ = w.tried()
			is(w, "bindings that are left", slices.ContainsFunc(w.copies("a"), func(c string) bool { return c == one[1] }), false)

			w.refuses = nil
			w.settle()
			is(w, "Ready", w.condition("large", "Ready"), reconciled)
			is(w, "watch list", w.list(), "a,c,ops")
		})
	}
}

// TestDeletedScopeWaitsForNoBackOff: beside a scope that cannot be written, each plan that takes something from a deleted scope
// asks for the next one, until that is gone: the retry of what failed may be minutes away.
func TestDeletedScopeWaitsForNoBackOff(t *testing.T) {
	t.Parallel()

	for name, refused := range map[string]string{
		"no finalizer": "patch namespacescopes ops/large", "no status": "patch namespacescopes ops/large/status",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			// Both have the same member, so the watch list stays, and no write of it asks for a plan.
			w := served(t, `{"namespaceMembers":["a>"]}`)
			goes := w.scopeCalled("goes", `{"namespaceMembers":["a>"]}`)
			w.settle()

			w.refuses = refusing(refused, http.StatusInternalServerError)
			w.scopeCalled("large", `{"namespaceMembers":["a>"]}`)
			_ = w.tried()

			w.Remove(goes)

			for w.isThere(goes) {
				w.catchUp(w.scopes.Client, w.ns(ops), scopeKinds()...)

				c := w.call(w.scopes, scope.NamespaceScopes.In(w.ns(ops)))
				if soon := c.again > 0 && c.again <= time.Second; c.err == nil || !soon && w.isThere(goes) {
					t.Fatalf("it ends with %v, and asks for a plan in %s, after it wrote %q", c.err, c.again, c.writes)
				}
			}
		})
	}
}

// TestFinalizerThatDoesNotComeBack: what a scope has stays for a while in which its finalizer, that somebody took off, cannot be
// put on again, and goes after that, whenever the next retry is: nobody freezes a scope so.
func TestFinalizerThatDoesNotComeBack(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"]}`)
	w.scopeCalled("other", `{"namespaceMembers":["b>"]}`)
	w.settle()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "scope"}}
	w.Change(nss, func() { nss.Finalizers = nil })

	w.refuses = refusing("patch namespacescopes ops/scope", http.StatusInternalServerError)
	r, began := w.another(w.scopes.Client), time.Now()
	after := func(passed time.Duration) call {
		w.catchUp(r.Client, w.ns(ops), scopeKinds()...)

		r.Now = func() time.Time { return began.Add(passed) }

		return w.call(r, scope.NamespaceScopes.In(w.ns(ops)))
	}

	var due time.Duration

	for _, passed := range []time.Duration{0, 2 * time.Second, plan.RevocationPatience - time.Millisecond} {
		c := after(passed)
		if c.err == nil || len(c.writes) > 0 {
			t.Errorf("after %s, it ends with %v, and wrote %q", passed, c.err, c.writes)
		}

		if due = c.again; due <= 0 || due > plan.RevocationPatience {
			t.Errorf("after %s, it is planned again in %s", passed, due)
		}
	}

	is(w, "copies", w.copies("a"), one)

	if err := until(t.Context(), func() bool {
		return after(plan.RevocationPatience).err != nil && len(w.copies("a")) == 0
	}); err != nil {
		t.Errorf("what it had stays: %q", w.copies("a"))
	}

	is(w, "copies of the other scope", w.copies("b"), one)

	w.refuses = nil
	w.settle()
	is(w, "copies", w.copies("a"), one)
}

// TestLeftoversBesideAScopeThatCannotBeHeld: what a scope left that went without being released goes, also where the only other
// scope of the namespace can get no finalizer.
func TestLeftoversBesideAScopeThatCannotBeHeld(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"]}`)
	w.refuses = refusing("patch namespacescopes ops/large", http.StatusInternalServerError)
	w.scopeCalled("large", `{"namespaceMembers":["c>"]}`)

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "scope"}}
	w.Change(nss, func() { nss.Finalizers = nil })
	w.Remove(nss)

	if err := until(t.Context(), func() bool { return w.tried() != nil && len(w.copies("a")) == 0 }); err != nil {
		t.Errorf("copies of the scope that is gone stay: %q", w.copies("a"))
	}
}

// TestScopeThatIsAlwaysNewer: whoever changes a scope so often that Ambit cannot put its finalizer on, or its status, keeps
// nobody's rights: what is taken back at the source is taken back in the members of the other scopes, in time.
func TestScopeThatIsAlwaysNewer(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		conflicts string
		waits     time.Duration
	}{
		"no finalizer": {conflicts: "patch namespacescopes ops/busy", waits: plan.RevocationPatience},
		"no status":    {conflicts: "patch namespacescopes ops/busy/status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>"]}`)
			w.refuses = refusing(tc.conflicts, http.StatusConflict)
			w.scopeCalled("busy", `{"namespaceMembers":["c>"],"csvInjector":{"enable":true}}`)
			w.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op-role"}})

			r, began := w.another(w.scopes.Client), time.Now()
			after := func(passed time.Duration) call {
				w.catchUp(r.Client, w.ns(ops), scopeKinds()...)

				r.Now = func() time.Time { return began.Add(passed) }

				return w.call(r, scope.NamespaceScopes.In(w.ns(ops)))
			}

			if tc.waits > 0 {
				if c := after(0); c.err != nil || !c.Requeue || c.again <= 0 || c.again > tc.waits { //nolint:staticcheck // It is quiet.
					t.Errorf("it is not tried again without a word: %+v", c)
				}

				is(w, "copies", w.copies("a"), one)
			}

			if err := until(t.Context(), func() bool {
				after(tc.waits)

				return !slices.Contains(w.copies("a"), one[1])
			}); err != nil {
				t.Errorf("what was taken back stays: %q", w.copies("a"))
			}

			w.refuses = nil
			w.settle()
			is(w, "Ready", w.condition("busy", "Ready"), reconciled)
		})
	}
}

// TestScopesWhoseWritesHang: an admission webhook does not answer about the scopes of one namespace. What is to be revoked there
// waits for all of these writes together, and not for each of them.
func TestScopesWhoseWritesHang(t *testing.T) {
	t.Parallel()

	const many = 5

	for name, tc := range map[string]struct{ isStatus, goes bool }{
		"finalizers are put on":    {},
		"statuses":                 {isStatus: true},
		"finalizers are taken off": {goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>"]}`)

			var scopes []*operatorv1.NamespaceScope
			for i := range many {
				scopes = append(scopes, w.scopeCalled(fmt.Sprint("hangs-", i), `{"namespaceMembers":["a>"]}`))
			}

			if tc.goes {
				w.settle()

				for _, nss := range scopes {
					w.Remove(nss)
				}
			}

			hung := w.hangs(many, func(what string) bool {
				return strings.HasPrefix(what, "patch namespacescopes ops/hangs-") && strings.HasSuffix(what, "/status") == tc.isStatus
			})

			w.settle()
			is(w, "writes that hung", hung.Load(), many)
			is(w, "Ready", w.condition("scope", "Ready"), reconciled)
		})
	}
}

// hangs has the first of some writes wait until as many of them are under way, and counts these.
func (w *world) hangs(many int64, is func(what string) bool) *atomic.Int64 {
	hung, all := &atomic.Int64{}, make(chan struct{})

	w.refuses = func(what string) int {
		if !is(what) || hung.Load() == many {
			return 0
		}

		if hung.Add(1) == many {
			close(all)
		}

		select {
		case <-all:
		case <-time.After(time.Minute):
			w.Errorf("%s waits for an answer, and others wait for it", what)
		}

		return 0
	}

	return hung
}

// TestCSVsWhoseStatusesHang holds the same for what is installed in one namespace.
func TestCSVsWhoseStatusesHang(t *testing.T) {
	t.Parallel()

	const many = 4

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["ops>"]}`)
	w.reconcileGroup()

	for i := range many {
		w.csv("*", func(csv *olmv1alpha1.ClusterServiceVersion) {
			csv.Name = fmt.Sprint("hangs-", i)
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = csv.Name
		})
	}

	hung := w.hangs(many, func(what string) bool {
		return strings.HasPrefix(what, "patch clusterserviceversions ops/hangs-") && strings.HasSuffix(what, "/status")
	})

	w.reconcileGroup()
	is(w, "statuses that hung", hung.Load(), many)
}
