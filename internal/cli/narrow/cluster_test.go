package narrow

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// inMemory is a cluster that holds objects, and does not let anybody list some kinds.
func inMemory(t *testing.T, denied []client.ObjectList, objects ...client.Object) *cluster {
	t.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()

	return &cluster{Client: interceptor.NewClient(built, interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			for _, d := range denied {
				if kindOf(d) == kindOf(list) {
					return apierrors.NewForbidden(rbacv1.Resource("x"), "", nil)
				}
			}

			return to.List(ctx, list, options...)
		},
	})}
}

func kindOf(list client.ObjectList) string {
	switch list.(type) {
	case *rbacv1.RoleBindingList:
		return "RoleBinding"
	case *rbacv1.ClusterRoleBindingList:
		return "ClusterRoleBinding"
	case *rbacv1.ClusterRoleList:
		return "ClusterRole"
	default:
		return ""
	}
}

// shipped is an operator whose ClusterRole has something to give in namespaces, and something in the whole cluster. Its binding
// has a namespace, which means nothing, as charts write it.
const shipped = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op, labels: {example.com/part: of-it}}
rules: [{apiGroups: [""], resources: [secrets, nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op, namespace: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, name: a, namespace: ops}]
`

func opRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "op"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "nodes"}, Verbs: []string{"get"}}},
	}
}

func opBinding(name, account string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "op"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: account}},
	}
}

// narrowedBefore is the binding that a narrowing of another one wrote.
func narrowedBefore(from string) *rbacv1.ClusterRoleBinding {
	b := opBinding(from+"-cluster-scoped", "a")
	b.Annotations = map[string]string{narrow.AnnotationFrom: "ClusterRoleBinding/" + from}

	return b
}

// aggregating is a ClusterRole that takes the rules of those with a label.
func aggregating(label, value string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregating"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{label: value}},
		}},
	}
}

// TestWhatOthersUseStays holds that a ClusterRole is changed where it is only if no binding of the cluster that is not in the
// input refers to it, and no other ClusterRole takes its rules, or may: whoever it is bound to would lose rights. What a
// narrowing of the same input bound is none, or the second one would write something else than the first.
func TestWhatOthersUseStays(t *testing.T) {
	t.Parallel()

	inNamespace := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "op"}, RoleRef: opBinding("op", "b").RoleRef,
	}

	for name, tc := range map[string]struct {
		there   []client.Object
		denied  []client.ObjectList
		inPlace bool
	}{
		"nobody":                             {inPlace: true},
		"itself":                             {there: []client.Object{opBinding("op", "a")}, inPlace: true},
		"itself, narrowed before":            {there: []client.Object{narrowedBefore("op")}, inPlace: true},
		"another, narrowed before":           {there: []client.Object{narrowedBefore("other")}},
		"a RoleBinding":                      {there: []client.Object{inNamespace}},
		"a ClusterRoleBinding":               {there: []client.Object{opBinding("other", "b")}},
		"a binding of another role":          {there: []client.Object{boundTo("view")}, inPlace: true},
		"RoleBindings that are not read":     {denied: []client.ObjectList{&rbacv1.RoleBindingList{}}},
		"ClusterRoleBindings that are not":   {denied: []client.ObjectList{&rbacv1.ClusterRoleBindingList{}}},
		"ClusterRoles that are not":          {denied: []client.ObjectList{&rbacv1.ClusterRoleList{}}},
		"a ClusterRole that takes its rules": {there: []client.Object{aggregating("example.com/part", "of-it")}},
		"one that takes those of others":     {there: []client.Object{aggregating("example.com/part", "of-another")}, inPlace: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := &narrow.Stream{}
			if err := s.Read("file", strings.NewReader(shipped)); err != nil {
				t.Fatal(err)
			}

			changesInPlace(t, inMemory(t, tc.denied, tc.there...), s, tc.inPlace, len(tc.denied) > 0)
		})
	}
}

func boundTo(role string) *rbacv1.ClusterRoleBinding {
	b := opBinding("of-"+role, "b")
	b.RoleRef.Name = role

	return b
}

// TestWhatOthersUseStaysWhereItRuns holds the same for what is read from the cluster: only the bindings of the account are.
func TestWhatOthersUseStaysWhereItRuns(t *testing.T) {
	t.Parallel()

	for name, others := range map[string][]client.Object{"nobody": nil, "another account": {opBinding("other", "b")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := inMemory(t, nil, append(others, opRole(), opBinding("op", "a"))...)

			s, err := c.read(t.Context(), explain.Account{Namespace: "ops", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}

			changesInPlace(t, c, s, len(others) == 0, false)
		})
	}
}

// has says whether a stream has an object.
func has(t *testing.T, s *narrow.Stream, kind, name string) bool {
	t.Helper()

	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}

	return slices.ContainsFunc(objects, func(raw json.RawMessage) bool {
		var of metav1.PartialObjectMetadata

		return json.Unmarshal(raw, &of) == nil && of.Kind == kind && of.Name == name
	})
}

// changesInPlace narrows, and holds whether the ClusterRole loses what is namespaced, or another one is made for the rest, and
// whether it was told that bindings were not read.
func changesInPlace(t *testing.T, c *cluster, s *narrow.Stream, want, told bool) {
	t.Helper()

	n := &narrow.Options{As: narrow.AsScope, Members: []string{"x"}, Kinds: reach.NewKinds()}
	c.serve(t.Context(), n)

	if _, err := narrow.Narrow(s, n); err != nil {
		t.Fatal(err)
	}

	out, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	after := &narrow.Stream{}
	if err := after.Read("output", bytes.NewReader(out)); err != nil {
		t.Fatal(err)
	}

	if is := !has(t, after, "ClusterRole", "op-cluster-scoped"); is != want {
		t.Errorf("in place: %t\n%s", is, out)
	}

	notRead := func(note string) bool { return strings.HasPrefix(note, "roles or bindings could not be read") }
	if got := slices.ContainsFunc(c.notes(), notRead); got != told {
		t.Errorf("the notes are %q", c.notes())
	}
}

// TestRoleBindingsThatAreNotRead holds that a narrowing hears of the RoleBindings of every namespace, and whether some are
// missing, whatever else cannot be read.
func TestRoleBindingsThatAreNotRead(t *testing.T) {
	t.Parallel()

	elsewhere := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "op"}, RoleRef: opBinding("op", "a").RoleRef,
	}

	for name, tc := range map[string]struct {
		denied []client.ObjectList
		known  bool
	}{
		"all are":                     {known: true},
		"ClusterRoleBindings are not": {denied: []client.ObjectList{&rbacv1.ClusterRoleBindingList{}}, known: true},
		"RoleBindings are not":        {denied: []client.ObjectList{&rbacv1.RoleBindingList{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			n := &narrow.Options{}
			inMemory(t, tc.denied, elsewhere, opBinding("op", "a")).serve(t.Context(), n)

			got, known := n.RoleBindings()
			if known != tc.known || known != (len(got) == 1 && got[0].Namespace == "elsewhere") {
				t.Errorf("known is %t: %v", known, got)
			}
		})
	}
}

// TestWorkloadsOfTheDefaultAccount holds that a pod template without an account runs as that of its namespace called default: the
// API server fills the field in of pods, and not of templates.
func TestWorkloadsOfTheDefaultAccount(t *testing.T) {
	t.Parallel()

	deployment := func(name, account string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
		d.Spec.Template.Spec.ServiceAccountName = account

		return d
	}

	for account, want := range map[string][]string{"default": {"named", "silent"}, "a": {"other"}} {
		c := inMemory(t, nil, opRole(), opBinding("op", account),
			deployment("silent", ""), deployment("named", "default"), deployment("other", "a"))

		s, err := c.read(t.Context(), explain.Account{Namespace: "ops", Name: account})
		if err != nil {
			t.Fatal(err)
		}

		var got []string

		for _, name := range []string{"named", "other", "silent"} {
			if has(t, s, "Deployment", name) {
				got = append(got, name)
			}
		}

		if !slices.Equal(got, want) {
			t.Errorf("as %s runs %v, want %v", account, got, want)
		}
	}
}
