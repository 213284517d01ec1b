package watchlist

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReadsInScopeAndOutside(t *testing.T) {
	ns := makeNamespaces(t, 2)
	in, out := ns[0], ns[1]

	makeConfigMap(t, in, "here", map[string]string{"owner": "x"})
	makeConfigMap(t, out, "there", map[string]string{"owner": "x"})

	l, source := newList(t, in)
	c, _ := startCache(t, apiServer, l, nil)

	byOwner := func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["owner"]} }
	must(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "owner", byOwner))

	if err := c.IndexField(t.Context(), &corev1.ConfigMap{}, "owner", byOwner); err == nil {
		t.Error("the same index twice was accepted")
	}

	unstructuredMap := &unstructured.Unstructured{}
	unstructuredMap.SetAPIVersion("v1")
	unstructuredMap.SetKind("ConfigMap")

	metadataOnly := &metav1.PartialObjectMetadata{}
	metadataOnly.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	for _, object := range []client.Object{&corev1.ConfigMap{}, unstructuredMap, metadataOnly} {
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: in, Name: "here"}, object))

		err := c.Get(t.Context(), client.ObjectKey{Namespace: out, Name: "there"}, object)
		if !errors.Is(err, ErrNotInScope) || !errors.Is(err, reconcile.TerminalError(nil)) {
			t.Errorf("%T outside: %v", object, err)
		}
	}

	indexed := func() int {
		var list corev1.ConfigMapList

		must(t, c.List(t.Context(), &list, client.MatchingFields{"owner": "x"}))

		return len(list.Items)
	}

	if n := indexed(); n != 1 {
		t.Errorf("the index found %d", n)
	}

	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.InNamespace(out)); !errors.Is(err, ErrNotInScope) {
		t.Errorf("a list outside: %v", err)
	}

	source.push(t, in+","+out)
	eventually(t, "the index has what joined", func() bool { return indexed() == 2 })

	must(t, c.List(t.Context(), &list, client.InNamespace(out), client.MatchingFields{"owner": "x"}))
	must(t, c.List(t.Context(), &list, client.Limit(1)))

	if len(list.Items) != 1 {
		t.Errorf("a limit of 1 gave %d", len(list.Items))
	}

	source.push(t, out)
	eventually(t, "what left is forgotten", func() bool { return indexed() == 1 })

	err := c.Get(t.Context(), client.ObjectKey{Namespace: in, Name: "here"}, &corev1.ConfigMap{})
	if !errors.Is(err, ErrNotInScope) {
		t.Errorf("a read of what left: %v", err)
	}

	must(t, c.RemoveInformer(t.Context(), &corev1.ConfigMap{}))
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: out, Name: "there"}, &corev1.ConfigMap{}))

	var none corev1.NamespaceList

	must(t, c.List(t.Context(), &none)) // without a namespace: one informer, as ever

	source.push(t, "")
	eventually(t, "nothing is served", func() bool { return len(l.Namespaces()) == 0 })
	must(t, c.List(t.Context(), &list))

	if len(list.Items) != 0 {
		t.Errorf("an empty list served %d objects", len(list.Items))
	}
}

func TestNamesAndAllNeedANewStart(t *testing.T) {
	ns := makeNamespaces(t, 1)
	l, source := newList(t, ns[0])

	mgr, err := ctrl.NewManager(apiServer, ctrl.Options{
		NewCache: l.NewCache(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(t, err)

	ended := make(chan error, 1)

	go func() { ended <- mgr.Start(t.Context()) }()

	eventually(t, "the namespace is served", func() bool { return len(l.Namespaces()) == 1 })
	source.push(t, "*")

	select {
	case err := <-ended:
		if !errors.Is(err, ErrRestart) {
			t.Errorf("the manager ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the manager goes on with a list that it cannot follow")
	}
}

func TestAllNamespaces(t *testing.T) {
	ns := makeNamespaces(t, 1)
	makeConfigMap(t, ns[0], "a", nil)

	l, source := newList(t, "*")
	c, _ := startCache(t, apiServer, l, nil)
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: ns[0], Name: "a"}, &corev1.ConfigMap{}))

	source.push(t, "")
	eventually(t, "an empty list serves nothing", func() bool {
		return errors.Is(c.Get(t.Context(), client.ObjectKey{Namespace: ns[0], Name: "a"}, &corev1.ConfigMap{}), ErrNotInScope)
	})
}

func TestOptionsOfTheOperator(t *testing.T) {
	ns := makeNamespaces(t, 3)
	labelled, fixed, other := ns[0], ns[1], ns[2]

	makeConfigMap(t, labelled, "plain", nil)

	_, err := clients(t, apiServer).CoreV1().ConfigMaps(labelled).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "marked", Labels: map[string]string{"keep": "yes"}},
	}, metav1.CreateOptions{})
	must(t, err)

	l, _ := newList(t, labelled)
	c, _ := startCache(t, apiServer, l, func(o *cache.Options) {
		o.ByObject = map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: selector(t, "keep=yes")},
			&corev1.Secret{}:    {Namespaces: map[string]cache.Config{fixed: {}}},
		}
	})

	var list corev1.ConfigMapList

	must(t, c.List(t.Context(), &list))

	if len(list.Items) != 1 || list.Items[0].Name != "marked" {
		t.Errorf("the label selector of ByObject: %d objects", len(list.Items))
	}

	// Secrets have namespaces of their own, whatever the list says.
	var secrets corev1.SecretList

	must(t, c.List(t.Context(), &secrets, client.InNamespace(fixed)))

	if err := c.List(t.Context(), &secrets, client.InNamespace(other)); err == nil {
		t.Error("a namespace that the operator did not name for Secrets was read")
	}

	refused, _ := newList(t, "")

	opts := l.live().opts
	opts.DefaultNamespaces = map[string]cache.Config{"a": {}}

	if _, err := refused.NewCache()(apiServer, opts); err == nil || !strings.Contains(err.Error(), "two sources") {
		t.Errorf("DefaultNamespaces beside a list: %v", err)
	}
}

// TestOneUnreadableMember: a member that may not be read keeps no other from being served, and heals.
func TestOneUnreadableMember(t *testing.T) {
	ns := makeNamespaces(t, 2)
	good, bad := ns[0], ns[1]
	cfg := rest.CopyConfig(apiServer)
	cfg.Impersonate.UserName = "reader-of-" + good

	makeConfigMap(t, good, "a", nil)
	makeConfigMap(t, bad, "b", nil)
	allow(t, good, rbacv1.Subject{Kind: "User", Name: cfg.Impersonate.UserName}, "", "configmaps", "get", "list", "watch")

	l, _ := newList(t, good+","+bad)
	begun := time.Now()
	c, _ := startCache(t, cfg, l, nil)
	j := newJournal()

	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)

	registration, err := informer.AddEventHandler(j)
	must(t, err)
	eventually(t, "the other is synced", registration.HasSynced)
	eventually(t, "the other is served", func() bool { return len(j.of(good)) == 1 })
	t.Logf("served after %s beside a member that is forbidden", time.Since(begun).Round(10*time.Millisecond))

	if err := l.Ready(nil); err == nil || !strings.Contains(err.Error(), bad) || strings.Contains(err.Error(), "namespace "+good) {
		t.Errorf("Ready says: %v", err)
	}

	err = c.Get(t.Context(), client.ObjectKey{Namespace: bad, Name: "b"}, &corev1.ConfigMap{})
	if err == nil || errors.Is(err, ErrNotInScope) {
		t.Errorf("a read of a member that is forbidden: %v", err)
	}

	allow(t, bad, rbacv1.Subject{Kind: "User", Name: cfg.Impersonate.UserName}, "", "configmaps", "get", "list", "watch")
	eventually(t, "the member heals", func() bool { return len(j.of(bad)) == 1 && l.Ready(nil) == nil })
}

func TestAControllerFollows(t *testing.T) {
	ns := makeNamespaces(t, 2)
	first, second := ns[0], ns[1]
	l, source := newList(t, first)

	mgr, err := ctrl.NewManager(apiServer, ctrl.Options{
		NewCache: l.NewCache(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(t, err)

	var (
		calls sync.Map
		late  atomic.Int32
		left  atomic.Bool
		read  = make(chan error, 1)
	)

	must(t, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(l.Reconciler(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if left.Load() && r.Namespace == second {
				late.Add(1)
			}

			calls.Store(r.String(), true)

			// It would come back again and again.
			return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, mgr.GetClient().Get(ctx, r.NamespacedName, &corev1.ConfigMap{})
		}))))

	l.HooksAfter(mgr.Elected())
	l.OnLeave(func(ctx context.Context, namespace string) error {
		var list corev1.ConfigMapList

		read <- mgr.GetClient().List(ctx, &list, client.InNamespace(namespace))

		return nil
	})

	go func() { _ = mgr.Start(t.Context()) }()

	makeConfigMap(t, second, "old", nil)
	makeConfigMap(t, first, "a", nil)

	was := func(name string) func() bool {
		return func() bool { _, called := calls.Load(name); return called }
	}

	eventually(t, "the first namespace is reconciled", was(first+"/a"))
	source.push(t, first+","+second)
	eventually(t, "what was there is reconciled", was(second+"/old"))
	makeConfigMap(t, second, "new", nil)
	eventually(t, "what came later is reconciled", was(second+"/new"))

	source.push(t, first)

	select {
	case err := <-read:
		must(t, err) // the hook reads the cache of the namespace that leaves
	case <-time.After(patience):
		t.Fatal("the hook was not called")
	}

	eventually(t, "the second namespace has left", func() bool { return len(l.Namespaces()) == 1 })
	left.Store(true)
	makeConfigMap(t, second, "never", nil)
	time.Sleep(300 * time.Millisecond)

	if n := late.Load(); n > 0 || was(second+"/never")() {
		t.Errorf("%d calls for a namespace that left", n)
	}
}

// TestHookThatFails: it is called again while there is time, and the namespace leaves once it succeeds.
func TestHookThatFails(t *testing.T) {
	ns := makeNamespaces(t, 2)
	l, source := newList(t, strings.Join(ns, ","))
	startCache(t, apiServer, l, nil)

	var calls atomic.Int32

	l.OnLeave(func(context.Context, string) error {
		if calls.Add(1) < 3 {
			return errors.New("somebody else wrote at the same time")
		}

		return nil
	})

	source.push(t, ns[1])
	eventually(t, "it has left", func() bool { return len(l.Namespaces()) == 1 })

	if n := calls.Load(); n != 3 {
		t.Errorf("the hook was called %d times", n)
	}
}

// TestJoinWhileItLeaves: a hook is slow, and meanwhile the namespace is in the list again.
func TestJoinWhileItLeaves(t *testing.T) {
	ns := makeNamespaces(t, 2)
	makeConfigMap(t, ns[0], "a", nil)

	l, source := newList(t, strings.Join(ns, ","))
	c, _ := startCache(t, apiServer, l, nil)
	release := make(chan struct{})

	l.OnLeave(func(context.Context, string) error { <-release; return nil })

	j := newJournal()
	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	_, err = informer.AddEventHandler(j)
	must(t, err)
	eventually(t, "the object is there", func() bool { return len(j.of(ns[0])) == 1 })

	source.push(t, ns[1])
	eventually(t, "it leaves", func() bool { return !open(l) })
	source.push(t, strings.Join(ns, ","))
	time.Sleep(50 * time.Millisecond)
	makeConfigMap(t, ns[1], "other", nil)
	eventually(t, "others are served meanwhile", func() bool { return len(j.of(ns[1])) == 1 })
	j.forget(ns[0])
	makeConfigMap(t, ns[0], "b", nil)
	close(release)
	eventually(t, "it joined anew", func() bool { return len(j.of(ns[0])) == 2 })

	for _, wrong := range j.errors() {
		t.Error(wrong)
	}
}

func TestHandlersAreRemovedEverywhere(t *testing.T) {
	ns := makeNamespaces(t, 2)
	l, source := newList(t, ns[0])
	c, _ := startCache(t, apiServer, l, nil)
	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	must(t, err)

	j := newJournal()
	registration, err := informer.AddEventHandler(j)
	must(t, err)
	<-registration.HasSyncedChecker().Done()
	must(t, informer.RemoveEventHandler(registration))
	source.push(t, strings.Join(ns, ","))
	makeConfigMap(t, ns[1], "a", nil)
	eventually(t, "the object is cached", func() bool {
		return c.Get(t.Context(), client.ObjectKey{Namespace: ns[1], Name: "a"}, &corev1.ConfigMap{}) == nil
	})
	time.Sleep(100 * time.Millisecond)

	if len(j.of(ns[1])) != 0 {
		t.Error("a handler that was removed was told")
	}

	if !toolscache.IsDone(informer.HasSyncedChecker()) && !informer.HasSynced() {
		t.Error("the informer is not synced")
	}

	must(t, c.RemoveInformer(t.Context(), &corev1.ConfigMap{}))

	if !informer.IsStopped() {
		t.Error("an informer that was removed is not stopped")
	}
}

func TestKindThatDoesNotExist(t *testing.T) {
	l, _ := newList(t, "")
	c, _ := startCache(t, apiServer, l, nil)
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("nobody.example/v1")
	u.SetKind("Nothing")

	if _, err := c.GetInformer(t.Context(), u); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served, in an empty scope: %v", err)
	}
}

// TestHandshake runs as a service account with a token that is bound to a pod, and with no right but that to its Lease and to the
// one ConfigMap.
func TestHandshake(t *testing.T) {
	o := newPod(t)

	list := makeConfigMap(t, o.namespace, "namespace-scope", map[string]string{"namespaces": o.member})
	// Another ConfigMap is no authority, whatever it is called.
	makeConfigMap(t, o.member, "namespace-scope", map[string]string{"namespaces": "kube-system"})

	l, err := FromConfigMap(o.cfg, o.namespace, "namespace-scope")
	must(t, err)
	c, _ := startCache(t, o.cfg, l, nil)

	eventually(t, "the list is told", o.told(o.member))
	must(t, c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(o.member)))

	release := make(chan struct{})
	l.OnLeave(func(context.Context, string) error { <-release; return nil })

	list.Data["namespaces"] = ""
	_, err = o.all.CoreV1().ConfigMaps(o.namespace).Update(t.Context(), list, metav1.UpdateOptions{})
	must(t, err)
	time.Sleep(200 * time.Millisecond)

	if o.told("")() {
		t.Error("a list is told as taken in while a namespace still leaves")
	}

	close(release)
	eventually(t, "the empty list is told", o.told(""))
	must(t, o.all.CoreV1().ConfigMaps(o.namespace).Delete(t.Context(), "namespace-scope", metav1.DeleteOptions{}))
}

// TestManagersOfOneProcess: a process that runs two managers, each with a list of its own, has let go of a namespace when both
// have.
func TestManagersOfOneProcess(t *testing.T) {
	o := newPod(t)
	release := make(chan struct{})

	var (
		sources []*pushed
		stops   []func()
	)

	for i := range 2 {
		l, source := newList(t, o.member)
		_, stop := startCache(t, o.cfg, l, nil)
		sources, stops = append(sources, source), append(stops, stop)

		if i == 1 {
			l.OnLeave(func(context.Context, string) error { <-release; return nil })
		}
	}

	push := func(list string) {
		for _, s := range sources {
			s.push(t, list)
		}
	}

	eventually(t, "the list is told", o.told(o.member))
	push("")
	time.Sleep(300 * time.Millisecond)

	if o.told("")() {
		t.Error("a list is told as taken in while a namespace still leaves the other manager")
	}

	close(release)
	eventually(t, "the empty list is told", o.told(""))

	// Whoever is the last tells, also what it told before.
	push(o.member)
	eventually(t, "the list is told again", o.told(o.member))

	sources[0].push(t, "")
	time.Sleep(300 * time.Millisecond)

	if !o.told(o.member)() {
		t.Error("a list is told that the other manager has not taken in")
	}

	stops[1]()
	eventually(t, "what the one that is left has taken in is told", o.told(""))
}

// ofPod is what runs in a pod: a service account with the token of that, and with no right but to its Lease and to one ConfigMap.
type ofPod struct {
	testing.TB

	namespace, member string
	pod               *corev1.Pod
	cfg               *rest.Config
	all               *kubernetes.Clientset
}

func newPod(t testing.TB) *ofPod {
	t.Helper()

	ns := makeNamespaces(t, 2)
	ops, member := ns[0], ns[1]
	all := clients(t, apiServer)

	_, err := all.CoreV1().ServiceAccounts(ops).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}, metav1.CreateOptions{})
	must(t, err)

	pod, err := all.CoreV1().Pods(ops).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "operator-1"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "operator", Containers: []corev1.Container{{Name: "operator", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)

	token, err := all.CoreV1().ServiceAccounts(ops).CreateToken(t.Context(), "operator", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	must(t, err)

	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "operator", Namespace: ops}
	allow(t, ops, account, "coordination.k8s.io", "leases", "create", "get", "update")
	allowNamed(t, ops, account, "configmaps", "namespace-scope", "get", "list", "watch")
	allow(t, member, account, "", "configmaps", "get", "list", "watch")

	cfg := rest.AnonymousClientConfig(apiServer)
	cfg.BearerToken = token.Status.Token

	return &ofPod{TB: t, namespace: ops, member: member, pod: pod, cfg: cfg, all: all}
}

// told says whether the Lease of the pod tells a list.
func (o *ofPod) told(value string) func() bool {
	o.Helper()

	want, err := parse(value)
	must(o, err)

	return func() bool {
		lease, err := o.all.CoordinationV1().Leases(o.namespace).Get(o.Context(), "watchlist-"+string(o.pod.UID), metav1.GetOptions{})

		return err == nil && lease.Annotations["ambit.dev/taken-in"] == hashOf(want) &&
			lease.Annotations["ambit.dev/watch-list"] == "namespace-scope" && lease.Labels["ambit.dev/follows"] == "true" &&
			lease.OwnerReferences[0].UID == o.pod.UID
	}
}

func allow(t testing.TB, namespace string, subject rbacv1.Subject, group, resource string, verbs ...string) {
	t.Helper()
	grant(t, namespace, subject, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
}

func allowNamed(t testing.TB, namespace string, subject rbacv1.Subject, resource, name string, verbs ...string) {
	t.Helper()
	grant(t, namespace, subject,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs})
}

func grant(t testing.TB, namespace string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
	t.Helper()

	rbac := clients(t, apiServer).RbacV1()

	role, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "r-"}, Rules: []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{})
	must(t, err)

	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "b-"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}, metav1.CreateOptions{})
	must(t, err)
}

func selector(t testing.TB, text string) labels.Selector {
	t.Helper()

	s, err := labels.Parse(text)
	must(t, err)

	return s
}
