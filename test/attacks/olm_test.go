package attacks_test

import (
	"errors"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// TestDeploymentsThatLookLikeOLM: a tenant makes Deployments that are called as OLM's own are, and an operator keeps nothing for
// that.
func TestDeploymentsThatLookLikeOLM(t *testing.T) {
	w := begin(t, "cluster")
	ops, member, mine := w.Namespace("olm-home"), w.Namespace("member"), w.Namespace("olm")

	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{ops, member}},
	}
	csv := readsSecrets(ops)
	w.Make(group, csv)
	w.May(ops, "op", member, "get secrets")

	user := tenant(w, "mallory-"+mine, mine)

	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: name, Labels: map[string]string{"app": name}}}
		d.Spec = podsOf("default")
		d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = name, name

		if err := user.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}

		w.Eventually(name+" of the tenant runs", func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil || d.Status.ReadyReplicas == 1 {
				return err
			}

			return errMissing
		})
	}

	w.Change(group, func() { group.Spec.TargetNamespaces = []string{ops} })
	w.MayNot(ops, "op", member, "get secrets")
	w.May(ops, "op", ops, "get secrets")
	w.Remove(group)
	w.MayNot(ops, "op", ops, "get secrets")
	w.Eventually("Ambit goes on serving", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
			return err
		}

		if csv.Status.Reason != olm.CSVReasonNoOperatorGroup {
			return errors.New(string(csv.Status.Phase + " " + olm.ClusterServiceVersionPhase(csv.Status.Reason)))
		}

		return nil
	})
}

// readsSecrets is a ClusterServiceVersion whose account may read secrets where its group says.
func readsSecrets(namespace string) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op.v1"}}
	csv.Spec.DisplayName = "Operator"
	csv.Spec.InstallStrategy = olm.NamedInstallStrategy{
		StrategyName: olm.InstallStrategyNameDeployment,
		StrategySpec: olm.StrategyDetailsDeployment{
			Permissions: []olm.StrategyDeploymentPermissions{{
				ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{testbed.Rule("get,list secrets")},
			}},
			DeploymentSpecs: []olm.StrategyDeploymentSpec{{Name: "op", Spec: podsOf("op")}},
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

// podsOf is a Deployment that runs as an account.
func podsOf(account string) appsv1.DeploymentSpec {
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
