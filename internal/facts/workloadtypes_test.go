package facts_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWorkloadTypesAgree holds that all parts of a row are about the same kind, and that its path leads to its template.
func TestWorkloadTypesAgree(t *testing.T) {
	t.Parallel()

	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	for i := range facts.WorkloadTypes {
		row := &facts.WorkloadTypes[i]
		want := row.Resource.GroupVersion().WithKind(string(row.Kind))

		obj := row.New()
		if got, _, err := scheme.ObjectKinds(obj); err != nil || !slices.Equal(got, []schema.GroupVersionKind{want}) {
			t.Errorf("%s makes objects of %v: %v", row.Kind, got, err)
		}

		want.Kind += "List"
		if got, _, err := scheme.ObjectKinds(row.NewList()); err != nil || !slices.Equal(got, []schema.GroupVersionKind{want}) {
			t.Errorf("%s makes lists of %v: %v", row.Kind, got, err)
		}

		if row.Resource.Resource != strings.ToLower(string(row.Kind))+"s" {
			t.Errorf("%s is called %s in requests", row.Kind, row.Resource.Resource)
		}

		if row.Kind.Type() != row || facts.TypeOfWorkload(obj) != row {
			t.Errorf("%s is not found by its kind and by its objects", row.Kind)
		}

		template, idle := row.Pods(obj)
		template.Spec.ServiceAccountName = "here"

		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}

		at := append(append([]string{}, row.Path...), "spec", "serviceAccountName")
		if account, _, _ := unstructured.NestedString(content, at...); account != "here" || idle {
			t.Errorf("%s: at %v is account %q; idle: %t", row.Kind, row.Path, account, idle)
		}
	}

	if got := facts.TypeOfWorkload(&corev1.Pod{}); got != nil {
		t.Errorf("a pod counts as a %s", got.Kind)
	}

	if got := facts.WorkloadKind("").Restarts(); got != facts.NoRestart || facts.WorkloadKind("Pod").Type() != nil {
		t.Errorf("what is no workload is restarted by %q", got)
	}
}

// TestKeepsPods holds which workloads do not replace their pods, or not all of them, when their template changes.
func TestKeepsPods(t *testing.T) {
	t.Parallel()

	ordered := func(u appsv1.StatefulSetUpdateStrategy) scope.Object {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{UpdateStrategy: u}}
	}
	partition := func(n *int32) scope.Object {
		return ordered(appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: n},
		})
	}

	for reason, tc := range map[string]struct {
		obj  scope.Object
		want bool
	}{
		"a Deployment":                             {&appsv1.Deployment{}, false},
		"one that is paused":                       {&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}, true},
		"a StatefulSet":                            {ordered(appsv1.StatefulSetUpdateStrategy{}), false},
		"one that updates all its pods":            {partition(new(int32(0))), false},
		"one that leaves out nobody says how many": {partition(nil), false},
		"one that leaves some out":                 {partition(new(int32(1))), true},
		"one whose pods somebody deletes": {
			ordered(appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}), true,
		},
		"a DaemonSet": {&appsv1.DaemonSet{}, false},
		"a DaemonSet whose pods somebody deletes": {&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		}}, true},
		"a pod": {&corev1.Pod{}, false},
	} {
		if got := facts.KeepsPods(tc.obj); got != tc.want {
			t.Errorf("%s keeps its pods: %t", reason, got)
		}
	}
}
