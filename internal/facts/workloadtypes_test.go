package facts_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// TestWorkloadTypesAgree holds that all parts of a row are about the same kind, and that its path leads to its template.
func TestWorkloadTypesAgree(t *testing.T) {
	t.Parallel()

	for i := range facts.WorkloadTypes {
		row := &facts.WorkloadTypes[i]
		want := row.Resource.GroupVersion().WithKind(string(row.Kind))

		obj := row.New()
		if got, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme); err != nil || got != want {
			t.Errorf("%s makes objects of %v: %v", row.Kind, got, err)
		}

		want.Kind += "List"
		if got, err := apiutil.GVKForObject(row.NewList(), clientgoscheme.Scheme); err != nil || got != want {
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
