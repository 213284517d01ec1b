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

	for name, tc := range map[string]struct {
		generation int64
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
	} {
		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s", Generation: tc.generation}, Status: tc.status,
		}
		nss.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("NamespaceScope"))

		if got := o.hint(nss); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
