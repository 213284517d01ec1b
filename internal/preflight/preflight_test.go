package preflight_test

import (
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/preflight"
)

var secrets = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}

func object(kind, namespace string) preflight.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "one"}
	ref := rbacv1.RoleRef{Kind: "Role", Name: "one"}
	o := preflight.Object{Namespaced: true, Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: kind}}

	switch kind {
	case "roles":
		o.Object = &rbacv1.Role{ObjectMeta: meta, Rules: secrets}
	case "rolebindings":
		o.Object = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref}
	case "clusterroles":
		o.Object, o.Namespaced = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: secrets}, false
	case "scopetemplates":
		o.Object, o.Namespaced = &operatorsv1alpha1.ScopeTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
				GenerateName: "one-", Rules: secrets,
				Subjects: []operatorsv1alpha1.Subject{{Kind: "User", Name: "jane"}},
			}}},
		}, false
		o.Resource.Group = operatorsv1alpha1.GroupVersion.Group
	}

	return o
}

func unnamed(o preflight.Object) preflight.Object {
	o.SetName("")
	o.SetGenerateName("one-")

	return o
}

// defined is the name by which a template knows its ClusterRole. That in the cluster has more digits.
func defined(o preflight.Object) string {
	return compile.ScopeTemplate(o.Object.(*operatorsv1alpha1.ScopeTemplate), true).Scope.Defines[0].Name
}

// handing are the rights to hand out by a ClusterRole, or by all without a name, what one does not hold.
func handing(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule(rbacv1.GroupName, "clusterroles", name, "bind", "escalate")}
}

func TestNeeds(t *testing.T) {
	t.Parallel()

	unknown := func(string, string, string) ([]rbacv1.PolicyRule, bool) { return nil, false }

	for name, tc := range map[string]struct {
		reason  string
		objects []preflight.Object
		in      []string
		held    []rbacv1.PolicyRule
		want    map[string]string
	}{
		"a role everywhere asked": {
			"whoever writes a role has to hold its rules", []preflight.Object{object("roles", "")}, []string{"b", "a"}, nil,
			map[string]string{
				"a": "get secrets; create roles; get, patch roles named one", "b": "get secrets; create roles; get, patch roles named one",
			},
		},
		"its own namespace": {
			"an object that names a namespace is written there", []preflight.Object{object("roles", "own")}, []string{"a"}, secrets,
			map[string]string{"own": "create roles; get, patch roles named one"},
		},
		"a right to its name": {
			"the name is known, so nobody needs the right to change others", []preflight.Object{object("roles", "own")}, nil,
			append([]rbacv1.PolicyRule{
				{Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}},
				{
					Verbs: []string{"get", "patch"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"},
					ResourceNames: []string{"one"},
				},
			}, secrets...),
			map[string]string{"own": ""},
		},
		"rights to its name alone": {
			"the request that creates a role names none", []preflight.Object{object("roles", "own")}, nil,
			[]rbacv1.PolicyRule{rule(rbacv1.GroupName, "roles", "one", "*")}, map[string]string{"own": "get secrets; create roles"},
		},
		"rights to its name and the empty one": {
			"that is the name of a request that names none", []preflight.Object{object("roles", "own")}, nil,
			[]rbacv1.PolicyRule{
				rule(rbacv1.GroupName, "roles", "one", "get", "patch"),
				{
					Verbs: []string{"create", "escalate"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"},
					ResourceNames: []string{"", "one"},
				},
			}, map[string]string{"own": ""},
		},
		"an object without a name": {
			"it can be created only", []preflight.Object{unnamed(object("roles", "own"))}, nil, secrets,
			map[string]string{"own": "create roles"},
		},
		"a binding of a role of the files": {
			"it takes the rules that the files say", []preflight.Object{object("roles", ""), object("rolebindings", "")},
			[]string{"a"},
			[]rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}}},
			map[string]string{"a": "create rolebindings; get, patch rolebindings named one"},
		},
		"a binding of a role that nobody knows": {
			"the right to bind it is enough", []preflight.Object{object("rolebindings", "")}, []string{"a"}, nil,
			map[string]string{"a": "create rolebindings; get, patch rolebindings named one; bind roles named one"},
		},
		"a template": {
			"it is written itself, its ClusterRoles are in the cluster, their bindings in namespaces",
			[]preflight.Object{object("scopetemplates", "")}, []string{"a"}, nil,
			map[string]string{
				"": "get secrets; create scopetemplates of operators.coreos.com; get, patch scopetemplates named one of " +
					"operators.coreos.com; create, delete, patch clusterroles",
				"a": "get secrets; create, delete, patch rolebindings",
			},
		},
		"a template, and rights to names": {
			"the names that its ClusterRoles get are not known beforehand, and the request that creates one has none",
			[]preflight.Object{object("scopetemplates", "")}, []string{"a"}, handing(defined(object("scopetemplates", ""))),
			map[string]string{
				"": "get secrets; create scopetemplates of operators.coreos.com; get, patch scopetemplates named one of " +
					"operators.coreos.com; create, delete, patch clusterroles",
				"a": "get secrets; create, delete, patch rolebindings",
			},
		},
		"a template, and rights to all names": {
			"whoever may escalate and bind need not hold what its ClusterRoles give",
			[]preflight.Object{object("scopetemplates", "")}, []string{"a"}, handing(""),
			map[string]string{
				"": "create scopetemplates of operators.coreos.com; get, patch scopetemplates named one of " +
					"operators.coreos.com; create, delete, patch clusterroles",
				"a": "create, delete, patch rolebindings",
			},
		},
	} {
		got := map[string]string{}
		for _, need := range preflight.Needs(tc.objects, tc.in, unknown) {
			got[need.Namespace] = authority.Words(need.Missing(tc.held), 1<<20)
		}

		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()

	jane := preflight.Subject{Subject: rbacv1.Subject{Kind: "User", Name: "jane"}}
	everywhere, inside := preflight.Grant(jane, "", secrets), preflight.Grant(jane, "a", secrets)

	b, ok := everywhere[1].(*rbacv1.ClusterRoleBinding)
	if !ok || b.RoleRef.Name != everywhere[0].GetName() || b.Subjects[0].APIGroup != rbacv1.GroupName {
		t.Errorf("got %+v", everywhere)
	}

	if r, ok := inside[1].(*rbacv1.RoleBinding); !ok || r.Namespace != "a" || r.RoleRef.Kind != "Role" || r.Name == b.Name {
		t.Errorf("got %+v", inside)
	}

	if got := (preflight.Subject{}).String(); got != "You" {
		t.Errorf("got %q", got)
	}
}
