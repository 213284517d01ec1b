package attacks_test

import (
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestEmptiedUserRoleIsNotCaptured: somebody who may create and change ClusterRoles and their bindings, with the rights
// that they hold and no others, as an account that installs operators may, takes the rules from the ClusterRole by which
// users get access to an API, binds it, and waits for Ambit to put the rules back.
func TestEmptiedUserRoleIsNotCaptured(t *testing.T) {
	w := begin(t, "cluster")
	ops := w.Namespace("home")
	crd := vaults(ops + ".example.com")

	csv := testbed.ReadsSecrets(ops)
	csv.Spec.CustomResourceDefinitions.Owned = []olm.CRDDescription{{Name: crd.Name, Version: "v1", Kind: "Vault"}}

	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{ops}},
	}
	w.Make(crd, group, csv)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: crd.Name + "-v1-admin"}}
	w.Eventually("the ClusterRole for users", func() error {
		return w.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role)
	})

	name := "mallory-" + ops
	user := w.As(name)
	mine := testbed.ClusterRole(name, "get,create,patch clusterroles")
	mine.Rules[0].Resources = append(mine.Rules[0].Resources, "clusterrolebindings")
	w.Make(mine, bindTo(name, name))
	w.Eventually("the rights of "+name, func() error {
		return user.Get(t.Context(), client.ObjectKeyFromObject(role), role)
	})
	refused(w, "a binding of what is not held", user.Create(t.Context(), bindTo(role.Name, name)))

	w.Eventually("the emptied ClusterRole is bound", func() error {
		empty := client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`))
		if err := user.Patch(t.Context(), role.DeepCopy(), empty); err != nil {
			return err
		}

		return user.Create(t.Context(), bindTo(role.Name, name))
	})
	w.Eventually("Ambit says what became of it", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}

		told := meta.FindStatusCondition(group.Status.Conditions, "UserRolesProvided")
		if told == nil || !strings.Contains(told.Message, role.Name) {
			return fmt.Errorf("%w: %v", errMissing, group.Status.Conditions)
		}

		return nil
	})

	vault := &unstructured.Unstructured{}
	vault.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: "Vault"})
	w.Holds(ops, func() error {
		return forbidden(user.Get(t.Context(), client.ObjectKey{Namespace: ops, Name: "vault"}, vault))
	})
}

// bindTo binds a ClusterRole to a user in the whole cluster.
func bindTo(role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
}

// vaults is a definition of an API group.
func vaults(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "vaults." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "vaults", Singular: "vault", Kind: "Vault", ListKind: "VaultList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}
