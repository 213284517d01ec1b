package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// agreement sends the same requests to an API server and to a cluster in memory, and compares what both answer and what is then
// there.
type agreement struct {
	t         *testing.T
	scheme    *runtime.Scheme
	namespace string
	// terminating is a namespace that is being deleted.
	terminating string
	// admins may do everything on the API server and in memory, and users write there.
	admins, users [2]client.Client
	draws         *rand.Rand
	// sent are the requests so far for each object, for whoever reads of a difference.
	sent map[string][]string
	// holds is the role of those who write; empty where they may do everything.
	holds string
}

// TestAgreesWithTheAPIServer: whatever somebody writes in memory, the answer and what is there then are those of an API server.
func TestAgreesWithTheAPIServer(t *testing.T) {
	t.Parallel()

	for n := range uint64(3) {
		a := newAgreement(t, n)
		a.run(60)
	}
}

// TestRefusesAsTheAPIServer: who lacks a right for a request is refused in memory as by the API server, also who hands out what
// they do not hold.
func TestRefusesAsTheAPIServer(t *testing.T) {
	t.Parallel()

	for n := range uint64(6) {
		a := newAgreement(t, 100+n)
		a.limit()
		a.run(40)
	}
}

// limit gives those who write some rights, and no others.
func (a *agreement) limit() {
	name := scope.AccountUser(a.namespace, "writer")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "held"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"lasts"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "held"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "writer"}},
	}

	for range 1 + a.draws.IntN(5) {
		role.Rules = append(role.Rules, a.rule())
	}

	given, last := []client.Object{role, binding}, role.Rules[0].Resources
	a.holds = a.normal(role)

	if a.chance(2) {
		wide := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.wide("held")}, Rules: []rbacv1.PolicyRule{
			a.rule(), a.rule(), {Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"widest"}},
		}}
		last = append(last, "widest")
		given = slices.Concat([]client.Object{wide, &rbacv1.ClusterRoleBinding{
			ObjectMeta: wide.ObjectMeta, Subjects: binding.Subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide.Name},
		}}, given)
		a.holds += a.normal(wide)
	}

	for _, c := range a.admins {
		for _, obj := range given {
			made, _ := obj.DeepCopyObject().(client.Object)
			if err := c.Create(a.t.Context(), made); err != nil {
				a.t.Fatal(err)
			}
		}
	}

	config := rest.CopyConfig(testcluster.Config(a.t))
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}

	server, err := client.New(config, client.Options{Scheme: a.scheme, Mapper: a.admins[0].RESTMapper()})
	if err != nil {
		a.t.Fatal(err)
	}

	// The authorizer hears of roles and bindings after they were written, and of those of the whole cluster by themselves.
	for _, resource := range last {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: a.namespace, Verb: "get", Group: "example.com", Resource: resource,
			},
		}}

		if err := wait.PollUntilContextTimeout(a.t.Context(), 10*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				asked := review.DeepCopy()
				err := server.Create(ctx, asked)

				return asked.Status.Allowed, err
			}); err != nil {
			a.t.Fatal(err)
		}
	}

	memory, _ := a.admins[1].(*user)
	memory.HasRBAC = func(string) bool { return true }
	a.users = [2]client.Client{server, &user{Simulation: memory.Simulation, name: name}}
}

func newAgreement(t *testing.T, stream uint64) *agreement {
	t.Helper()

	config := testcluster.Config(t)
	testcluster.InstallCRDs(t, config)

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	server, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	a := &agreement{
		t: t, scheme: scheme, namespace: testcluster.Namespace(t, config, "agrees"), draws: testcluster.Draws(t, stream),
		terminating: testcluster.Namespace(t, config, "terminating"), sent: map[string][]string{},
	}
	ends := a.terminate(server)

	t.Cleanup(func() { a.clear(server) })

	memory := NewCluster(scheme, server.RESTMapper(), read.NewOnce(nil), time.Now())
	memory.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}})
	memory.Add(ends)

	for _, name := range []string{"view", "admin"} {
		role := &rbacv1.ClusterRole{}
		if err := server.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Fatal(err)
		}

		memory.Add(role)
	}

	memory.settle()

	a.admins = [2]client.Client{server, &user{Simulation: New(memory)}}
	a.users = a.admins

	return a
}

// terminate has a namespace deleted that cannot end, and returns it.
func (a *agreement) terminate(server client.Client) *corev1.Namespace {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.terminating, Name: "kept", Finalizers: []string{"example.com/kept"},
	}}
	ends := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.terminating}}

	if err := server.Create(a.t.Context(), kept); err != nil {
		a.t.Fatal(err)
	}

	if err := server.Delete(a.t.Context(), ends); err != nil {
		a.t.Fatal(err)
	}

	a.t.Cleanup(func() {
		body := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(server.Patch(context.Background(), kept, body)); err != nil {
			a.t.Error(err)
		}
	})

	ends.Finalizers, ends.DeletionTimestamp = []string{"example.com/kept"}, &metav1.Time{Time: time.Now()}

	return ends
}

// clear deletes what has no namespace that takes it along.
func (a *agreement) clear(server client.Client) {
	for _, kind := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		for _, name := range []string{"a", "b", "held"} {
			kind.SetName(a.wide(name))

			body := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			for _, err := range []error{
				server.Patch(context.Background(), kind, body), server.Delete(context.Background(), kind),
			} {
				if client.IgnoreNotFound(err) != nil {
					a.t.Error(err)
				}
			}
		}
	}
}

func (a *agreement) run(steps int) {
	for range steps {
		if !a.step() {
			a.t.FailNow()
		}
	}
}

// step sends one request to both.
func (a *agreement) step() bool {
	requests := []func() exchange{
		a.create, a.merge, a.merge, a.apply, a.apply, a.applyObject, a.delete, a.delete, a.jsonPatch, a.status,
	}
	r := requests[a.draws.IntN(len(requests))]()
	a.sent[a.key(r.obj)] = append(a.sent[a.key(r.obj)], r.words)

	return a.agree(r) && a.sameList()
}

func (*agreement) key(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetName()
}

func (a *agreement) agree(r exchange) bool {
	var (
		errs         [2]error
		before, now  [2]client.Object
		moved, reply [2]string
	)

	for i, c := range a.admins {
		before[i] = a.live(c, r.obj)
		obj, _ := r.obj.DeepCopyObject().(client.Object)
		errs[i] = r.send(a.users[i], obj, before[i])
		now[i] = a.live(c, r.obj)
		moved[i] = moves(before[i], now[i])

		if errs[i] == nil {
			reply[i] = a.normal(obj)
		}
	}

	switch {
	case apierrors.ReasonForError(errs[0]) != apierrors.ReasonForError(errs[1]), (errs[0] == nil) != (errs[1] == nil):
		a.differf(r.obj, "the API server answers %v, and in memory it is %v", errs[0], errs[1])
	case moved[0] != moved[1] && (!r.isRough || moved[0] != "changed"):
		a.differf(r.obj, "on the API server it is %s, and in memory %s:\n%s", moved[0], moved[1], a.normal(now[1]))
	case a.normal(now[0]) != a.normal(now[1]):
		a.differf(r.obj, "on the API server there is\n%s\nand in memory\n%s", a.normal(now[0]), a.normal(now[1]))
	case reply[0] != reply[1]:
		a.differf(r.obj, "the API server returns\n%s\nand in memory it is\n%s", reply[0], reply[1])
	default:
		return true
	}

	return false
}

func (a *agreement) differf(about client.Object, format string, args ...any) {
	var sent []string
	if about != nil {
		sent = a.sent[a.key(about)]
	}

	a.t.Errorf("%s\nafter\n%s\nby who holds %s", fmt.Sprintf(format, args...), strings.Join(sent, "\n"), a.holds)
}

// live is an object as it is; nil where it is not there.
func (a *agreement) live(c client.Client, of client.Object) client.Object {
	obj, _ := of.DeepCopyObject().(client.Object)
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(of), obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		a.t.Fatal(err)
	}

	return obj
}

// moves says what became of an object.
func moves(before, now client.Object) string {
	switch {
	case before == nil && now == nil:
		return "not there"
	case before == nil:
		return "new"
	case now == nil:
		return "gone"
	case before.GetUID() != now.GetUID():
		return "another"
	case before.GetResourceVersion() != now.GetResourceVersion():
		return "changed"
	default:
		return "as it was"
	}
}

// normal is an object without what differs by chance.
func (a *agreement) normal(obj client.Object) string {
	if obj == nil {
		return "nothing"
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		a.t.Fatal(err)
	}

	u := &unstructured.Unstructured{Object: content}
	hasUID, hasTime, isDeleted := u.GetUID() != "", !u.GetCreationTimestamp().Time.IsZero(), u.GetDeletionTimestamp() != nil

	managers := []string{}
	for _, e := range u.GetManagedFields() {
		// Nobody asks who wrote a status, or what of a Role or a binding; of the kinds of definitions, every list is one value.
		if _, isConfigMap := obj.(*corev1.ConfigMap); isConfigMap {
			managers = append(managers, fmt.Sprint(e.Manager, " ", e.Operation, " ", e.FieldsV1))
		}
	}

	slices.Sort(managers)

	for _, field := range []string{
		"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}

	delete(u.Object, "kind")
	delete(u.Object, "apiVersion")

	text, err := json.Marshal(u.Object)
	if err != nil {
		a.t.Fatal(err)
	}

	return fmt.Sprintf("%s uid=%t time=%t deleted=%t\n%s", text, hasUID, hasTime, isDeleted, strings.Join(managers, "\n"))
}

// sameList compares what both list, with selectors.
func (a *agreement) sameList() bool {
	kind := a.kind(4)

	list, _ := a.scheme.New(kind.GroupVersionKind().GroupVersion().WithKind(kind.Kind + "List"))

	options := []client.ListOption{client.InNamespace(a.namespace)}
	switch a.draws.IntN(3) {
	case 0:
		options = append(options, client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"l": a.value()})})
	case 1:
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", a.name())})
	}

	var got [2][]string

	for i, c := range a.admins {
		into, _ := list.DeepCopyObject().(client.ObjectList)
		if err := c.List(context.Background(), into, options...); err != nil {
			a.t.Fatal(err)
		}

		items, err := meta.ExtractList(into)
		if err != nil {
			a.t.Fatal(err)
		}

		for _, item := range items {
			obj, _ := item.(client.Object)
			if obj.GetName() == "kube-root-ca.crt" {
				continue // Kubernetes makes one in each namespace.
			}

			got[i] = append(got[i], obj.GetName()+" "+a.normal(obj))
		}
	}

	if !equality.Semantic.DeepEqual(got[0], got[1]) {
		a.differf(nil, "the API server lists\n%s\nand in memory there are\n%s", strings.Join(got[0], "\n"), strings.Join(got[1], "\n"))

		return false
	}

	return true
}
