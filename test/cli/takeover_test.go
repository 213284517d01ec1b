package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// ibmsOperator is the Deployment of IBM's operator.
func ibmsOperator(namespace string) *appsv1.Deployment {
	labels := map[string]string{"name": "ibm"}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ibm-namespace-scope-operator"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/ibm:1"}}},
			},
		},
	}
}

// TestTakeOverThatCannotBeSeenThrough holds that IBM's operator goes on where its end would be seen by nobody, or not last.
func TestTakeOverThatCannotBeSeenThrough(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{member}}), metav1.ConditionTrue, "Reconciled")

	ibm := ibmsOperator(ops)
	w.Make(ibm, testbed.Account(ops, "owner"), testbed.Bind(ops, "ClusterRole", "cluster-admin", ops, "owner"))

	out, errOut, code := run(w, "import", "--take-over", "-n", ops, "--as", "system:serviceaccount:"+ops+":owner")
	for _, words := range []string{
		"1. Stop IBM's operator", "nothing was done", "you may not list roles in namespace " + member,
		"you may not list rolebindings in namespace " + member,
	} {
		if code != cli.ExitFailed || !strings.Contains(out+errOut, words) {
			t.Errorf("exit code %d, nothing of %q: %s%s", code, words, out, errOut)
		}
	}

	w.Change(ibm, func() { ibm.Labels = map[string]string{"olm.owner": "ibm.v4"} })

	out, errOut, code = run(w, "import", "--take-over", "-n", ops, "--dry-run")
	if code != cli.ExitDone || !strings.Contains(out, "1. Remove IBM's operator from OLM") || !strings.Contains(out, "dry run") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	out, errOut, code = run(w, "import", "--take-over", "-n", ops)
	if code != cli.ExitFailed || !strings.Contains(out, "1. Remove") || !strings.Contains(errOut, "ibm.v4 first") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(ibm), ibm); err != nil || *ibm.Spec.Replicas != 1 {
		t.Errorf("IBM's operator was stopped: %v", err)
	}
}

// TestPlanOfWhatIBMsOperatorLeft: an object that bears the mark of IBM's operator is planned for by the scopes of the list that
// the mark names, also where none of them serves.
func TestPlanOfWhatIBMsOperatorLeft(t *testing.T) {
	w := beds.Begin(t, "cluster")
	ops, elsewhere := w.Namespace("ops"), w.Namespace("elsewhere")
	w.Operator(ops, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{}), metav1.ConditionTrue, "Reconciled")

	_, binding := testbed.LegacyCopies(ops, "op-role", "op", elsewhere)
	binding.APIVersion, binding.Kind = rbacv1.SchemeGroupVersion.String(), "RoleBinding"

	text, err := json.Marshal(binding)
	if err != nil {
		t.Fatal(err)
	}

	d := planned(w, cli.ExitDone, string(text))
	if counted(d, plan.Delete) != 1 || d.Objects[0].Namespace != elsewhere || d.Objects[0].Name != binding.Name {
		t.Errorf("what the scope removes is not planned: %+v", d)
	}
}
