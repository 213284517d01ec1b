package plan

import (
	"context"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// refusing is a cluster of which nothing may be listed.
type refusing struct{ client.Client }

func (refusing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(rbacv1.Resource("x"), "", nil)
}

// TestInstallsThatMayNotBeListed: where a file is about a Role, what is installed there may get other permissions. Whoever may
// not list what is installed is told so.
func TestInstallsThatMayNotBeListed(t *testing.T) {
	t.Parallel()

	v := &reading.Cluster{Reader: snapshot.New(refusing{})}
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"namespace": "ops", "name": "r"},
	}}

	proposals := []*proposal{{Document: files.Document{Unstructured: role}, object: &rbacv1.Role{}}}

	namespaces, err := installNamespaces(t.Context(), v, proposals)
	if err != nil || len(namespaces) > 0 {
		t.Fatalf("%q, %v", namespaces, err)
	}

	want := []string{
		"you may not list operatorgroups in the whole cluster", "you may not list clusterserviceversions in namespace ops",
	}
	if got := v.NotRead(); !slices.Equal(got, want) {
		t.Errorf("not read is %q, want %q", got, want)
	}

	// The scopes of the namespace are planned all the same.
	if why := reading.Unread(v.Denied(), "ops", ""); why != "" {
		t.Errorf("its scopes are not planned: %s", why)
	}
}
