package faults_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/grant"
)

// TestFirstCopyGoesWithAnAuthorizationThatNoWatchShowed: the API server lets an account write as soon as it knows of an
// authorization, and its watch may show it to Ambit later. What was written in between would stay for good if Ambit ended there,
// and the authorization were taken back before it came again.
func TestFirstCopyGoesWithAnAuthorizationThatNoWatchShowed(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	p, m := newProxy(t)
	w := newWorld(t, "untold", 1, 1)
	w.eventually("the manager works", func() bool { return m.Works("namespacescope") == nil })

	member := w.members[0]
	nss := &operatorv1.NamespaceScope{ObjectMeta: w.meta(scopeName)}
	nss.Spec.NamespaceMembers, nss.Spec.ServiceAccountName = w.members, "operator-0"
	w.create(nss)
	w.eventually("the account may not write yet", func() bool {
		err := suite.client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss)

		return err == nil && len(nss.Status.FailedMembers) > 0
	})

	p.ignore("rolebindings")

	g := grant.Grant{Namespace: member, To: w.ops, Account: "operator-0", Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
	}}}
	role, authorization := g.Role(), g.RoleBinding()
	w.create(role)
	authorization.OwnerReferences = grant.GoesWith(role)
	w.create(authorization)

	copies := &rbacv1.RoleList{}

	w.eventually("a copy", func() bool {
		w.edit(nss, func() { nss.Labels = map[string]string{"look": "again-" + rand.String(5)} })

		err := suite.client.List(t.Context(), copies, client.InNamespace(member), client.HasLabels{"ambit.dev/scope"})

		return err == nil && len(copies.Items) > 0
	})

	for i := range copies.Items {
		refs := copies.Items[i].OwnerReferences
		if len(refs) != 1 || refs[0].UID != authorization.UID {
			t.Errorf("Role %s does not go with the authorization: its owners are %v", copies.Items[i].Name, refs)
		}
	}

	p.ignore("")
	p.expire()
	w.remove(nss)
	w.eventually("the copies go", func() bool { return w.bound(t, "operator-0-a") == 0 })
}
