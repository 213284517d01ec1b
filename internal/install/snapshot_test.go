package install

import (
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// midnight is when everything in these tests was made.
var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	ownNamespace = "ops"
	widgets      = "widgets.example.com"
)

// member is a CSV of the namespace ops that supports everything and owns widgets, whose definition is there.
func member(name string, edits ...func(*olm.ClusterServiceVersion)) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ownNamespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(midnight),
		},
		Spec: olm.ClusterServiceVersionSpec{
			InstallModes: []olm.InstallMode{
				{Type: olm.InstallModeTypeOwnNamespace, Supported: true}, {Type: olm.InstallModeTypeSingleNamespace, Supported: true},
				{Type: olm.InstallModeTypeMultiNamespace, Supported: true}, {Type: olm.InstallModeTypeAllNamespaces, Supported: true},
			},
			CustomResourceDefinitions: olm.CustomResourceDefinitions{
				Owned: []olm.CRDDescription{{Name: widgets, Version: "v1", Kind: "Widget"}},
			},
			InstallStrategy: olm.NamedInstallStrategy{
				StrategyName: olm.InstallStrategyNameDeployment,
				StrategySpec: olm.StrategyDetailsDeployment{
					Permissions: []olm.StrategyDeploymentPermissions{{ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{
						{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
					}}},
					DeploymentSpecs: []olm.StrategyDeploymentSpec{{Name: "op", Spec: appsv1.DeploymentSpec{
						Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "op"}},
						Template: corev1.PodTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "op"}},
							Spec: corev1.PodSpec{
								ServiceAccountName: "op", Containers: []corev1.Container{{Name: "operator", Image: "example.com/op:1"}},
							},
						},
					}}},
				},
			},
		},
	}

	for _, edit := range edits {
		edit(csv)
	}

	return csv
}

func supporting(modes ...olm.InstallModeType) func(*olm.ClusterServiceVersion) {
	return func(csv *olm.ClusterServiceVersion) {
		csv.Spec.InstallModes = nil
		for _, mode := range modes {
			csv.Spec.InstallModes = append(csv.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true})
		}
	}
}

// one is the group of ops, with these targets.
func one(targets ...string) (*Group, *TargetedGroup) {
	g := &Group{Namespace: ownNamespace, Name: "group", UID: "uid-group", Created: midnight}

	return g, &TargetedGroup{Group: g, Targets: targets}
}

// snapshotOf is a namespace with one group and what members need.
func snapshotOf(targets []string, csvs ...*olm.ClusterServiceVersion) *Snapshot {
	g, targeted := one(targets...)

	return &Snapshot{
		Namespace: ownNamespace, Groups: []*Group{g}, Group: targeted, CSVs: csvs,
		CRDs:       map[string]CRD{widgets: {UID: "uid-widgets", Served: []string{"v1"}}},
		Serves:     func(group, _, _ string) bool { return group == "served.example.com" },
		Kubernetes: "v1.36.2",
		Installed:  facts.Installed{Accounts: map[string]facts.Account{}, Deployments: map[string]*appsv1.Deployment{}},
	}
}

// running puts a Deployment of a CSV into the world, in which this many replicas are available.
func (w *Snapshot) running(csv *olm.ClusterServiceVersion, replicas int32) *appsv1.Deployment {
	d := (&Snapshot{}).deployment(csv, &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0], csv.Annotations)
	d.UID = types.UID("uid-of-" + d.Name)
	d.Status.UpdatedReplicas, d.Status.AvailableReplicas = replicas, replicas
	w.Deployments[d.Name] = d

	return d
}
