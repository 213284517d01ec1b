package faults_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// world is an operator namespace with an operator, a scope, and namespaces that may become members.
type world struct {
	t   *testing.T
	ops string
	// members are namespaces that exist at first.
	members []string
}

const scopeName = "scope"

// newWorld makes a world: so many accounts, with a Deployment each and two Roles each, and n namespaces. There is no scope
// yet.
func newWorld(t *testing.T, name string, accounts, n int) *world {
	t.Helper()
	showLog(t)

	w := &world{t: t, ops: name + "-ops"}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ops}})

	for i := range n {
		w.members = append(w.members, fmt.Sprintf("%s-m%d", name, i))
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.members[i]}})
	}

	for i := range accounts {
		account := fmt.Sprintf("operator-%d", i)
		w.create(&corev1.ServiceAccount{ObjectMeta: w.meta(account)})
		w.grant(account, account+"-a")
		w.grant(account, account+"-b")
		w.create(w.deployment(account))
	}

	for i := range accounts {
		w.rolledOut(fmt.Sprintf("operator-%d", i))
	}

	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ops, Name: name}
}

func (w *world) grant(account, role string) {
	w.create(&rbacv1.Role{ObjectMeta: w.meta(role), Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{role},
	}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: w.meta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ops, Name: account}},
	})
}

func (w *world) deployment(account string) *appsv1.Deployment {
	labels := map[string]string{"name": account, "intent": "projected"}

	return &appsv1.Deployment{ObjectMeta: w.meta(account), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": account}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{
				Name: "operator", Image: "operator",
				Env: []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: "namespace-scope"}, Key: "namespaces",
					},
				}}},
			}}},
		},
	}}
}

// scope makes the scope with its members, or gives it others.
func (w *world) scope(members ...string) {
	w.t.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: w.meta(scopeName)}
	nss.Spec.NamespaceMembers = members

	err := suite.client.Create(w.t.Context(), nss)
	if apierrors.IsAlreadyExists(err) {
		w.edit(nss, func() { nss.Spec.NamespaceMembers = members })

		return
	}

	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()

	if err := suite.client.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// edit changes a live object, whatever else changes it.
func (w *world) edit(obj client.Object, change func()) {
	w.t.Helper()

	if err := testbed.Change(w.t.Context(), suite.client, obj, change); err != nil {
		w.t.Fatalf("changing %T %s: %v", obj, obj.GetName(), err)
	}
}

func (w *world) remove(obj client.Object) {
	w.t.Helper()

	if err := client.IgnoreNotFound(suite.client.Delete(w.t.Context(), obj)); err != nil {
		w.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}

func (w *world) list() string {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: w.ops, Name: "namespace-scope"}

	if err := suite.client.Get(context.Background(), key, cm); err != nil {
		return err.Error()
	}

	return cm.Data["namespaces"]
}
