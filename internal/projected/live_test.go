package projected_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func kinds() []projected.Kind { return append(projected.RoleKinds(), projected.BindingKinds()...) }

// object is one of a kind in which everything is set.
func object(kind projected.Kind) projected.Object {
	o := projected.Object{
		Kind: kind, Slot: "slot-0123456789", Name: "slot-abc", ScopeHash: "hash", Owner: "NamespaceScope/ops/s", Source: "Role/ops/r",
	}

	if kind.IsBinding() {
		o.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
		o.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}}
	} else {
		o.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	}

	return o
}

// TestWrittenIsReadBack: what is written is read back as it is, so that nothing is written twice.
func TestWrittenIsReadBack(t *testing.T) {
	t.Parallel()

	for _, kind := range kinds() {
		want := object(kind)
		live := want.In("a")

		if is, ok := projected.KindOf(live); !ok || is != kind {
			t.Errorf("a %s is read as a %s", kind, is)
		}

		got, ok := projected.From(live)
		if !ok || !reflect.DeepEqual(got, want) || got.Digest(scope.ManagedBy) != want.Digest(scope.ManagedBy) {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}

		if live.GetNamespace() != "a" || live.GetLabels()[scope.LabelManagedBy] != scope.ManagedBy {
			t.Errorf("%s is written into %s with the labels %v", kind, live.GetNamespace(), live.GetLabels())
		}

		empty := kind.Empty("a", "n")
		if is, _ := projected.KindOf(empty); is != kind || empty.GetName() != "n" || empty.GetNamespace() != "a" {
			t.Errorf("%s: an empty one is %v", kind, empty)
		}

		if list := reflect.TypeOf(kind.EmptyList()).Elem().Name(); list != string(kind)+"List" {
			t.Errorf("%s is listed by %s", kind, list)
		}

		if kind.Resource() != strings.ToLower(string(kind))+"s" ||
			kind.IsClusterScoped() != strings.HasPrefix(string(kind), "Cluster") ||
			kind.IsBinding() != strings.HasSuffix(string(kind), "Binding") {
			t.Errorf("%s is called %s; in the cluster: %t, a binding: %t", kind, kind.Resource(), kind.IsClusterScoped(), kind.IsBinding())
		}
	}

	if o, ok := projected.From(&corev1.ConfigMap{}); ok {
		t.Errorf("a ConfigMap is read as %+v", o)
	}

	if kind, ok := projected.KindOf(&corev1.ConfigMap{}); ok {
		t.Errorf("a ConfigMap is a %s", kind)
	}
}

// TestOwnersAreWrittenWhereTheyAre: an owner with a namespace owns only what is in it.
func TestOwnersAreWrittenWhereTheyAre(t *testing.T) {
	t.Parallel()

	o := object(projected.Role)
	o.OwnerRefs = []projected.OwnerRef{
		{APIVersion: "v1", Kind: "A", Name: "everywhere", UID: "1"},
		{APIVersion: "v2", Kind: "B", Name: "here", UID: "2", Namespace: "a"},
	}

	for namespace, want := range map[string][]metav1.OwnerReference{
		"a": {{APIVersion: "v1", Kind: "A", Name: "everywhere", UID: "1"}, {APIVersion: "v2", Kind: "B", Name: "here", UID: "2"}},
		"b": {{APIVersion: "v1", Kind: "A", Name: "everywhere", UID: "1"}},
	} {
		if got := o.In(namespace).GetOwnerReferences(); !reflect.DeepEqual(got, want) {
			t.Errorf("in %s it is owned by %v", namespace, got)
		}
	}
}

// TestOwnersAreReadBack: what a template made goes with the last of its owners, so a further one makes a difference; elsewhere
// owners of others make none.
func TestOwnersAreReadBack(t *testing.T) {
	t.Parallel()

	one := metav1.OwnerReference{APIVersion: "v1", Kind: "ScopeTemplate", Name: "t", UID: "u"}
	read := projected.OwnerRef{APIVersion: "v1", Kind: "ScopeTemplate", Name: "t", UID: "u"}

	for reason, tc := range map[string]struct {
		owner  string
		owners []metav1.OwnerReference
		want   []projected.OwnerRef
	}{
		"of a template":                  {"ScopeTemplate//t", []metav1.OwnerReference{one}, []projected.OwnerRef{read}},
		"of a template, and one more":    {"ScopeTemplate//t", []metav1.OwnerReference{one, one}, nil},
		"of a template, and nobody's":    {"ScopeTemplate//t", nil, nil},
		"of a scope, owned by a binding": {"NamespaceScope/ops/s", []metav1.OwnerReference{one}, nil},
	} {
		o := object(projected.ClusterRole)
		o.Owner = tc.owner
		live := o.In("")
		live.SetOwnerReferences(tc.owners)

		if got, _ := projected.From(live); !reflect.DeepEqual(got.OwnerRefs, tc.want) {
			t.Errorf("%s: read are %v", reason, got.OwnerRefs)
		}
	}
}

// TestWhatNobodyHolds: a copy is empty when nobody holds anything by it, and guarded when nobody can bind it.
func TestWhatNobodyHolds(t *testing.T) {
	t.Parallel()

	guard := []rbacv1.PolicyRule{scope.GuardRule()}
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}

	for reason, tc := range map[string]struct {
		object         projected.Object
		empty, guarded bool
	}{
		"a Role":                 {object(projected.Role), false, false},
		"without rules":          {projected.Object{Kind: projected.Role}, true, false},
		"a binding":              {object(projected.RoleBinding), false, false},
		"without subjects":       {projected.Object{Kind: projected.ClusterRoleBinding}, true, false},
		"aggregated":             {projected.Object{Kind: projected.ClusterRole, Aggregates: []string{"a"}}, false, false},
		"aggregated by somebody": {projected.Object{Kind: projected.ClusterRole, Aggregated: true}, false, false},
		"guarded":                {projected.Object{Kind: projected.ClusterRole, Rules: guard}, false, true},
		"guarded by more":        {projected.Object{Kind: projected.ClusterRole, Rules: everything}, false, true},
		"a Role with the rule":   {projected.Object{Kind: projected.Role, Rules: guard}, false, false},
		"aggregated, with the rule": {
			projected.Object{Kind: projected.ClusterRole, Rules: guard, Aggregates: []string{"a"}}, false, false,
		},
		"by somebody, with the rule":     {projected.Object{Kind: projected.ClusterRole, Rules: guard, Aggregated: true}, false, false},
		"a ClusterRole without the rule": {object(projected.ClusterRole), false, false},
	} {
		if tc.object.IsEmpty() != tc.empty || tc.object.IsGuarded() != tc.guarded {
			t.Errorf("%s: empty %t, guarded %t", reason, tc.object.IsEmpty(), tc.object.IsGuarded())
		}
	}
}

// TestSources: a source is read as it was written, and what is of another form is none.
func TestSources(t *testing.T) {
	t.Parallel()

	for _, s := range []projected.Source{{Kind: "Role", Namespace: "ops", Name: "r"}, {Kind: "ClusterRole", Name: "system:r"}} {
		if got, ok := projected.ParseSource(s.String()); !ok || got != s {
			t.Errorf("%s is read as %v", s, got)
		}
	}

	for _, text := range []string{"", "Role", "Role/ops", "Role/ops/a/b"} {
		if got, ok := projected.ParseSource(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestPrefixes: names begin as their slots do, short enough for what follows, and whole characters only.
func TestPrefixes(t *testing.T) {
	t.Parallel()

	const hash = "0123456789"

	long := strings.Repeat("x", 100)

	for reason, tc := range map[string]struct {
		kind       projected.Kind
		slot, want string
	}{
		"short":                      {projected.Role, "reader-" + hash, "reader-"},
		"no more than a hash":        {projected.Role, hash, ""},
		"less than one":              {projected.Role, "a", ""},
		"a ClusterRole's is not cut": {projected.ClusterRole, long + "-" + hash, long + "-"},
	} {
		if got := projected.Prefix(tc.kind, tc.slot); got != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}

	for _, name := range []string{long, strings.Repeat("é", 50), "x" + strings.Repeat("é", 50)} {
		for _, kind := range []projected.Kind{projected.Role, projected.RoleBinding, projected.ClusterRoleBinding} {
			got := projected.Prefix(kind, name+"-"+hash)
			if len(got) > 63-16 || len(got) < 63-16-2 || !utf8.ValidString(got) || !strings.HasSuffix(got, "-") ||
				!strings.HasPrefix(name, strings.TrimSuffix(got, "-")) {
				t.Errorf("of %s, a name begins with %q", name, got)
			}
		}
	}
}

// TestNamesOfOthers: what differs from a name that Ambit gave in one character, in its kind or in its namespace is somebody
// else's.
func TestNamesOfOthers(t *testing.T) {
	t.Parallel()

	names := newNames(t, 1)
	given := names.New(projected.Role, "a", ops(), "slot-0123456789")
	for !strings.ContainsAny(given[len("slot-"):], "abcdef") {
		given = names.New(projected.Role, "a", ops(), "slot-0123456789")
	}

	if tag, ok := names.TagOf(projected.Role, "a", given); !ok || tag != names.Tag(ops()) {
		t.Fatalf("%s is not known again", given)
	}

	is := func(kind projected.Kind, namespace, name string) bool {
		tag, ok := names.TagOf(kind, namespace, name)

		return ok && tag == names.Tag(ops())
	}

	for reason, other := range map[string]bool{
		"another kind": is(projected.RoleBinding, "a", given), "another namespace": is(projected.Role, "b", given),
		"another prefix": is(projected.Role, "a", "x"+given), "no prefix": is(projected.Role, "a", given[len("slot-"):]),
		"upper case": is(projected.Role, "a", "slot-"+strings.ToUpper(given[len("slot-"):])),
		"no digits":  is(projected.Role, "a", given[:len(given)-1]+"x"), "too few": is(projected.Role, "a", "abc"),
		"nothing": is(projected.Role, "a", ""),
	} {
		if other {
			t.Errorf("%s: it counts as Ambit's", reason)
		}
	}

	for _, text := range []string{"slot-" + strings.ToUpper("abcdef0123456789"), "slot-0123456789abcdeg", "0123456789abcde"} {
		if tag, ok := names.TagIn(projected.Role, "a", text); ok {
			t.Errorf("%s is of no form that Ambit gives, and has tag %d", text, tag)
		}
	}
}
