package authorize

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestGrantThatAmbitDoesNotUse: nothing is projected for scopes of a namespace that --namespaces leaves out, however much is
// granted to it, and where Ambit writes as itself, no grant is needed.
func TestGrantThatAmbitDoesNotUse(t *testing.T) {
	t.Parallel()

	for _, row := range []struct {
		reason, to string
		args       []string
		want       []string
	}{
		{"it serves other namespaces", "ops", []string{"manager", "--namespaces=a,b"}, []string{
			"the Ambit of namespace ambit-system serves a, b only: unless another one serves ops, this grant has no effect",
		}},
		{"it serves the namespace", "b", []string{"manager", "--namespaces=a,b"}, nil},
		{"it serves all", "ops", []string{"manager"}, nil},
		{"it may be anywhere else", "ops", nil, nil},
		{"it writes as itself", "own", []string{"manager"}, []string{
			"the Ambit of namespace ambit-system writes for NamespaceScope own/s as itself and uses no grant, unless the scope names a " +
				"service account",
		}},
		{"nobody knows whether it does", "own", nil, nil},
		{"it does so for no scope", "own", []string{"manager", "--require-service-account"}, nil},
		{"it has an account for such scopes", "own", []string{"manager", "--default-service-account=writer"}, nil},
		{"the scope names an account", "named", []string{"manager"}, nil},
	} {
		owner := scope.Owner{Kind: "NamespaceScope", Namespace: row.to, Name: "s"}
		s := map[string]*scope.Scope{"own": {Owner: owner}, "named": {Owner: owner, Delegate: "writer"}}[row.to]

		cluster := fake.NewClientBuilder()
		if row.args != nil {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ambit-system", Name: "ambit"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Args: row.args}}
			cluster = cluster.WithObjects(d)
		}

		w := &session{Client: cluster.Build(), namespace: "m", to: row.to}
		if got, err := w.unused(t.Context(), s); err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: the notes are %q (%v)", row.reason, got, err)
		}
	}
}
