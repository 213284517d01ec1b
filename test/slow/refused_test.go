package slow_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	members = 60
	// roles of the operator, each with its binding, are copied into each member.
	roles   = 3
	objects = members * roles * 2
	// atOnce is what Ambit writes at once where nothing is refused, by its default.
	atOnce = 64
)

// TestLittleRoomIsShared: where the API server answers two of Ambit's requests at once and refuses the others, a projection of
// hundreds of objects is slower and nothing else. No member fails, and Ambit does not go on asking for more than there is.
func TestLittleRoomIsShared(t *testing.T) {
	w := beds.Own(t, "cluster")
	ops := w.Namespace("ops")
	w.Operator(ops, "op", "get secrets")

	for i := range roles - 1 {
		w.Grant(ops, fmt.Sprintf("more-%d", i), ops, "op", "get configmaps")
	}

	var in []string
	for range members {
		in = append(in, w.Namespace("member"))
	}

	// The first makes shares so cheap that one is less than a request.
	w.Make(level("ballast", 20_000), level("little", 12), flow("little", "little"))
	refusesCrowds(w, ops)

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}}
	said := watchReasons(w, ops)
	began := time.Now()

	nss.Spec.NamespaceMembers = in
	w.Make(nss)
	w.Within(3*time.Minute, "all is projected", func() error { return projected(w, in, nss) })

	failed := slices.DeleteFunc(said(), func(r string) bool { return strings.HasPrefix(r, "Reconciled: ") })
	if late := lateAnswers(w, ops); len(failed) > late {
		t.Errorf("on the way there, with %d late answers, the scope said %q", late, failed)
	}

	made, refused := 0, 0

	for _, r := range w.Requests() {
		switch written := r.Object.Resource == "roles" || r.Object.Resource == "rolebindings"; {
		case !written || r.Verb != "create" || r.Received.Before(began):
		case r.Response.Code == http.StatusTooManyRequests:
			refused++
		default:
			made++
		}
	}

	if made != objects || refused == 0 {
		t.Fatalf("%d objects were made and %d writes refused; the setup wants %d, and some", made, refused, objects)
	}

	// As many as write at once are refused at first, and then one in a second or two.
	if refused > objects/2 {
		t.Errorf("%d writes of %d objects were refused", refused, objects)
	}

	t.Logf("%d objects in %s, %d writes refused", objects, time.Since(began).Round(time.Second), refused)
}

// refusesCrowds waits until the API server refuses some of many requests that Ambit's account makes at once.
func refusesCrowds(w *testbed.World, namespace string) {
	w.Helper()

	through, err := rest.HTTPClientFor(w.ConfigOf(embedded.Namespace, embedded.ServiceAccount))
	if err != nil {
		w.Fatal(err)
	}

	w.Eventually("Ambit's account is refused when it asks too much at once", func() error {
		var (
			crowd   sync.WaitGroup
			refused atomic.Int64
		)

		for range atOnce {
			crowd.Go(func() {
				request, err := http.NewRequestWithContext(w.Context(), http.MethodGet,
					w.Config.Host+"/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles", nil)
				if err != nil {
					return
				}

				if response, err := through.Do(request); err == nil {
					_ = response.Body.Close() // Only the code matters.

					if response.StatusCode == http.StatusTooManyRequests {
						refused.Add(1)
					}
				}
			})
		}

		crowd.Wait()

		if refused.Load() == 0 {
			return errors.New("all were answered")
		}

		return nil
	})
}

// watchReasons notes every reason that a scope gives for its condition Ready.
func watchReasons(w *testbed.World, namespace string) func() []string {
	w.Helper()

	events, err := w.Client.Watch(w.Context(), &operatorv1.NamespaceScopeList{}, client.InNamespace(namespace))
	if err != nil {
		w.Fatal(err)
	}

	var (
		mu      sync.Mutex
		reasons []string
	)

	go func() {
		for e := range events.ResultChan() {
			nss, ok := e.Object.(*operatorv1.NamespaceScope)
			if !ok {
				continue
			}

			if ready := meta.FindStatusCondition(nss.Status.Conditions, "Ready"); ready != nil {
				mu.Lock()
				reasons = append(reasons, ready.Reason+": "+ready.Message)
				mu.Unlock()
			}
		}
	}()

	return func() []string {
		events.Stop()
		mu.Lock()
		defer mu.Unlock()

		return slices.Clone(reasons)
	}
}

// lateAnswers is how many plans of a namespace ended, by the manager's log, because an answer took longer than Ambit waits for
// it, as answers may on a busy machine. A member fails for a moment then, which is no matter of what is refused.
func lateAnswers(w *testbed.World, namespace string) int {
	w.Helper()

	return w.Logged(apply.ErrUnanswered.Error(), fmt.Sprintf("object=%q", namespace))
}

// projected says what is missing of the copies, of the list and of the status; nil when nothing is.
func projected(w *testbed.World, in []string, nss *operatorv1.NamespaceScope) error {
	made := 0

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := w.Client.List(w.Context(), list, client.HasLabels{scope.LabelScope}); err != nil {
			return fmt.Errorf("listing: %w", err)
		}

		made += meta.LenList(list)
	}

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
		return fmt.Errorf("looking at the scope: %w", err)
	}

	// The operator namespace is a member, and holds no copies.
	if listed := len(nss.Status.ValidatedMembers); made != objects || listed < len(in) ||
		!meta.IsStatusConditionTrue(nss.Status.Conditions, "Ready") {
		return fmt.Errorf("%d of %d objects, %d of %d members: %+v", made, objects, listed, len(in), nss.Status.Conditions)
	}

	return nil
}
