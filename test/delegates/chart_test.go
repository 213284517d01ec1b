package delegates_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestHelmNamesWhatNobodyGuarded: a tenant writes a scope and a group that name no account. Nothing is served for them in
// delegated, so no policy asks who wrote them, and cluster would serve them with Ambit's own rights. The chart refuses to change
// the profile, until the policy is there that asks.
func TestHelmNamesWhatNobodyGuarded(t *testing.T) {
	w := beds.Own(t, "delegated")
	mine, tenants := w.Namespace("mine"), w.Namespace("tenants")

	upgrade := func(refused string, values ...string) {
		t.Helper()

		helm := exec.CommandContext(t.Context(), embedded.Program("tools/helm"), "template", "ambit",
			filepath.Join(embedded.Root(), "charts", "ambit"), "--is-upgrade", "--dry-run=server", "--kube-version", "1.36",
			// Only an installation asks the API server for these.
			"--api-versions", "operator.ibm.com/v1/NamespaceScope,operators.coreos.com/v1/OperatorGroup",
			"--kubeconfig", w.Cluster.Kubeconfig, "--namespace", "elsewhere", "--set", strings.Join(values, ","))
		home := t.TempDir() // What a user has set up for Helm must not matter here.
		helm.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)

		if out, err := helm.CombinedOutput(); (err != nil) != (refused != "") || !strings.Contains(string(out), refused) {
			t.Errorf("%v: want %q: %v\n%.1000s", values, refused, err, out)
		}
	}

	manual := testbed.Members(tenants)
	manual.ManualManagement = true

	w.ScopeCalled(mine, "account", testbed.DelegatedBy("delegate", tenants))
	w.ScopeCalled(mine, "manual", manual)
	w.Make(testbed.GroupOf(mine, "installer"))
	upgrade("", "profile=cluster")

	for _, unnamed := range []struct {
		what  string
		obj   client.Object
		value string
	}{
		{
			"NamespaceScope " + tenants + "/scope names no account",
			&operatorv1.NamespaceScope{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "scope"}, Spec: testbed.Members("kube-system"),
			},
			"defaultServiceAccount=delegate",
		},
		{"OperatorGroup " + tenants + "/group names no account", testbed.GroupOf(tenants, ""), "operatorGroups.enabled=false"},
	} {
		w.Make(unnamed.obj)
		upgrade(unnamed.what, "profile=cluster")
		upgrade("", "profile=cluster", unnamed.value)
		upgrade("", "profile=cluster", "guard.enabled=false")
		upgrade("", "profile=delegated")
		w.Remove(unnamed.obj)
		w.Eventually("it is gone", w.Gone(unnamed.obj))
	}

	w.Make(testbed.GroupOf(tenants, ""), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "ambit-own-identity"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"none"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "true"}},
		},
	})
	upgrade("", "profile=cluster")
}
