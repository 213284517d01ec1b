package profiles_test

import (
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// usesInstalls has operators installed, upgraded and taken away: by an account that is refused first and then let, and then by
// Ambit itself, or by an account where Ambit may not.
func usesInstalls(t *testing.T, bed *testbed.Bed, profile string) {
	t.Helper()

	healsAnInstall(t, bed)

	account := ""
	if profile == "delegated" {
		account = "installer"
	}

	in := newSubscribed(t, bed, "direct", account)
	in.letInstall(t)
	in.offer(t, "kettle.v1", "", "v1")
	in.succeeds(t, "kettle.v1")
	// A newer version owns the account, too, and its definition has one version more.
	in.offer(t, "kettle.v2", "kettle.v1", "v1", "v2")
	in.succeeds(t, "kettle.v2")
	in.goes(t, &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "kettle.v1"}})
	in.comesIntoConflict(t)

	if profile == "cluster" {
		runsIntoOthers(t, bed)
	}
}

// healsAnInstall has an account install what it may not yet.
func healsAnInstall(t *testing.T, bed *testbed.Bed) {
	t.Helper()

	in := newSubscribed(t, bed, "scoped", "installer")
	in.offer(t, "kettle.v1", "", "v1")

	list := &olm.InstallPlanList{}

	within(t, "the InstallPlan is refused", func() bool {
		err := bed.Client.List(t.Context(), list, client.InNamespace(in.namespace))

		return err == nil && len(list.Items) == 1 && list.Items[0].Status.Phase == olm.InstallPlanPhaseFailed
	})

	in.letInstall(t)
	in.succeeds(t, "kettle.v1")
	in.ends(t)
}

// subscribed is a namespace with a group, a catalog and a Subscription. What is installed is written as the account, if there is
// one.
type subscribed struct {
	*testbed.Bed

	namespace, group, account string
}

// letInstall lets the account do everything.
func (in *subscribed) letInstall(t *testing.T) {
	t.Helper()

	if in.account == "" {
		return
	}

	provide(t, in.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "installer-" + in.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in.namespace, Name: in.account}},
	})
}

func newSubscribed(t *testing.T, bed *testbed.Bed, namespace, account string) *subscribed {
	t.Helper()

	in := &subscribed{Bed: bed, namespace: "installs-" + namespace, group: namespace + ".example.com", account: account}
	provide(t, bed.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.namespace}})

	if account != "" {
		provide(t, bed.Client, testbed.Account(in.namespace, account))
	}

	provide(t, bed.Client, in.operatorGroup(),
		&olm.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "catalog"},
			Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeInternal, ConfigMap: "catalog"},
		},
		&olm.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "kettle"},
			Spec: &olm.SubscriptionSpec{
				Package: "kettle", Channel: "stable", CatalogSource: "catalog", CatalogSourceNamespace: in.namespace,
			},
		})

	return in
}

func (in *subscribed) operatorGroup() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{ServiceAccountName: in.account, TargetNamespaces: []string{in.namespace}},
	}
}

// offer puts a version into the catalog, and its definition.
func (in *subscribed) offer(t *testing.T, name, replaces string, versions ...string) {
	t.Helper()

	content := map[string]string{
		"packages":                  "- {packageName: kettle, channels: [{name: stable, currentCSV: " + name + "}]}",
		"clusterServiceVersions":    in.yaml(t, in.csv(name, replaces, 1)),
		"customResourceDefinitions": in.yaml(t, in.crd("kettle", versions...)),
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "catalog"}}
	err := in.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)
	cm.Data = content

	if apierrors.IsNotFound(err) {
		err = in.Client.Create(t.Context(), cm)
	} else if err == nil {
		err = in.Client.Update(t.Context(), cm)
	}

	if err != nil {
		t.Fatal(err)
	}
}

func (in *subscribed) yaml(t *testing.T, objects ...any) string {
	t.Helper()

	text, err := yaml.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// csv is an operator with some accounts.
func (in *subscribed) csv(name, replaces string, accounts int) *olm.ClusterServiceVersion {
	c := &olm.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: olm.SchemeGroupVersion.String(), Kind: olm.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name},
	}
	labels := map[string]string{"name": "kettle"}
	c.Spec.Replaces, c.Spec.DisplayName = replaces, "Kettle"
	c.Spec.InstallModes = []olm.InstallMode{
		{Type: olm.InstallModeTypeOwnNamespace, Supported: true}, {Type: olm.InstallModeTypeSingleNamespace, Supported: true},
	}
	c.Spec.CustomResourceDefinitions.Owned = []olm.CRDDescription{{Name: "kettles." + in.group, Version: "v1", Kind: "Kettle"}}
	c.Spec.InstallStrategy.StrategyName = olm.InstallStrategyNameDeployment
	strategy := &c.Spec.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs = []olm.StrategyDeploymentSpec{{Name: "kettle", Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: name}}},
		},
	}}}

	strategy.ClusterPermissions = []olm.StrategyDeploymentPermissions{{
		ServiceAccountName: "kettle-00", Rules: []rbacv1.PolicyRule{testbed.Rule("get nodes")},
	}}

	for i := range accounts {
		strategy.Permissions = append(strategy.Permissions, olm.StrategyDeploymentPermissions{
			ServiceAccountName: fmt.Sprintf("kettle-%02d", i), Rules: []rbacv1.PolicyRule{testbed.Rule("get pods")},
		})
	}

	return c
}

func (in *subscribed) crd(name string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	keep := true
	kind := strings.ToUpper(name[:1]) + name[1:]
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name + "s." + in.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: in.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: name + "s", Singular: name, Kind: kind, ListKind: kind + "List"},
		},
	}

	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
			},
		})
	}

	return crd
}

func (in *subscribed) succeeds(t *testing.T, name string) {
	t.Helper()

	c := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name}}

	within(t, name+" succeeds", func() bool {
		return in.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c) == nil && c.Status.Phase == olm.CSVPhaseSucceeded
	})
}

func (in *subscribed) goes(t *testing.T, obj client.Object) {
	t.Helper()

	within(t, obj.GetName()+" goes", func() bool {
		return apierrors.IsNotFound(in.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	})
}

// comesIntoConflict has another group, which is told what its operators provide, get one that provides something else.
func (in *subscribed) comesIntoConflict(t *testing.T) {
	t.Helper()

	other := &subscribed{Bed: in.Bed, namespace: "installs-conflict", group: in.group, account: in.account}
	group := other.operatorGroup()
	group.Spec.TargetNamespaces = []string{"older-server"}

	provide(t, in.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}})

	if other.account != "" {
		provide(t, in.Client, testbed.Account(other.namespace, other.account))
	}

	other.letInstall(t)
	provide(t, in.Client, group)
	provide(t, in.Client, other.csv("kettle.v3", "", 1))
	other.succeeds(t, "kettle.v3")

	if err := in.Client.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
		t.Fatal(err)
	}

	patch := []byte(`{"metadata":{"annotations":{"olm.providedAPIs":"Other.v1.example.com"}},"spec":{"staticProvidedAPIs":true}}`)
	if err := in.Client.Patch(t.Context(), group, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}

	other.goes(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: other.namespace, Name: "kettle"}})
	other.ends(t)
	in.ends(t)
}

// ends takes everything away, so that the suite finds nothing of it.
func (in *subscribed) ends(t *testing.T) {
	t.Helper()

	here := client.InNamespace(in.namespace)

	for _, obj := range []client.Object{
		&olm.Subscription{}, &olm.InstallPlan{}, &olm.CatalogSource{}, &olm.ClusterServiceVersion{}, &operatorsv1.OperatorGroup{},
	} {
		if err := in.Client.DeleteAllOf(t.Context(), obj, here); err != nil {
			t.Fatal(err)
		}
	}

	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := in.Client.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}

	for i := range crds.Items {
		if crd := &crds.Items[i]; crd.Spec.Group == in.group {
			if err := client.IgnoreNotFound(in.Client.Delete(t.Context(), crd)); err != nil {
				t.Fatal(err)
			}
		}
	}

	// The garbage collector hears of a new kind half a minute after it came.
	err := testbed.Until(testbed.Patience, func() error {
		if left := in.made(t); len(left) > 0 {
			return fmt.Errorf("left are %q", left)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// made are the Roles and RoleBindings that Ambit made in the namespace.
func (in *subscribed) made(t *testing.T) []string {
	t.Helper()

	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}

	for _, list := range []client.ObjectList{roles, bindings} {
		if err := in.Client.List(t.Context(), list, client.InNamespace(in.namespace),
			client.MatchingLabels{"app.kubernetes.io/managed-by": "ambit"}); err != nil {
			t.Fatal(err)
		}
	}

	names := make([]string, 0, len(roles.Items)+len(bindings.Items))
	for i := range roles.Items {
		names = append(names, "Role "+roles.Items[i].Name)
	}

	for i := range bindings.Items {
		names = append(names, "RoleBinding "+bindings.Items[i].Name)
	}

	return names
}
