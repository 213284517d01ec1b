package testbed

import (
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// holdsPause is the time between two checks of Holds.
const holdsPause = 50 * time.Millisecond

// Members is the spec of a scope with members and no service account.
func Members(names ...string) operatorv1.NamespaceScopeSpec {
	return operatorv1.NamespaceScopeSpec{NamespaceMembers: names}
}

// DelegatedBy is the spec of a scope with members that names a service account of its namespace.
func DelegatedBy(account string, names ...string) operatorv1.NamespaceScopeSpec {
	spec := Members(names...)
	spec.ServiceAccountName = account

	return spec
}

// Tenant makes a user who is administrator of some namespaces, by the ClusterRole admin of Kubernetes, and may write
// NamespaceScopes there, and returns a client that acts as that user.
func (w *World) Tenant(name string, namespaces ...string) client.Client {
	w.Helper()

	for _, ns := range namespaces {
		for _, role := range []string{"admin", "ambit-edit"} {
			b := Bind(ns, "ClusterRole", role, ns, name)
			b.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
			w.Make(b)
		}
	}

	user := w.As(name)

	for _, ns := range namespaces {
		w.Eventually("the rights of "+name, func() error {
			if err := user.Get(w.Context(), client.ObjectKey{Namespace: ns, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}); err != nil {
				return err //nolint:wrapcheck // The error is reported with what was waited for.
			}

			none := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "there-is-none"}}

			return client.IgnoreNotFound(user.Delete(w.Context(), none))
		})
	}

	return user
}

// Holds checks that nothing comes of what happened, for a while after Ambit has seen it. Ambit has seen it once a later scope of
// the same operator namespace is served in a namespace of its own.
func (w *World) Holds(ops string, check func() error) {
	w.Helper()

	probe, account := w.Namespace("probe"), "probe-"+ops[len(ops)-6:]
	w.Operator(ops, account, "get services")

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "probe"}, Spec: Members(probe)}
	nss.Spec.ConfigmapName = "probe"
	w.Make(nss)
	w.May(ops, account, probe, "get services")

	for range 5 {
		if err := check(); err != nil {
			w.Error(err)

			return
		}

		time.Sleep(holdsPause)
	}
}

// PodsOf is the spec of a Deployment that runs as an account.
func PodsOf(account string) appsv1.DeploymentSpec {
	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": account}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": account}},
			Spec: corev1.PodSpec{
				ServiceAccountName: account, TerminationGracePeriodSeconds: new(int64(0)),
				Containers: []corev1.Container{{Name: "operator", Image: "registry.example.com/operator:1"}},
			},
		},
	}
}

// ReadsSecrets is a ClusterServiceVersion whose account may read secrets where its group says.
func ReadsSecrets(namespace string) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op.v1"}}
	csv.Spec.DisplayName = "Operator"
	csv.Spec.InstallStrategy = olm.NamedInstallStrategy{
		StrategyName: olm.InstallStrategyNameDeployment,
		StrategySpec: olm.StrategyDetailsDeployment{
			Permissions: []olm.StrategyDeploymentPermissions{{
				ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{Rule("get,list secrets")},
			}},
			DeploymentSpecs: []olm.StrategyDeploymentSpec{{Name: "op", Spec: PodsOf("op")}},
		},
	}

	for _, mode := range []olm.InstallModeType{
		olm.InstallModeTypeOwnNamespace, olm.InstallModeTypeSingleNamespace, olm.InstallModeTypeMultiNamespace,
		olm.InstallModeTypeAllNamespaces,
	} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true})
	}

	return csv
}
