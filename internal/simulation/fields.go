package simulation

import (
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordOf is the API server's own record of who wrote what, and its server-side apply. Of the kinds of definitions, every list
// is taken for one value, as the API server does where a schema says nothing else.
func recordOf(gvk schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	var (
		creator = unstructuredscheme.NewUnstructuredCreator()
		manager *managedfields.FieldManager
		err     error
	)

	if clientgoscheme.Scheme.Recognizes(gvk) {
		manager, err = managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), untyped{},
			unstructuredscheme.NewUnstructuredDefaulter(), creator, gvk, gvk.GroupVersion(), "", nil)
	} else {
		manager, err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), untyped{},
			unstructuredscheme.NewUnstructuredDefaulter(), creator, gvk, gvk.GroupVersion(), "", nil)
	}

	if err != nil {
		return nil, fmt.Errorf("keeping the fields of %s: %w", gvk.Kind, err)
	}

	return manager, nil
}

// untyped converts nothing: everything has one version, and its form as JSON.
type untyped struct{}

// Convert is not asked for.
func (untyped) Convert(_, _, _ any) error { return errNotSimulated }

// ConvertToVersion returns the object as it is.
func (untyped) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel is not asked for.
func (untyped) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (outLabel, outValue string, err error) {
	return label, value, nil
}

// note keeps in an object who wrote it, as a request that is no server-side apply.
func note(live, u *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	if manager == "" {
		return u, nil
	}

	f, err := recordOf(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}

	out, _ := f.UpdateNoErrors(live, u, manager).(*unstructured.Unstructured)

	return out, nil
}

// wrote notes in a Role or a binding that somebody wrote it, without saying which fields.
func wrote(obj client.Object, manager string) {
	entries := obj.GetManagedFields()
	if manager == "" || slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
		return
	}

	obj.SetManagedFields(append(slices.Clone(entries), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: rbacv1.SchemeGroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}))
}

// serverSideApply merges what is applied as the API server does.
func serverSideApply(live, applied *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	f, err := recordOf(applied.GroupVersionKind())
	if err != nil {
		return nil, err
	}

	merged, err := f.Apply(live, applied, manager, force)
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", applied.GetKind(), applied.GetName(), err)
	}

	out, _ := merged.(*unstructured.Unstructured)

	return out, nil
}

// stamp gives what a manager wrote since it began the time of the simulation: the record has the one of the machine.
func stamp(u *unstructured.Unstructured, manager string, began, now time.Time) {
	entries, at := u.GetManagedFields(), metav1.NewTime(now)

	for i := range entries {
		if e := &entries[i]; e.Manager == manager && e.Time != nil && !e.Time.Time.Before(began.Truncate(time.Second)) {
			e.Time = &at
		}
	}

	u.SetManagedFields(entries)
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)

	return u
}
