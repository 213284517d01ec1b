package why

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
)

// TestHintOfAScope: nobody is told that a namespace is no member while that is not known.
func TestHintOfAScope(t *testing.T) {
	t.Parallel()

	o := &Options{Options: reading.Options{Namespace: "a"}}
	byTeam := &operatorv1.NamespaceSelector{Raw: []byte(`{"team":"a"}`)}
	failing := func(last string) operatorv1.NamespaceScopeStatus {
		return operatorv1.NamespaceScopeStatus{ObservedGeneration: 2, FailedMembers: []operatorv1.FailedMember{{Namespace: last}}}
	}

	for name, tc := range map[string]struct {
		generation int64
		spec       operatorv1.NamespaceScopeSpec
		status     operatorv1.NamespaceScopeStatus
		want       string
	}{
		"no status": {
			generation: 1, want: "Ambit has not said yet whom NamespaceScope ops/s serves as it is now; is it running?",
		},
		"a status of an older spec": {
			generation: 2, status: operatorv1.NamespaceScopeStatus{ObservedGeneration: 1, ValidatedMembers: []string{"ops"}},
			want: "Ambit has not said yet whom NamespaceScope ops/s serves as it is now; is it running?",
		},
		"no member": {
			generation: 2, status: operatorv1.NamespaceScopeStatus{ObservedGeneration: 2, ValidatedMembers: []string{"ops"}},
			want: "a is no member of NamespaceScope ops/s",
		},
		"one that fails": {
			generation: 2, status: operatorv1.NamespaceScopeStatus{ObservedGeneration: 1, FailedMembers: []operatorv1.FailedMember{
				{Namespace: "a", Reason: "NamespaceNotFound", Message: "it does not exist"},
			}},
			want: "NamespaceScope ops/s does not fully serve a: NamespaceNotFound: it does not exist",
		},
		"one that is named, of more that fail than the status has room for": {
			generation: 2, spec: operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{"a"}}, status: failing("0"),
			want: "NamespaceScope ops/s names a, and its status does not say whether it is served; its condition Ready says how many " +
				"are not",
		},
		"one that labels may select, of more than there is room for": {
			generation: 2, spec: operatorv1.NamespaceScopeSpec{NamespaceSelector: byTeam}, status: failing("0"),
			want: "the status of NamespaceScope ops/s names 1 of the members that it does not fully serve, and a may be another",
		},
		"one that labels do not select": {
			generation: 2, spec: operatorv1.NamespaceScopeSpec{NamespaceSelector: byTeam}, status: failing("b"),
			want: "a is no member of NamespaceScope ops/s",
		},
	} {
		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s", Generation: tc.generation}, Spec: tc.spec, Status: tc.status,
		}
		nss.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("NamespaceScope"))

		if got := o.hint(nss); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
