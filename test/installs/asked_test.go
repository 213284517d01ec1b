package installs_test

import (
	"errors"
	"fmt"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var errNot = errors.New("it may not")

// grantedAsAsked installs a CSV as an account that is first granted nothing, and then exactly what it is said to lack. It is
// enough, at once.
func (w *world) grantedAsAsked(published *olm.ClusterServiceVersion, targets ...string) {
	w.Helper()

	own := w.Namespace("asked")
	if len(targets) == 0 {
		targets = []string{own}
	}

	g := w.scoped(own, targets...)
	c := published.DeepCopy()
	c.Namespace = own
	w.Make(c)
	w.becomes(c, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not")

	for i, place := range install.Needs(c, own, targets) {
		w.give(own, fmt.Sprintf("asked-%d-%s", i, own), place)
	}

	w.succeeds(c)
	w.Remove(c)
	w.Remove(g)
}

// makesGroupRoles lets the account of a group make and delete the ClusterRoles of the group, where a test is about something
// else: what is refused is asked for again each time that permissions change anywhere.
func (w *world) makesGroupRoles(own string) {
	w.Helper()
	w.give(own, "people-"+own, authority.Place{Rules: []rbacv1.PolicyRule{testbed.Rule("create,delete clusterroles")}})
}

// give grants the account of a group what is missing in a place.
func (w *world) give(own, name string, place authority.Place) {
	w.Helper()

	rules := append(append([]rbacv1.PolicyRule{}, place.Rules...), place.Handed...)
	if place.Namespace != "" {
		w.grant(own, place.Namespace, name, rules...)

		return
	}

	role := testbed.ClusterRole(name)
	role.Rules = rules
	w.Make(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: "scoped"}},
	})
}
