package whocan_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/cli/whocan"
)

func bound(namespace, name string, users ...string) rbacv1.RoleBinding {
	b := rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"},
	}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u})
	}

	return b
}

// cluster serves bindings one on a page, and those of single namespaces alone unless the caller may list all.
func cluster(all bool, bindings ...rbacv1.RoleBinding) client.Client {
	list := func(_ context.Context, _ client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
		var options client.ListOptions
		options.ApplyOptions(o)

		out, is := into.(*rbacv1.RoleBindingList)
		if !all && options.Namespace == "" {
			return apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, "", nil)
		}

		if !is {
			return nil
		}

		of := slices.DeleteFunc(slices.Clone(bindings), func(b rbacv1.RoleBinding) bool {
			return options.Namespace != "" && b.Namespace != options.Namespace
		})

		at, _ := strconv.Atoi(options.Continue) // The first page has no number.
		if at < len(of) {
			out.Items = of[at : at+1]
		}

		if at+1 < len(of) {
			out.Continue = strconv.Itoa(at + 1)
		}

		return nil
	}

	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{List: list})
}

func found(t *testing.T, c client.Client, text, namespace string) (names []string, p *whocan.People) {
	t.Helper()

	p, err := whocan.Find(t.Context(), c, text, namespace)
	if err != nil {
		t.Fatal(err)
	}

	for i := range p.Bound {
		names = append(names, p.Bound[i].Name+" by "+p.Bound[i].Right.Binding.Namespace+"/"+p.Bound[i].Right.Binding.Name)
	}

	return names, p
}

// TestPeopleAreFoundInAllNamespaces: on every page of a list, and no more than anybody reads.
func TestPeopleAreFoundInAllNamespaces(t *testing.T) {
	t.Parallel()

	c := cluster(true, bound("a", "x", "jane"), bound("b", "y", "joe"), bound("c", "z", "joe", "jane"))
	want := []string{"jane by a/x", "jane by c/z"}

	if names, p := found(t, c, "jane", "a"); !slices.Equal(names, want) || p.More || len(p.NotRead) > 0 {
		t.Errorf("%q, %+v", names, p)
	}

	var many []string
	for i := range 400 {
		many = append(many, "user-"+strconv.Itoa(i))
	}

	c = cluster(true, bound("a", "x", many...), bound("b", "y", many...), bound("c", "z", many...))
	if names, p := found(t, c, "user", "a"); len(names) != 500 || !p.More {
		t.Errorf("%d are found, more: %t", len(names), p.More)
	}
}

// TestPeopleOfOneNamespace: a caller who may not list the bindings of all namespaces finds people in their own, and reads that
// there may be others.
func TestPeopleOfOneNamespace(t *testing.T) {
	t.Parallel()

	c := cluster(false, bound("a", "x", "jane"), bound("b", "y", "jane"))

	names, p := found(t, c, "JANE", "b")
	want := []string{"you may not list ClusterRoleBindings", "you may not list RoleBindings of all namespaces"}

	if !slices.Equal(names, []string{"jane by b/y"}) || !slices.Equal(p.NotRead, want) {
		t.Errorf("%q, %q", names, p.NotRead)
	}
}
