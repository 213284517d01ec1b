package guard_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

var groups = operatorsv1.GroupVersion.WithResource("operatorgroups")

// group makes an OperatorGroup of a version.
func group(version, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: olmGroup, Version: version, Kind: "OperatorGroup"})
	u.SetName(name)

	if spec != nil {
		u.Object["spec"] = spec
	}

	return u
}

// TestWhoMayWriteGroups: who may decide where operators work, and with whose rights they are installed.
func TestWhoMayWriteGroups(t *testing.T) {
	h := begin(t)
	h.untilGroupsAreGuarded()

	for name, spec := range map[string]map[string]any{own: {}, delegated: {account: writer}} {
		spec["targetNamespaces"] = []any{"team-a"}
		if _, err := h.as(nil, groups).Apply(t.Context(), name, group("v1", name, spec),
			metav1.ApplyOptions{FieldManager: tool}); err != nil {
			t.Fatal(err)
		}
	}

	for name, p := range tenants(h) {
		t.Run(name, func(t *testing.T) {
			room := *h
			room.T = t

			if p.who != nil {
				room.welcome(p.who)
			}

			room.regroup(&p)
		})
	}
}

// untilGroupsAreGuarded waits until both policies refuse somebody who may do no more than write groups.
func (h *house) untilGroupsAreGuarded() {
	h.Helper()

	nobody := h.welcome(h.user("group-nobody", h.here(rule(olmGroup, groups.Resource, "*"))))

	h.untilRefused(ownGroups, nobody, groups, group("v1", "probe", map[string]any{}))
	h.untilRefused(delegateGroups, nobody, groups, group("v1", "probe", map[string]any{account: writer}))
}

// regroup lets somebody write groups in every way.
func (h *house) regroup(p *tenant) {
	h.Helper()

	create := func(version string, spec map[string]any) error {
		of := schema.GroupVersionResource{Group: olmGroup, Version: version, Resource: groups.Resource}
		_, err := h.as(p.who, of).Create(h.Context(), group(version, fresh, spec), metav1.CreateOptions{DryRun: dryRun})

		return err
	}
	merge := func(name, body string, subresources ...string) error {
		_, err := h.as(p.who, groups).Patch(h.Context(), name, types.MergePatchType, []byte(body),
			metav1.PatchOptions{DryRun: dryRun}, subresources...)

		return err
	}

	asOwn := map[string]error{
		"EmptyAccount":  create("v1", map[string]any{account: ""}),
		"MoveTheOthers": merge(own, `{"spec":{"targetNamespaces":["kube-system"]}}`),
		"SelectAll":     merge(own, `{"spec":{"targetNamespaces":null}}`),
		"AccountAway":   merge(delegated, `{"spec":{"serviceAccountName":null}}`),
		"SpecAway":      merge(delegated, `{"spec":null}`),
	}
	asWriter := map[string]error{"Move": merge(delegated, `{"spec":{"targetNamespaces":["kube-system"]}}`)}

	for _, version := range []string{"v1", "v1alpha2", "v1alpha1"} {
		asOwn["CreateAs"+version] = create(version, map[string]any{"targetNamespaces": []any{"team-a"}})
		asOwn["CreateEmptyAs"+version] = create(version, nil)
		asWriter["CreateAs"+version] = create(version, map[string]any{account: writer})
	}

	both := map[string]error{"AccountFromNowOn": merge(own, `{"spec":{"serviceAccountName":"writer"}}`)}
	free := map[string]error{
		"Label":    merge(own, `{"metadata":{"labels":{"team":"a"}}}`),
		"Annotate": merge(own, `{"metadata":{"annotations":{"olm.providedAPIs":"A.v1.b"}}}`),
		"Hold":     merge(delegated, `{"metadata":{"finalizers":["guard.test/hold"]}}`),
		"Status":   merge(own, `{"status":{"namespaces":["team-a"]}}`, "status"),
		"Delete":   h.as(p.who, groups).Delete(h.Context(), own, metav1.DeleteOptions{DryRun: dryRun}),
	}

	h.expect(p, "as Ambit", asOwn, p.escalates, ownGroups)
	h.expect(p, "as writer", asWriter, p.usesWriter, delegateGroups)
	h.expect(p, "as both", both, p.escalates && p.usesWriter, ownGroups, delegateGroups)
	h.expect(p, "of no account", free, true)
}

func (h *house) expect(p *tenant, kind string, got map[string]error, may bool, policies ...string) {
	h.Helper()

	for what, err := range got {
		switch {
		case may && err != nil:
			h.Errorf("%s\n%s %s: want: allowed, got: %v", p.reason, what, kind, err)
		case !may && (!apierrors.IsForbidden(err) || !slices.Contains(policies, refusedBy(err))):
			h.Errorf("%s\n%s %s: want: refused by %v, got: %v", p.reason, what, kind, policies, err)
		}
	}
}
