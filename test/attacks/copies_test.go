package attacks_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// special is a right that no tenant has.
const special = "get widgets"

// captor is an administrator of a namespace who wants what operators have.
type captor struct {
	*testbed.World

	user client.Client
	name string
}

func newCaptor(w *testbed.World, namespaces ...string) *captor {
	w.Helper()

	name := "captor-" + rand.String(6)
	c := &captor{World: w, user: w.Tenant(name, namespaces...), name: name}

	for _, ns := range namespaces {
		if c.may(ns) {
			w.Fatalf("a tenant holds %q in %s from the start", special, ns)
		}
	}

	return c
}

// may asks the API server whether the captor has what only operators should have.
func (c *captor) may(namespace string) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: c.name, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "widgets"},
	}}
	if err := c.Client.Create(c.Context(), review); err != nil {
		c.Errorf("asking what the captor may: %v", err)
	}

	return review.Status.Allowed
}

// bind binds the captor to a Role or ClusterRole, as far as the API server lets them.
func (c *captor) bind(namespace, kind, role string) error {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "captor-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: c.name}},
	}

	return c.user.Create(c.Context(), b, client.FieldOwner("ambit"))
}

// lieInWait makes a Role of a name, binds the captor to it, and takes the Role away again. The binding stays.
func (c *captor) lieInWait(namespace, role string) error {
	own := testbed.Role(namespace, role, "get pods")
	own.Labels = map[string]string{"app.kubernetes.io/managed-by": "ambit"}

	if err := c.user.Create(c.Context(), own, client.FieldOwner("ambit")); err != nil {
		return err
	}

	return errors.Join(c.bind(namespace, "Role", role), client.IgnoreNotFound(c.user.Delete(c.Context(), own)))
}

// roles are the names of the copies in a namespace, as the captor sees them.
func (c *captor) roles(namespace string) []string {
	list := &rbacv1.RoleList{}
	if err := c.user.List(c.Context(), list, client.InNamespace(namespace)); err != nil {
		return nil
	}

	var names []string

	for i := range list.Items {
		if list.Items[i].Annotations["ambit.dev/owner"] != "" {
			names = append(names, list.Items[i].Name)
		}
	}

	return names
}

// A binding that was there before the Role: a tenant knows the name from another member, or from the time before they left.
func TestBindingThatWaitsForACopy(t *testing.T) {
	w := begin(t, "cluster")
	ops, first, second := w.Namespace("home"), w.Namespace("first"), w.Namespace("second")
	mallory := newCaptor(w, first, second)
	w.Operator(ops, "op", special, "get pods")

	nss := w.Scope(ops, testbed.Members(first, second))
	w.Reports(nss, yes, "Reconciled")

	seen := append(mallory.roles(first), mallory.roles(second)...)
	if len(seen) < 2 {
		t.Fatalf("the copies are not there: %v", seen)
	}

	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{first} })
	w.MayNot(ops, "op", second, special)

	for _, role := range seen {
		w.Eventually("the captor lies in wait for "+role, func() error { return mallory.lieInWait(second, role) })
	}

	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{first, second} })
	w.May(ops, "op", second, special)
	w.Reports(nss, yes, "Reconciled")

	if mallory.may(second) {
		t.Error("a binding that lay in wait for the copy has the operator's rights")
	}
}

// A copy whose rules the tenant holds today, and which grows tomorrow: it is bound today, which is told, and gives no more.
func TestCopyThatGrowsAfterItWasBound(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	mallory := newCaptor(w, member)
	w.Operator(ops, "op", "get pods")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")

	role := copyOf(w, ops, "op-role", member)
	if err := mallory.bind(member, "Role", role.Name); err != nil {
		t.Fatalf("who holds the rules of a Role may bind it: %v", err)
	}

	w.Eventually("status tells of it", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, "NoForeignBindings")
		if c == nil || c.Status != no || !strings.Contains(c.Message, member+"/captor-") {
			return fmt.Errorf("%+v", c)
		}

		return nil
	})

	source := testbed.Role(ops, "op-role")
	w.Change(source, func() { source.Rules = append(source.Rules, testbed.Rule(special)) })
	w.May(ops, "op", member, special)

	if mallory.may(member) {
		t.Error("a binding that was made before the copy grew has the operator's rights")
	}

	w.Eventually("the Role that was bound goes", w.Gone(role))

	if mallory.may(member) {
		t.Error("and it has them after the copy was replaced")
	}
}

// raceTime is how long the race lasts; AMBIT_RACE says otherwise, such as 5m.
func raceTime(t *testing.T) time.Duration {
	t.Helper()

	if d, err := time.ParseDuration(os.Getenv("AMBIT_RACE")); err == nil {
		return d
	}

	return 10 * time.Second
}

// Two captors delete what they find, lie in wait under every name that they ever saw, in both of their namespaces, and bind what
// they may, as fast as they can, while the source gains rules and loses them and a namespace comes and goes.
func TestRaceForACopy(t *testing.T) {
	w := begin(t, "cluster")
	ops, first, second := w.Namespace("home"), w.Namespace("first"), w.Namespace("second")
	captors := []*captor{newCaptor(w, first, second), newCaptor(w, first, second)}
	w.Operator(ops, "op", "get pods")

	nss := w.Scope(ops, testbed.Members(first, second))
	w.Reports(nss, yes, "Reconciled")

	var (
		running                    sync.WaitGroup
		stop                       atomic.Bool
		tricks, asked, held, grown atomic.Int64
		names                      sync.Map
	)

	for i, c := range captors {
		running.Go(func() {
			for !stop.Load() {
				for _, ns := range []string{first, second} {
					for _, role := range c.roles(ns) {
						names.Store(role, true)

						if err := c.bind(ns, "Role", role); err == nil {
							tricks.Add(1)
						}

						if i == 0 {
							_ = c.user.Delete(c.Context(), testbed.Role(ns, role))
						}
					}

					names.Range(func(role, _ any) bool {
						if err := c.lieInWait(ns, role.(string)); err == nil {
							tricks.Add(1)
						} else if rand.Intn(8) == 0 {
							names.Delete(role) // It is not to be had any more.
						}

						return !stop.Load()
					})
				}
			}
		})

		running.Go(func() {
			for !stop.Load() {
				for _, ns := range []string{first, second} {
					if asked.Add(1); c.may(ns) {
						held.Add(1)
					}
				}

				time.Sleep(50 * time.Millisecond) // The API server should have time for the tricks. What is captured is held for longer.
			}
		})
	}

	source := testbed.Role(ops, "op-role")
	enough := func() bool { return tricks.Load() >= 20 && asked.Load() >= 100 }
	began := time.Now()

	for held.Load() == 0 && (time.Since(began) < raceTime(t) || !enough() && time.Since(began) < raceTime(t)+2*time.Minute) {
		w.Change(source, func() { source.Rules = append(source.Rules[:1:1], testbed.Rule(special)) })

		if w.Allowed(ops, "op", first, special) || w.Allowed(ops, "op", second, special) {
			grown.Add(1)
		}

		time.Sleep(300 * time.Millisecond)
		w.Change(source, func() { source.Rules = source.Rules[:1] })
		time.Sleep(300 * time.Millisecond)
	}

	stop.Store(true)
	running.Wait()

	if tricks.Load() < 20 || asked.Load() < 100 {
		t.Errorf("the captors came to %d tricks and %d questions only", tricks.Load(), asked.Load())
	}

	if held.Load() > 0 {
		t.Errorf("they held %q, %d times of %d", special, held.Load(), asked.Load())
	}

	w.Change(source, func() { source.Rules = append(source.Rules[:1:1], testbed.Rule(special)) })

	for _, ns := range []string{first, second} {
		w.May(ops, "op", ns, special)

		for _, c := range captors {
			if c.may(ns) {
				t.Errorf("after the race they hold %q in %s", special, ns)
			}
		}
	}

	t.Logf("%d tricks, %d questions, %d times the operator held it", tricks.Load(), asked.Load(), grown.Load())
}

// mayEverywhere gives the captor rules, in words, in the whole cluster.
func (c *captor) mayEverywhere(rules ...string) {
	c.Helper()

	c.Make(testbed.ClusterRole(c.name, rules...), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: c.name}},
	})
}

// templateIn makes a template of one ClusterRole for the account op of a namespace, which it makes as well, and an instance of
// the template in a member. Both are called as the member.
func templateIn(w *testbed.World, member, ops string, rules ...string) *operatorsv1alpha1.ScopeTemplate {
	w.Helper()

	entry := operatorsv1alpha1.ClusterRoleTemplate{
		GenerateName: "reader-", Subjects: []operatorsv1alpha1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: "op"}},
	}
	for _, rule := range rules {
		entry.Rules = append(entry.Rules, testbed.Rule(rule))
	}

	template := &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: member},
		Spec:       operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{entry}},
	}
	w.Make(testbed.Account(ops, "op"), template, &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: member},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: member, Namespaces: []string{member}},
	})

	return template
}

// roleOfTemplate is the name of the ClusterRole that a template made; empty where there is none.
func roleOfTemplate(w *testbed.World, template string) string {
	w.Helper()

	list := &rbacv1.ClusterRoleList{}
	if err := w.Client.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}

	for i := range list.Items {
		r := &list.Items[i]
		if r.DeletionTimestamp == nil && r.Annotations["ambit.dev/owner"] == "ScopeTemplate//"+template {
			return r.Name
		}
	}

	return ""
}

// The same with the ClusterRole of a template, for somebody who may create and delete ClusterRoles besides: it cannot be bound
// while it is there, and never comes back under a name that was seen.
func TestClusterRoleIsNotCaptured(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	mallory := newCaptor(w, member)
	mallory.mayEverywhere("create,delete clusterroles")

	template := templateIn(w, member, ops, "get pods")
	w.May(ops, "op", member, "get pods")

	role := roleOfTemplate(w, template.Name)
	if role == "" {
		t.Fatal("there is no ClusterRole")
	}

	// Its rules are held by every administrator of a namespace, and yet nobody may bind it.
	refused(w, "binding the ClusterRole of a template", mallory.bind(member, "ClusterRole", role))

	// In its place comes one of the captor's own, which is bound and deleted.
	own := testbed.ClusterRole(role, "create clusterroles")

	w.Eventually("the captor is faster than the repair", func() error {
		_ = mallory.user.Delete(t.Context(), testbed.ClusterRole(role))

		return mallory.user.Create(t.Context(), own.DeepCopy(), client.FieldOwner("ambit"))
	})

	if err := mallory.bind(member, "ClusterRole", role); err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("binding one's own ClusterRole: %v", err)
	}

	_ = mallory.user.Delete(t.Context(), own)

	w.Change(template, func() {
		entry := &template.Spec.ClusterRoles[0]
		entry.Rules = append(entry.Rules, testbed.Rule(special))
	})
	w.May(ops, "op", member, special)

	if again := roleOfTemplate(w, template.Name); again == role || mallory.may(member) {
		t.Errorf("the ClusterRole is %s again, and the captor has what is in it: %t", again, mallory.may(member))
	}
}

// The same for somebody who may write the ClusterRole, and take from it what keeps everybody from binding it: what they have
// bound once it holds nothing gives them nothing. Ambit puts another one in its place.
func TestEmptiedClusterRoleIsNotCaptured(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	mallory := newCaptor(w, member)
	mallory.mayEverywhere("patch clusterroles")

	template := templateIn(w, member, ops, "get pods", special)
	w.May(ops, "op", member, special)

	w.Eventually("the captor is faster than the repair", func() error {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleOfTemplate(w, template.Name)}}
		if err := mallory.user.Patch(t.Context(), role, client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`))); err != nil {
			return err
		}

		return mallory.bind(member, "ClusterRole", role.Name)
	})

	w.Eventually("the ClusterRole is as it should be", func() error {
		role := &rbacv1.ClusterRole{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: roleOfTemplate(w, template.Name)}, role); err != nil {
			return err
		}

		if len(role.Rules) != 3 {
			return fmt.Errorf("it has the rules %v", role.Rules)
		}

		return nil
	})
	w.May(ops, "op", member, special)

	if mallory.may(member) {
		t.Error("the captor has what is in it")
	}
}

// Finalizers on copies: a DELETE is answered, and the object stays. What stays gives nothing, and the scope goes no sooner.
func TestFinalizersOnCopies(t *testing.T) {
	for _, profile := range []string{"cluster", "delegated"} {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			ops, left, deleted := w.Namespace("home"), w.Namespace("left"), w.Namespace("deleted")
			w.Operator(ops, "op", "get secrets")
			w.Delegate(ops, []string{"get secrets"}, left, deleted)

			nss := w.Scope(ops, testbed.DelegatedBy("delegate", left, deleted))
			w.Reports(nss, yes, "Reconciled")

			for _, ns := range []string{left, deleted} {
				onCopies(w, ns, `{"metadata":{"finalizers":["tenants.example.com/mine"]}}`)
			}

			w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{deleted} })
			w.MayNot(ops, "op", left, "get secrets")
			w.Reports(nss, yes, "Reconciled")

			w.Remove(nss)
			w.Eventually("the scope goes", w.Gone(nss))

			for _, ns := range []string{left, deleted} {
				if err := denied(w, ops, "op", ns, "get secrets"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A copy that a finalizer keeps goes, too, where the delegate may no longer bind what it binds, and so may not empty it.
func TestFinalizersOnCopiesThatMayNotBeEmptied(t *testing.T) {
	w := begin(t, "delegated")
	ops, left := w.Namespace("home"), w.Namespace("left")
	w.Operator(ops, "op", "get secrets")
	w.Make(testbed.Bind(ops, "ClusterRole", "view", ops, "op"))
	w.Delegate(ops, []string{"get secrets"}, left)
	w.Grant(left, "bind", ops, "delegate", "bind clusterroles/view")

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", left))
	w.May(ops, "op", left, "list services")
	onCopies(w, left, `{"metadata":{"finalizers":["tenants.example.com/mine"]}}`)

	w.Remove(testbed.Bind(left, "Role", "bind", ops, "delegate"))
	w.Remove(testbed.Bind(ops, "ClusterRole", "view", ops, "op"))
	w.MayNot(ops, "op", left, "list services")
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", left, "get secrets")
}

// Copies without labels, annotations and managedFields are known by their names, and taken back.
func TestStrippedCopies(t *testing.T) {
	for _, profile := range []string{"cluster", "delegated"} {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			ops, left, stays := w.Namespace("home"), w.Namespace("left"), w.Namespace("stays")
			w.Operator(ops, "op", "get secrets")
			w.Delegate(ops, []string{"get secrets"}, left, stays)

			nss := w.Scope(ops, testbed.DelegatedBy("delegate", left, stays))
			w.Reports(nss, yes, "Reconciled")

			for _, ns := range []string{left, stays} {
				// First the marks, and then who wrote them: an empty entry takes all others away.
				onCopies(w, ns, `{"metadata":{"labels":null,"annotations":null,"ownerReferences":null,"managedFields":[{}]}}`)
			}

			w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{stays} })
			w.MayNot(ops, "op", left, "get secrets")
			w.May(ops, "op", stays, "get secrets")

			w.Remove(nss)
			w.Eventually("the scope goes", w.Gone(nss))
			w.MayNot(ops, "op", stays, "get secrets")
		})
	}
}

// onCopies patches every Role and RoleBinding that Ambit made in a namespace. Ambit may replace one after the other was patched,
// so it begins again until all of them were there.
func onCopies(w *testbed.World, namespace, patch string) {
	w.Helper()
	w.Eventually("all copies in "+namespace+" are patched", func() error {
		there := copies(w, namespace)
		if len(there) < 2 {
			return fmt.Errorf("the copies are not there: %v", there)
		}

		for _, what := range there {
			kind, name, _ := strings.Cut(what, " ")

			obj := client.Object(&rbacv1.Role{})
			if kind == "RoleBinding" {
				obj = &rbacv1.RoleBinding{}
			}

			obj.SetNamespace(namespace)
			obj.SetName(name)

			if err := w.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)),
				client.FieldOwner("tenant")); err != nil {
				return fmt.Errorf("patching %s: %w", what, err)
			}
		}

		return nil
	})
}

// Who writes on the copies all the time, whatever it is, delays no revocation.
func TestCopiesWrittenAllTheTime(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets", "get pods")
	mallory := w.Tenant("mallory-"+member, member)

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")

	var (
		running sync.WaitGroup
		stop    atomic.Bool
		wrote   atomic.Int64
	)

	for range 2 {
		running.Go(func() {
			for n := 0; !stop.Load(); n++ {
				list := &rbacv1.RoleList{}
				if err := mallory.List(w.Context(), list, client.InNamespace(member)); err != nil {
					continue
				}

				for i := range list.Items {
					patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"},"finalizers":["tenants.example.com/f%d"]}}`, n, n%3)
					if mallory.Patch(w.Context(), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(patch))) == nil {
						wrote.Add(1)
					}
				}
			}
		})
	}

	w.Eventually("it is written all the time", func() error {
		if wrote.Load() < 10 {
			return errMissing
		}

		return nil
	})

	source := testbed.Role(ops, "op-role")
	w.Change(source, func() { source.Rules = source.Rules[1:] })
	w.MayNot(ops, "op", member, "get secrets")

	w.Remove(nss)
	w.MayNot(ops, "op", member, "get pods")
	stop.Store(true)
	running.Wait()
	w.Eventually("the scope goes", w.Gone(nss))
}
