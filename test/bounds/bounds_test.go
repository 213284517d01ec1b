package bounds_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// many makes objects as a tenant, several at once, and fails unless the API server took all of them.
func many(w *testbed.World, as client.Client, n int, each func(i int) client.Object, opts ...client.CreateOption) {
	w.Helper()

	var (
		workers sync.WaitGroup
		next    = make(chan int)
	)

	for range 8 {
		workers.Go(func() {
			for i := range next {
				if err := insist(w, as, each, i, opts...); err != nil {
					w.Errorf("a tenant makes object %d: %v", i, err)
				}
			}
		})
	}

	for i := range n {
		next <- i
	}

	close(next)
	workers.Wait()

	if w.Failed() {
		w.FailNow()
	}
}

// flood makes objects, the first ones as a tenant: those show that a tenant may, and each kind is among them. The others
// are the same to Ambit. The API server compares each rule that a tenant writes with all that they hold, and does not where a
// cluster administrator writes it; that is its own work, and most of it.
func flood(w *testbed.World, tenant client.Client, n, first int, each func(i int) client.Object) {
	w.Helper()

	many(w, tenant, first, each)
	many(w, w.Client, n-first, func(i int) client.Object { return each(first + i) })
}

// insist makes an object, and tries again where the API server has too much to do. What it made without having said so is there.
func insist(w *testbed.World, as client.Client, each func(i int) client.Object, i int, opts ...client.CreateOption) error {
	w.Helper()

	const tries = 10

	var err error

	for range tries {
		if err = as.Create(w.Context(), each(i), opts...); !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) &&
			!apierrors.IsTooManyRequests(err) {
			break
		}
	}

	return client.IgnoreAlreadyExists(err)
}

// bounded fails if the manager has taken more memory than it may.
func bounded(w *testbed.World) {
	w.Helper()

	if peak := w.Peak(); peak > maxMemory {
		w.Errorf("the manager took %d MiB", peak>>20)
	} else {
		w.Logf("the manager took %d MiB", peak>>20)
	}
}

// Marks can be written by anybody, with any namespace in them. Nothing is watched because of one, whoever the API server says
// wrote it, and nothing that is as large as an annotation may be is remembered.
func TestMadeUpOwnersOpenNoWatches(t *testing.T) {
	const owners = 60

	w := beds.Quiet(t, "cluster")
	evil, ops, existing := w.Namespace("evil"), w.Namespace("home"), w.Namespace("existing")
	mallory := w.Tenant("mallory-"+evil, evil)

	before := w.Watching("deployments")
	forged := func(owner func(i int) string) func(int) client.Object {
		return func(i int) client.Object {
			return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
				Namespace: evil, Name: fmt.Sprintf("forged-%s-%d", strings.ToLower(owner(0)[:1]), i),
				Labels:      map[string]string{"ambit.dev/scope": "0123456789abcdef"},
				Annotations: map[string]string{"ambit.dev/owner": owner(i), "ambit.dev/source": "Role/" + existing + "/r"},
			}}
		}
	}

	many(w, mallory, owners, forged(func(i int) string { return fmt.Sprintf("NamespaceScope/made-up-%s-%d/scope", evil, i) }))
	many(w, mallory, owners, forged(func(i int) string { return fmt.Sprintf("ClusterServiceVersion/made-up-%s-%d/csv", evil, i) }))
	many(w, mallory, 3, forged(func(i int) string { return "Long/" + strings.Repeat("x", 200_000) + fmt.Sprint("/", i) }))
	// These look as if Ambit had written them.
	many(w, mallory, 10, forged(func(i int) string {
		return []string{"OperatorGroup/" + existing + "/g", "Scope/" + existing + "/s", "Template//t"}[i%3]
	}), client.FieldOwner("ambit"))

	w.Holds(ops, func() error {
		for _, resource := range []string{"cronjobs", "deployments"} {
			if n := w.Watching(resource); n > before+owners/2 {
				return fmt.Errorf("%d watches of %s are open", n, resource)
			}
		}

		return nil
	})

	list := &rbacv1.RoleList{}
	if err := w.Client.List(w.Context(), list, client.InNamespace(evil)); err != nil || len(list.Items) < 2*owners {
		t.Fatalf("of what was forged, %d are there: %v", len(list.Items), err)
	}

	if w.Watching("deployments") == 0 {
		t.Error("no scope is watched, so nothing was counted")
	}
}

// maxMemory is what nobody who administers one namespace may make Ambit exceed. Several attacks run against one manager at a
// time, and the peak is that of all of them; and where everything computes, garbage is collected late. The benchmark measures
// each by itself, against the 256 MiB that are promised.
const maxMemory = 320 << 20

// The labels by which IBM's operator knows its own can be written by anybody. What bears them is neither remembered whole nor
// compared with everything else that bears them, and is of no concern to scopes of other lists.
func TestForgedMarksOfIBMsOperatorCostLittle(t *testing.T) {
	const forged = 1200

	w := beds.Quiet(t, "cluster")
	evil, ops := w.Namespace("evil"), w.Namespace("home")
	mallory := w.Tenant("mallory-"+evil, evil)

	// Cut to 63 letters, this could be the mark of a list of any operator namespace.
	anyones := "namespace-scope-" + strings.Repeat("x", 47)

	flood(w, mallory, forged, 10, func(i int) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: evil, Name: fmt.Sprintf("stem%d-0123456789abcd", i),
				Labels: map[string]string{
					"namespace-scope-configmap": []string{anyones, "probe-" + ops}[i%2], "app.kubernetes.io/name": "probe",
					"app.kubernetes.io/managed-by": "ibm-namespace-scope-operator", "app.kubernetes.io/instance": "namespace-scope",
				},
			},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: fmt.Sprintf("made-up-%d", i)}},
		}
	})

	w.Holds(ops, func() error {
		if peak := w.Peak(); peak > maxMemory {
			return fmt.Errorf("the manager has had %d MiB", peak>>20)
		}

		return nil
	})

	list := &rbacv1.RoleBindingList{}
	if err := w.Client.List(w.Context(), list, client.InNamespace(evil),
		client.MatchingLabels{"app.kubernetes.io/instance": "namespace-scope"}); err != nil || len(list.Items) != forged {
		t.Fatalf("of what was forged, %d are there: %v", len(list.Items), err)
	}

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "probe"}}
	w.Reports(nss, yes, "Reconciled")

	if c := meta.FindStatusCondition(nss.Status.Conditions, "TakenOver"); c == nil || !strings.Contains(c.Message, "more") {
		t.Errorf("what was forged is not said to be left alone: %+v", c)
	}
}

// An author decides how large a scope is, up to what etcd takes. Where there is hardly any room left for a status, Ready is
// written all the same; and what a binding refers to may have a name that is longer than a condition's message can be.
func TestScopeAsLargeAsAnObjectCanBeHasAReadyCondition(t *testing.T) {
	const (
		etcd = 1536 << 10
		left = 5000
	)

	w := beds.Begin(t, "cluster")
	ops := w.Namespace("home")
	w.Operator(ops, "op", "get secrets")

	b := testbed.Bind(ops, "Role", "r", ops, "op")
	b.Name, b.RoleRef.Name = "dangling", strings.Repeat("r", 40_000)
	w.Make(b)

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "large"}}
	for i := range 20_000 {
		nss.Spec.NamespaceMembers = append(nss.Spec.NamespaceMembers, fmt.Sprintf("%s-%05d", strings.Repeat("n", 57), i))
	}

	text, err := json.Marshal(nss)
	if err != nil {
		t.Fatal(err)
	}

	// What the API server adds, such as who wrote which field, is known once the scope is made without it.
	nss.Annotations = map[string]string{"note": strings.Repeat("x", etcd-len(text)-left)}
	w.Make(nss)

	c := w.Reports(nss, no, "MembersFailed", "20000 of 20001 members")
	if len(c.Message) == 0 || len(nss.Status.FailedMembers) == 0 {
		t.Errorf("it is not told which members failed: %+v", nss.Status)
	}

	if text, err = json.Marshal(nss); err != nil || len(text) < etcd-left {
		t.Errorf("the scope has %d bytes only (%v), so its status had room enough", len(text), err)
	}
}

// A scope that asks for many roles in many namespaces that grant none is refused, in full, without asking about each of them.
func TestManyRolesInNamespacesThatGrantNoneAreNotAskedForOneByOne(t *testing.T) {
	const roles, namespaces = 50, 8

	w := beds.Begin(t, "delegated")
	ops := w.Namespace("home")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, nil)

	for i := range roles {
		w.Grant(ops, fmt.Sprintf("role-%02d", i), ops, "op", fmt.Sprintf("get secrets/s%d", i))
	}

	names := make([]string, 0, namespaces)
	for range namespaces {
		names = append(names, w.Namespace("closed"))
	}

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", names...))
	w.Reports(nss, no, "AuthorizationRequired", fmt.Sprintf("%d of %d members", namespaces, namespaces+1))

	if len(nss.Status.UnprojectedRoles) < roles*namespaces {
		t.Errorf("%d roles are said to be refused", len(nss.Status.UnprojectedRoles))
	}

	asked := 0

	for _, r := range w.Requests() {
		if r.Verb == "create" && r.Object.Resource == "roles" && slices.Contains(names, r.Object.Namespace) {
			asked++
		}
	}

	if asked == 0 || asked > 10*namespaces {
		t.Errorf("the API server was asked %d times for %d roles in %d namespaces", asked, roles+1, namespaces)
	}

	// One that grants all of it is served: the others say nothing about it.
	w.Grant(names[0], "in-member", ops, "delegate", append(testbed.InMember(), "get secrets")...)
	w.May(ops, "op", names[0], "get secrets/s49")
}
