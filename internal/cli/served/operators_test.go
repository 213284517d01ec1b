package served

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	testclient "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// remembered is a cluster in memory that remembers what was listed, and denies what a test wants. What the API server decides is
// tested on one, in test/cli.
type remembered struct {
	client.Client

	mu     sync.Mutex
	lists  []string
	denied func(kind, namespace string) bool
}

func (c *remembered) list(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	var all client.ListOptions

	all.ApplyOptions(options)

	kind := strings.TrimSuffix(fmt.Sprintf("%T", list)[strings.LastIndex(fmt.Sprintf("%T", list), ".")+1:], "List")
	if untyped, is := list.(*unstructured.UnstructuredList); is {
		kind = strings.TrimSuffix(untyped.GetKind(), "List")
	}

	c.mu.Lock()
	c.lists = append(c.lists, kind+" "+all.Namespace)
	c.mu.Unlock()

	if c.denied != nil && c.denied(kind, all.Namespace) {
		return apierrors.NewForbidden(rbacv1.Resource("x"), "", nil)
	}

	return to.List(ctx, list, options...)
}

func newRemembered(t *testing.T, objects []client.Object) *remembered {
	t.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	c := &remembered{}
	// The usual one keeps who wrote which field, for which it looks up all kinds anew at every write.
	tracker := testclient.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	built := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).
		WithObjectTracker(tracker).WithObjects(objects...).Build()
	c.Client = interceptor.NewClient(built, interceptor.Funcs{
		List: c.list,
		Get: func(
			ctx context.Context, to client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption,
		) error {
			if _, is := obj.(*corev1.Namespace); is && c.denied != nil && c.denied("Namespace", key.Name) {
				return apierrors.NewForbidden(corev1.Resource("namespaces"), key.Name, nil)
			}

			return to.Get(ctx, key, obj, options...)
		},
		Create: func(ctx context.Context, to client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			if review, is := obj.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true

				return nil
			}

			return to.Create(ctx, obj, options...)
		},
	})

	return c
}

func (c *remembered) view() *reading.Cluster { return &reading.Cluster{Reader: snapshot.New(c)} }

func operatorsOf(namespace string) *OperatorsOptions {
	return &OperatorsOptions{reading.Options{
		Streams:   output.Streams{Out: terminal.NewWriter(nil), ErrOut: terminal.NewWriter(nil)},
		Namespace: namespace, NamespaceGiven: true, AmbitNamespace: reading.DefaultAmbitNamespace,
	}}
}

// randomWorld is a cluster of a few operator namespaces and members, with scopes of all kinds.
type randomWorld struct {
	*rand.Rand

	objects []client.Object
	members []string
}

func (w *randomWorld) add(objects ...client.Object) {
	for _, obj := range objects {
		obj.SetUID(types.UID(fmt.Sprintf("uid-%d", len(w.objects))))
		w.objects = append(w.objects, obj)
	}
}

// some are a random few of the members, and at times one that is not there.
func (w *randomWorld) some() []string {
	out := slices.DeleteFunc(slices.Clone(w.members), func(string) bool { return w.IntN(3) > 0 })
	if w.IntN(4) == 0 {
		out = append(out, "missing")
	}

	return out
}

func newRandomWorld(seed uint64) *randomWorld {
	w := &randomWorld{Rand: rand.New(rand.NewPCG(seed, 1))} // The same each time.

	for i := range 6 {
		name := fmt.Sprintf("team-%d", i)
		w.members = append(w.members, name)
		w.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"tier": string(rune('a' + w.IntN(3)))}}})
	}

	for i := range 3 {
		w.operatorNamespace(fmt.Sprintf("ops-%d", i))
	}

	w.add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"patch"}, APIGroups: []string{"other.example.com"}, Resources: []string{"gadgets"}},
	}})
	w.add(&operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{
			ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
				GenerateName: "reads",
				Rules:        []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
				Subjects:     []operatorsv1alpha1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "op", Namespace: "ops-0"}},
			}},
		}})

	for i := range 2 {
		w.add(&operatorsv1alpha1.ScopeInstance{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("instance-%d", i)},
			Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: "template", Namespaces: append(w.some(), "team-0")},
		})
	}

	everywhere := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}, Spec: operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: "template"},
	}
	everywhere.Status.Reach = operatorsv1alpha1.ReachCluster
	w.add(everywhere)

	return w
}

func (w *randomWorld) operatorNamespace(ops string) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ops, Name: name} }
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "op"}}
	w.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ops, Labels: map[string]string{"tier": "b"}}},
		&corev1.ServiceAccount{ObjectMeta: meta("op")},
		&rbacv1.Role{ObjectMeta: meta("op"), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "update"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta("op"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "op"}, Subjects: subjects,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: meta("view"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: subjects,
		},
		&corev1.Pod{ObjectMeta: meta("op"), Spec: corev1.PodSpec{ServiceAccountName: "op"}})

	for i := range 1 + w.IntN(2) {
		scope := &operatorv1.NamespaceScope{ObjectMeta: meta(fmt.Sprintf("scope-%d", i))}
		scope.Spec.NamespaceMembers, scope.Spec.ServiceAccountMembers = w.some(), []string{"op"}
		scope.Spec.ConfigmapName = fmt.Sprintf("list-%d", i)

		if w.IntN(2) == 0 {
			scope.Spec.NamespaceSelector = &operatorv1.NamespaceSelector{Raw: []byte(`{"matchLabels":{"tier":"a"}}`)}
		}

		if w.IntN(2) == 0 {
			scope.Status.ValidatedMembers = w.some()
		}

		if w.IntN(2) == 0 {
			scope.Status.FailedMembers = []operatorv1.FailedMember{{Namespace: "team-1", Reason: "AuthorizationRequired", Message: "no"}}
		}

		w.add(scope)
	}

	if w.IntN(2) == 0 {
		return
	}

	group := &operatorsv1.OperatorGroup{ObjectMeta: meta("group")}
	group.Status.Namespaces = [][]string{w.some(), {""}, {ops}}[w.IntN(3)]
	csv := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"customresourcedefinitions": map[string]any{"owned": []any{
				map[string]any{"name": "widgets.example.com", "version": "v1", "kind": "Widget"},
			}},
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
				"deployments": []any{},
				"clusterPermissions": []any{map[string]any{"serviceAccountName": "installed", "rules": []any{
					map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"nodes"}},
				}}},
				"permissions": []any{map[string]any{"serviceAccountName": "installed", "rules": []any{
					map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}},
				}}},
			}},
		},
		"status": map[string]any{"phase": "Succeeded"},
	}}
	csv.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(olm.ClusterServiceVersionKind))
	csv.SetNamespace(ops)
	csv.SetName("widgets.v1")
	csv.SetAnnotations(map[string]string{operatorsv1.TargetsAnnotation: strings.Join(group.Status.Namespaces, ",")})
	w.add(group, csv)
}

// settle writes a part of what the manager would.
func (w *randomWorld) settle(t *testing.T, c *remembered) {
	t.Helper()

	for range 3 {
		v := c.view()
		o := operatorsOf("")
		o.NamespaceGiven = false

		if _, err := Overview(t.Context(), v, &o.Options); err != nil {
			t.Fatal(err)
		}

		for _, h := range v.OperatorNamespaces() {
			for _, s := range plan.New(h.Scopes, h.Facts).Scopes {
				for i := range s.Grant {
					if g := &s.Grant[i]; g.Action == plan.Create && w.IntN(5) > 0 {
						object := g.Object()
						if err := c.Create(t.Context(), object.In(g.Namespace)); err != nil && !apierrors.IsAlreadyExists(err) {
							t.Fatal(err)
						}
					}
				}
			}
		}
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()

	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// TestOneNamespaceIsAsInTheWhole holds that what is said of a namespace is the same whether the whole cluster was read or only
// what has to do with it, and that nothing is listed in the whole cluster then that is in namespaces, but what declares scopes.
func TestOneNamespaceIsAsInTheWhole(t *testing.T) {
	t.Parallel()

	serving := 0

	for seed := range uint64(8) {
		w := newRandomWorld(seed)
		c := newRemembered(t, w.objects)
		w.settle(t, c)

		for _, namespace := range append([]string{"ops-0", "ops-1", "missing"}, w.members...) {
			o, v := operatorsOf(namespace), c.view()
			everywhere := o.Options
			everywhere.NamespaceGiven = false

			all, err := Overview(t.Context(), v, &everywhere)
			if err != nil {
				t.Fatal(err)
			}

			want, wantErr := o.inside(t.Context(), v, all)
			c.lists = nil
			got, err := o.Find(t.Context(), c.view())

			if (err == nil) != (wantErr == nil) || jsonOf(t, got) != jsonOf(t, want) {
				t.Errorf("seed %d, %s: %v: %s\nand of the whole cluster, %v: %s",
					seed, namespace, err, jsonOf(t, got), wantErr, jsonOf(t, want))
			}

			if got != nil {
				serving += len(got.Operators)
			}

			for _, list := range c.lists {
				kind, in, _ := strings.Cut(list, " ")
				if in == "" && !slices.Contains([]string{
					"NamespaceScope", "ScopeTemplate", "ScopeInstance", "OperatorGroup", "ClusterRole", "ClusterRoleBinding",
					"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
				}, kind) {
					t.Errorf("seed %d, %s: %s is listed in the whole cluster", seed, namespace, kind)
				}
			}
		}
	}

	if serving < 130 {
		t.Errorf("%d operators serve in all of these worlds; they try nothing", serving)
	}
}

// TestOneNamespaceOfATenant holds that whoever may look into their own namespace alone is told who serves there, and what could
// not be read, and that nothing is asked of other namespaces.
func TestOneNamespaceOfATenant(t *testing.T) {
	t.Parallel()

	for seed := range uint64(8) {
		w := newRandomWorld(seed)
		c := newRemembered(t, w.objects)
		w.settle(t, c)

		whole, err := operatorsOf("team-2").Find(t.Context(), c.view())
		if err != nil {
			t.Fatal(err)
		}

		c.lists = nil
		c.denied = func(_, namespace string) bool { return namespace != "team-2" }

		got, err := operatorsOf("team-2").Find(t.Context(), c.view())
		if err != nil {
			t.Fatal(err)
		}

		for _, list := range c.lists {
			if _, in, _ := strings.Cut(list, " "); in != "" && in != "team-2" && in != "kube-system" && in != "olm" {
				t.Errorf("seed %d: asked for %s", seed, list)
			}
		}

		for _, o := range whole.Operators {
			if o.State == "served" && strings.HasPrefix(o.Scopes[0], "NamespaceScope") &&
				!slices.ContainsFunc(got.Operators, func(g Inside) bool { return g.Operator == o.Operator }) {
				t.Errorf("seed %d: %s serves, and the tenant is not told: %s", seed, o.Operator, jsonOf(t, got))
			}
		}

		if !slices.ContainsFunc(got.NotRead, func(n string) bool { return strings.Contains(n, "namespacescopes") }) {
			t.Errorf("seed %d: what was not read is %q", seed, got.NotRead)
		}
	}
}
