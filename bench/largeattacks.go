package main

import (
	"context"
	"fmt"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// largeMeta is metadata with an annotation about as long as they may be.
func largeMeta(namespace string, number int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("large-%03d", number),
		Annotations: map[string]string{"note": strings.Repeat("n", 240_000)},
	}
}

// madeUp are n names of namespaces that are not there.
func madeUp(number, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%03d-%05d", strings.Repeat("m", 45), number, i)
	}

	return out
}

// largeDeclarations makes scopes and OperatorGroups about as large as objects can be.
func largeDeclarations(ctx context.Context, c client.Client, namespace string, _ []string) error {
	var objects []client.Object

	for i := range 16 {
		nss := &operatorv1.NamespaceScope{ObjectMeta: largeMeta(namespace, i)}
		nss.Spec.NamespaceMembers = madeUp(i, 12_000)
		objects = append(objects, nss)
	}

	for i := range 12 {
		objects = append(objects, &operatorsv1.OperatorGroup{
			ObjectMeta: largeMeta(namespace, i), Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: madeUp(i, 8_000)},
		})
	}

	return makeMany(ctx, c, objects)
}

// largeSubscriptions makes what OLM installs by, a megabyte each.
func largeSubscriptions(ctx context.Context, c client.Client, namespace string, _ []string) error {
	objects := []client.Object{&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}}
	env := make([]corev1.EnvVar, 10_000)

	for i := range env {
		env[i] = corev1.EnvVar{Name: fmt.Sprintf("V%05d", i), Value: strings.Repeat("v", 50)}
	}

	for i := range 6 {
		source := &olm.CatalogSource{ObjectMeta: largeMeta(namespace, i), Spec: olm.CatalogSourceSpec{
			SourceType: olm.SourceTypeConfigmap, ConfigMap: "none", Description: strings.Repeat("d", 900_000),
		}}
		subscription := &olm.Subscription{ObjectMeta: largeMeta(namespace, i), Spec: &olm.SubscriptionSpec{
			CatalogSource: source.Name, CatalogSourceNamespace: namespace, Package: source.Name, Channel: "stable",
			Config: &olm.SubscriptionConfig{Env: env},
		}}
		installPlan := &olm.InstallPlan{ObjectMeta: largeMeta(namespace, i), Spec: olm.InstallPlanSpec{
			Approval: olm.ApprovalManual, ClusterServiceVersionNames: madeUp(i, 12_000),
		}}
		objects = append(objects, source, subscription, installPlan)
	}

	return makeMany(ctx, c, objects)
}

// largeDeployments makes Deployments beside an OperatorGroup, a megabyte each, that are recorded as Ambit's work.
func largeDeployments(ctx context.Context, c client.Client, namespace string, _ []string) error {
	objects := []client.Object{&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}}
	labels := map[string]string{"name": "large"}

	for i := range 32 {
		objects = append(objects, &appsv1.Deployment{ObjectMeta: largeMeta(namespace, i), Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "large", Image: "example.com/large", Env: []corev1.EnvVar{{
						Name: "LARGE", Value: strings.Repeat("v", 1_000_000),
					}},
				}},
			}},
		}})
	}

	return makeMany(ctx, client.WithFieldOwner(c, "ambit"), objects)
}
