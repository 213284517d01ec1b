package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// AccountsToWrite are the service accounts of the CSVs that have to be made, or whose owners or label have to be corrected. One
// that somebody else made is used as it is. An account of several CSVs goes with the last of them.
func (w *Snapshot) AccountsToWrite(csvs []*olm.ClusterServiceVersion) []*unstructured.Unstructured {
	owners := map[string][]metav1.OwnerReference{}

	for _, csv := range csvs {
		for _, name := range ownAccounts(csv) {
			owners[name] = append(owners[name], ownerOf(csv))
		}
	}

	var out []*unstructured.Unstructured

	for name, refs := range owners {
		live, exists := w.Accounts[name]
		if exists && (!live.Made || live.Labelled && haveAll(live.Owners, refs)) {
			continue
		}

		slices.SortFunc(refs, func(a, b metav1.OwnerReference) int { return cmp.Compare(a.Name, b.Name) })

		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind("ServiceAccount")
		obj.SetNamespace(w.Namespace)
		obj.SetName(name)
		obj.SetUID(types.UID(live.UID))
		obj.SetLabels(map[string]string{scope.LabelManagedBy: scope.ManagedBy})
		// Whoever takes away both the label and the owners leaves the API server's record that Ambit wrote this.
		obj.SetAnnotations(map[string]string{scope.AnnotationCreated: "true"})
		obj.SetOwnerReferences(refs)

		out = append(out, obj)
	}

	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })

	return out
}

func haveAll(uids string, refs []metav1.OwnerReference) bool {
	have := strings.Split(uids, ",")

	return !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return !slices.Contains(have, string(r.UID)) })
}

// ClashError says that somebody else's object has the name that one of an install should have.
type ClashError struct{ Kind, Name string }

// Error says what to do.
func (e *ClashError) Error() string {
	return e.Kind + " " + e.Name + " exists that Ambit did not make; rename or delete it"
}

// DeploymentsToWrite are the Deployments of a CSV that are not as they should be. annotations are those that the CSV has.
func (w *Snapshot) DeploymentsToWrite(
	csv *olm.ClusterServiceVersion, annotations map[string]string,
) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for _, want := range w.deployments(csv, annotations) {
		live, exists := w.Deployments[want.Name]

		switch {
		case exists && live == nil:
			return nil, &ClashError{Kind: want.Kind, Name: want.Name}
		case exists && isAsWanted(live, want):
			continue
		case exists:
			want.UID, want.ResourceVersion, want.ManagedFields = live.UID, live.ResourceVersion, live.ManagedFields
		}

		obj, err := writable(want)
		if err != nil {
			return nil, err
		}

		out = append(out, obj)
	}

	return out, nil
}

// Wrote records what a write of a Deployment returned. Whether the Deployment is ready is judged by that: as it was before, it
// may have been ready, but the rollout is still to come.
func (w *Snapshot) Wrote(obj *unstructured.Unstructured) error {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
		return fmt.Errorf("reading Deployment %s as it was written: %w", obj.GetName(), err)
	}

	w.Deployments[d.Name] = d

	return nil
}

// DeploymentsOf are the live Deployments that go with a CSV, sorted by name.
func (w *Snapshot) DeploymentsOf(csv *olm.ClusterServiceVersion) []*appsv1.Deployment {
	out := slices.DeleteFunc(slices.Collect(maps.Values(w.Deployments)), func(d *appsv1.Deployment) bool {
		return d == nil || !IsOwnedBy(d, csv) || d.Labels[scope.LabelOLMOwner] != ownerLabel(csv)
	})

	slices.SortFunc(out, func(a, b *appsv1.Deployment) int { return cmp.Compare(a.Name, b.Name) })

	return out
}

// DeploymentsToRemove are those that go with a CSV and that it does not list any more, after an edit.
func (w *Snapshot) DeploymentsToRemove(csv *olm.ClusterServiceVersion) []*appsv1.Deployment {
	return slices.DeleteFunc(w.DeploymentsOf(csv), func(d *appsv1.Deployment) bool { return lists(csv, d.Name) })
}

// lists says whether a CSV has a Deployment of that name.
func lists(csv *olm.ClusterServiceVersion, deployment string) bool {
	return slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(s olm.StrategyDeploymentSpec) bool {
		return s.Name == deployment
	})
}
