package main

import (
	"context"
	"fmt"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// attack is what somebody does in the one namespace that they administer.
type attack struct {
	name  string
	mount func(ctx context.Context, c client.Client, namespace string, others []string) error
}

func attacks() []attack {
	return []attack{
		{"1,500 Roles and RoleBindings with IBM's labels", forgeIBM},
		{"400 Roles with made-up owners", forgeOwners},
		{"a catalog with YAML aliases", bombCatalog},
		{"300 ClusterServiceVersions", manyCSVs},
		{"500 Roles in 120 namespaces that grant none", askForAll},
		{"16 scopes and 12 OperatorGroups as large as can be", largeDeclarations},
		{"6 Subscriptions, InstallPlans and CatalogSources of a megabyte", largeSubscriptions},
		{"32 Deployments of a megabyte beside an OperatorGroup", largeDeployments},
	}
}

func forgeIBM(ctx context.Context, c client.Client, namespace string, _ []string) error {
	var objects []client.Object

	for i := range 1500 {
		described := metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("stem%d-0123456789abcd", i), Labels: map[string]string{
				"namespace-scope-configmap": listName + "-" + operatorNamespace, "app.kubernetes.io/name": listName,
				scope.LabelManagedBy: "ibm-namespace-scope-operator", "app.kubernetes.io/instance": "namespace-scope",
			},
		}
		objects = append(objects, &rbacv1.Role{ObjectMeta: described},
			bind(&described, "Role", described.Name, operatorNamespace, fmt.Sprintf("made-up-%d", i)))
	}

	return makeMany(ctx, c, objects)
}

func forgeOwners(ctx context.Context, c client.Client, namespace string, _ []string) error {
	var objects []client.Object

	for i := range 400 {
		kind := []string{"NamespaceScope", "ClusterServiceVersion"}[i%2]
		objects = append(objects, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("forged-%d", i),
			Annotations: map[string]string{scope.AnnotationOwner: fmt.Sprintf("%s/made-up-%d/owner", kind, i)},
		}})
	}

	return makeMany(ctx, c, objects)
}

// bombCatalog makes a catalog of half a kilobyte, each line of which stands for nine of the one before it.
func bombCatalog(ctx context.Context, c client.Client, namespace string, _ []string) error {
	var bomb strings.Builder

	bomb.WriteString("- metadata: {name: bomb.v1.0.0}\n  a0: &a0 [" + strings.Repeat("x,", 8) + "x]\n")

	for i := range 8 {
		alias := fmt.Sprintf("*a%d,", i)
		fmt.Fprintf(&bomb, "  a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(alias, 9), ","))
	}

	return makeMany(ctx, c, []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bomb"}, Data: map[string]string{
			"clusterServiceVersions": bomb.String(), "customResourceDefinitions": "[]",
			"packages": "- packageName: bomb\n  defaultChannel: stable\n  channels: [{name: stable, currentCSV: bomb.v1.0.0}]\n",
		}},
		&olm.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bomb"}, Spec: olm.CatalogSourceSpec{
			SourceType: olm.SourceTypeConfigmap, ConfigMap: "bomb",
		}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bomb"}},
		&olm.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bomb"}, Spec: &olm.SubscriptionSpec{
			CatalogSource: "bomb", CatalogSourceNamespace: namespace, Package: "bomb", Channel: "stable",
		}},
	})
}

func manyCSVs(ctx context.Context, c client.Client, namespace string, _ []string) error {
	objects := []client.Object{&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "many"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}}

	for i := range 300 {
		csv := newCSV(i)
		csv.Namespace, csv.Spec.Replaces = namespace, fmt.Sprintf("installed-%d.v1.0.0", i+1)
		objects = append(objects, csv)
	}

	return makeMany(ctx, c, objects)
}

func askForAll(ctx context.Context, c client.Client, namespace string, others []string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "delegate"}}
	objects := []client.Object{account}

	for i := range 500 {
		described := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("role-%d", i)}
		objects = append(objects, &rbacv1.Role{ObjectMeta: described, Rules: sourceRules("")},
			bind(&described, "Role", described.Name, namespace, account.Name))
	}

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	nss.Spec.NamespaceMembers, nss.Spec.ServiceAccountName = others, account.Name
	nss.Spec.ServiceAccountMembers = []string{account.Name}

	return makeMany(ctx, c, append(objects, nss))
}
