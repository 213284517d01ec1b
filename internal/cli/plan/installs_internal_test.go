package plan

import (
	"context"
	"reflect"
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

// TestStatus has each field of a status where its kind has it.
func TestStatus(t *testing.T) {
	t.Parallel()

	conditions := []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}}
	read := []Condition{{Type: "Ready", Status: "True"}}

	for kind, tc := range map[string]struct {
		status map[string]any
		want   Install
	}{
		"ClusterServiceVersion": {
			map[string]any{"phase": "Failed", "reason": "R", "message": "M", "conditions": conditions},
			Install{Phase: "Failed", Reason: "R", Message: "M", Refused: true},
		},
		"Subscription": {
			map[string]any{"state": "AtLatestKnown", "installedCSV": "op.v1", "conditions": conditions},
			Install{Phase: "AtLatestKnown", Installed: "op.v1", Conditions: read},
		},
		"OperatorGroup": {
			map[string]any{"namespaces": []any{"a", ""}, "conditions": []any{}}, Install{Targets: []string{"a", ""}},
		},
		"CatalogSource": {map[string]any{"message": int64(1)}, Install{}},
		"InstallPlan":   {nil, Install{}},
	} {
		tc.want.Kind, tc.want.Name = kind, "x"
		u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "x"}}}

		if tc.status != nil {
			u.Object["status"] = tc.status
		}

		if got := Status(u); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", kind, got, tc.want)
		}
	}

	if got := Status(nil); !reflect.DeepEqual(got, Install{}) {
		t.Errorf("one that is not there: %+v", got)
	}
}
