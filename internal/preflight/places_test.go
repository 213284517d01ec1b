package preflight_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/preflight"
)

// TestWhoAsks: whoever reads what is missing is told of whom.
func TestWhoAsks(t *testing.T) {
	t.Parallel()

	for want, s := range map[string]rbacv1.Subject{
		"Service account ops/op": {Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"},
		"User jane":              {Kind: rbacv1.UserKind, Name: "jane"}, "Group people": {Kind: rbacv1.GroupKind, Name: "people"},
		"You": {},
	} {
		if got := (preflight.Subject{Subject: s}).String(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}

// TestInstallNeeds: what an operator is given may be handed out by whoever may bind and escalate roles of the right kind.
func TestInstallNeeds(t *testing.T) {
	t.Parallel()

	place := authority.Place{Rules: []rbacv1.PolicyRule{rule("", "services", "", "create")}, Handed: secrets}

	for namespace, of := range map[string]string{"a": "roles", preflight.Everywhere: "clusterroles"} {
		place.Namespace = namespace
		need := preflight.Install(place)

		if got := authority.Words(need.Missing(nil), 1<<20); need.Namespace != namespace || got != "get secrets; create services" {
			t.Errorf("in %q it needs %s", need.Namespace, got)
		}

		may := rule(rbacv1.GroupName, of, "", "bind", "escalate")
		if got := authority.Words(need.Missing([]rbacv1.PolicyRule{may}), 1<<20); got != "create services" {
			t.Errorf("who may hand out everything in %q needs %s", namespace, got)
		}
	}

	if need := preflight.Install(authority.Place{Rules: place.Rules}); len(need.Handed) > 0 {
		t.Errorf("nothing is handed out, and %v is to be held", need.Handed)
	}
}

// TestWhichRoleIsBound: a binding takes the rules of the role that it refers to, in its own namespace, and of no other.
func TestWhichRoleIsBound(t *testing.T) {
	t.Parallel()

	known := func(string, string, string) ([]rbacv1.PolicyRule, bool) {
		return []rbacv1.PolicyRule{rule("", "pods", "", "get")}, true
	}
	clusterBinding := preflight.Object{
		Object: &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "one"},
		}, Resource: object("rolebindings", "").Resource, Namespaced: true,
	}
	otherName := object("roles", "")
	otherName.SetName("two")

	for reason, tc := range map[string]struct {
		objects []preflight.Object
		want    string
	}{
		"the files' role":          {[]preflight.Object{object("rolebindings", "a"), object("roles", "a")}, "get secrets"},
		"one without a namespace":  {[]preflight.Object{object("rolebindings", "a"), object("roles", "")}, "get secrets"},
		"one of another namespace": {[]preflight.Object{object("rolebindings", "a"), object("roles", "b")}, "get pods"},
		"one with another name":    {[]preflight.Object{object("rolebindings", "a"), otherName}, "get pods"},
		"a ClusterRole so called":  {[]preflight.Object{object("rolebindings", "a"), object("clusterroles", "")}, "get pods"},
		"the files' ClusterRole":   {[]preflight.Object{clusterBinding, object("clusterroles", "")}, "get secrets"},
		"a Role so called":         {[]preflight.Object{clusterBinding, object("roles", "a")}, "get pods"},
	} {
		// The role of the cluster gives something else.
		for _, need := range preflight.Needs(tc.objects, []string{"a"}, known) {
			if need.Namespace != "a" {
				continue
			}

			if got := authority.Words(need.Handed[0].Rules, 1<<20); got != tc.want {
				t.Errorf("%s: it hands out %s, want %s", reason, got, tc.want)
			}
		}
	}
}

// TestNeedsOfTemplatesEverywhere: where no namespace is given, a template's ClusterRoles are bound in the whole cluster.
func TestNeedsOfTemplatesEverywhere(t *testing.T) {
	t.Parallel()

	needs := preflight.Needs([]preflight.Object{object("scopetemplates", "")}, nil, nil)
	if len(needs) != 1 || needs[0].Namespace != preflight.Everywhere {
		t.Fatalf("needed are %+v", needs)
	}

	const want = "get secrets; create scopetemplates of operators.coreos.com; get, patch scopetemplates named one of " +
		"operators.coreos.com; create, delete, patch clusterrolebindings, clusterroles"
	if got := authority.Words(needs[0].Missing(nil), 1<<20); got != want {
		t.Errorf("needed is %s, want %s", got, want)
	}
}

// TestWhatIsGuarded: the policies are about these objects, and about some of them they go by the OperatorGroup beside.
func TestWhatIsGuarded(t *testing.T) {
	t.Parallel()

	const olm = ".operators.coreos.com"

	for _, tc := range []struct {
		object       preflight.Object
		is, byGroups bool
	}{
		{guardedObject("namespacescopes.operator.ibm.com"), true, false},
		{guardedObject("namespacescopes.namespacescope.ibm.com"), true, false},
		{guardedObject("operatorgroups" + olm), true, false}, {guardedObject("scopetemplates" + olm), true, false},
		{guardedObject("scopeinstances" + olm), true, false}, {guardedObject("clusterserviceversions" + olm), true, true},
		{guardedObject("subscriptions" + olm), true, true}, {guardedObject("installplans" + olm), true, true},
		{guardedObject("catalogsources" + olm), true, true},
		{guardedObject("configmaps", "data.clusterServiceVersions", "[]"), true, true},
		{guardedObject("configmaps", "data.other", "[]"), false, false}, {guardedObject("configmaps"), false, false},
		{guardedObject("secrets", "data.clusterServiceVersions", "[]"), false, false},
		{guardedObject("namespacescopes.example.com"), false, false},
	} {
		if is, byGroups := preflight.Guards(&tc.object); is != tc.is || byGroups != tc.byGroups {
			t.Errorf("%s %v are guarded: %t, by groups: %t", tc.object.Resource, tc.object.Object, is, byGroups)
		}
	}
}

// TestGrantIsForWhoAsks: the objects that are printed can be applied, for an account as for a person.
func TestGrantIsForWhoAsks(t *testing.T) {
	t.Parallel()

	names := map[string]struct{}{}

	for _, s := range []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}, {Kind: rbacv1.UserKind, Name: "jane"},
		{Kind: rbacv1.GroupKind, Name: "jane"},
	} {
		for _, namespace := range []string{"a", preflight.Everywhere} {
			objects := preflight.Grant(preflight.Subject{Subject: s}, namespace, secrets)

			want := s
			if s.Kind != rbacv1.ServiceAccountKind {
				want.APIGroup = rbacv1.GroupName
			}

			var (
				subjects []rbacv1.Subject
				ref      rbacv1.RoleRef
				rules    []rbacv1.PolicyRule
			)

			for _, obj := range objects {
				switch o := obj.(type) {
				case *rbacv1.Role:
					rules = o.Rules
				case *rbacv1.ClusterRole:
					rules = o.Rules
				case *rbacv1.RoleBinding:
					subjects, ref = o.Subjects, o.RoleRef
				case *rbacv1.ClusterRoleBinding:
					subjects, ref = o.Subjects, o.RoleRef
				}
			}

			if len(subjects) != 1 || subjects[0] != want || len(rules) != 1 || objects[0].GetNamespace() != namespace ||
				ref.Name != objects[0].GetName() || ref.Kind != objects[0].GetObjectKind().GroupVersionKind().Kind {
				t.Errorf("%v in %q gets %v", s, namespace, objects)
			}

			if _, taken := names[ref.Name]; taken {
				t.Errorf("two grants are called %s", ref.Name)
			}

			names[ref.Name] = struct{}{}
		}
	}
}
