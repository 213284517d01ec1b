package read

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestListsAreGatheredWithinBounds: all of a list is in memory until its last object is there, at each start and whenever the API
// server has forgotten what came after the last one. What large objects say is left out before that; of the others it is known.
func TestListsAreGatheredWithinBounds(t *testing.T) {
	t.Parallel()

	const many = 150

	s := NewStore(&ear{})
	meta := func(i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: fmt.Sprint("n-", i), ResourceVersion: "1"}
	}
	rules := func(bytes int) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: make([]string, bytes/3)}}
	}

	roles := filledBy(s, projected.ClusterRole, &s.clusterRoles)
	gathers(t, &roles, many, maxRuleSets, func(i int) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: meta(i), Rules: rules([]int{1000, maxRuleSet - 1000}[min(i, 1)])}
	})

	bindings := filledBy(s, projected.ClusterRoleBinding, &s.clusterBindings)
	gathers(t, &bindings, many, maxSubjects, func(i int) client.Object {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta(i), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "n-0"}, Subjects: append(
				make([]rbacv1.Subject, []int{20, 1000}[min(i, 1)]),
				rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: fmt.Sprint("ops-", i), Name: "op"}),
		}
	})

	in := roleSink(s)
	gathers(t, in, many, maxGrantedIn, func(i int) client.Object {
		m := meta(i)
		m.Namespace, m.Name = "a", fmt.Sprint(scope.AuthorizationPrefix, "ops-", i)
		m.Labels = map[string]string{
			scope.LabelAuthorizationTo: "ops", scope.LabelManagedBy: scope.ManagedByAuthorization,
		}

		return &rbacv1.Role{ObjectMeta: m, Rules: rules([]int{2000, maxGranted - 1000}[min(i, 1)])}
	})

	asked := func(namespace string) *Asked { return &Asked{Namespaces: []string{namespace}} }

	got, more := s.ClusterGrants(scope.NamespaceScopes.In("ops-0"), asked("ops-0"))
	if len(got) != 1 || more < many/2 || more >= many {
		t.Errorf("%d bindings are known of a namespace that one small one is about, and %d more are counted", len(got), more)
	}
}

// gathers lists objects, of which the first is the smallest, and checks what is in memory before the last one is there.
func gathers[R any](t *testing.T, k *sink[R], many, most int, object func(i int) client.Object) {
	t.Helper()

	items, transform := make([]any, 0, many), k.Transformer()

	for i := range many {
		it, err := transform(object(i))
		must(t, err)

		items = append(items, it)
	}

	sum, first := 0, 0

	for i, it := range items {
		weight := k.weigh(it.(*item[R]).record)
		if i == 0 {
			first = weight
		}

		if weight <= most { // Otherwise it is one of which nothing is known.
			sum += weight
		}
	}

	if first <= k.small || sum > most || sum < most/2 {
		t.Errorf("of %T, %d bytes are gathered, and %d of the smallest", object(0), sum, first)
	}

	must(t, k.Replace(items, "2"))
}
