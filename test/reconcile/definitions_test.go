package reconcile_test

import (
	"errors"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// apiGroup is that of the kinds that a case defines, in short.
const apiGroup = "g>.example.com"

func definitionOf(group, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
}

// definition makes the definition of a kind, by its plural, and waits until it is established.
func (w *world) definition(plural, kind string) string {
	w.Helper()

	crd := definitionOf(w.long(apiGroup), plural, kind)
	w.Make(crd)
	w.definitions = append(w.definitions, crd.Name)

	if err := until(w.Context(), func() bool {
		return w.client.Get(w.Context(), client.ObjectKeyFromObject(crd), crd) == nil && slices.ContainsFunc(crd.Status.Conditions,
			func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
	}); err != nil {
		w.Fatalf("%s is not established: %v", crd.Name, err)
	}

	return crd.Name
}

// owning adds a definition that the operator brings, which is called as that of a case is.
func (w *world) owning(plural, kind string) func(*olmv1alpha1.ClusterServiceVersion) {
	return func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, olmv1alpha1.CRDDescription{
			Name: plural + "." + w.long(apiGroup), Version: "v1", Kind: kind,
		})
	}
}

// catchUpDefinitions waits until the cache holds the definitions of the case as they are, and the store the ClusterRoles that
// are called after them, whoever wrote them.
func (w *world) catchUpDefinitions() {
	w.Helper()

	for _, name := range w.definitions {
		live, cached := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}

		gone := w.client.Get(w.Context(), client.ObjectKey{Name: name}, live)
		if client.IgnoreNotFound(gone) != nil {
			w.Fatal(gone)
		}

		if err := until(w.Context(), func() bool {
			err := w.groups.Client.Get(w.Context(), client.ObjectKey{Name: name}, cached)

			return gone != nil && apierrors.IsNotFound(err) || gone == nil && err == nil && isAsNew(cached, live)
		}); err != nil {
			w.Fatalf("the cache holds %s as %s: %v", name, cached.ResourceVersion, errors.Join(gone, err))
		}
	}

	if len(w.definitions) == 0 {
		return
	}

	for _, live := range w.userRoles() {
		if err := until(w.Context(), func() bool {
			return w.groups.Store.Version(&live) >= scope.ParseVersion(live.ResourceVersion)
		}); err != nil {
			w.Fatalf("the store does not know ClusterRole %s: %v", live.Name, err)
		}
	}
}

func isAsNew(a, b client.Object) bool {
	return scope.ParseVersion(a.GetResourceVersion()) >= scope.ParseVersion(b.GetResourceVersion())
}

// userRoles are the ClusterRoles that are called after the definitions of the case.
func (w *world) userRoles() []rbacv1.ClusterRole {
	w.Helper()

	var all rbacv1.ClusterRoleList
	if err := w.client.List(w.Context(), &all); err != nil {
		w.Fatal(err)
	}

	return slices.DeleteFunc(all.Items, func(r rbacv1.ClusterRole) bool {
		return !strings.Contains(r.Name, "."+w.long(apiGroup)+"-")
	})
}
