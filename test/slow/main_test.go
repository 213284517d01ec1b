// Package slow_test holds that Ambit serves others where the API server refuses its requests, or asks an admission webhook that
// never answers, and how it shares the API server. These tests mostly wait for what takes its time, such as such a webhook.
package slow_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

var errMissing = errors.New("it is not there")

// installFlowSchema applies what the chart has of priority and fairness, with further values.
func installFlowSchema(w *testbed.World, values ...string) {
	w.Helper()

	arguments := []string{
		"template", "ambit", filepath.Join(embedded.Root(), "charts", "ambit"), "--namespace", embedded.Namespace,
		"--kube-version", "1.36", "--show-only", "templates/protection.yaml", "--set", "flowSchema.enabled=true",
	}
	for _, v := range values {
		arguments = append(arguments, "--set", v)
	}

	home := w.TempDir() // What a user has set up for Helm must not matter here.
	helm := exec.CommandContext(w.Context(), embedded.Program("tools/helm"), arguments...)
	helm.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)
	helm.Stderr = os.Stderr

	rendered, err := helm.Output()
	if err != nil {
		w.Fatalf("rendering the chart: %v", err)
	}

	path := filepath.Join(home, "protection.yaml")
	if err := os.WriteFile(path, rendered, 0o600); err != nil {
		w.Fatal(err)
	}

	out, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "--validate=strict", "-f", path)
	if err != nil || !strings.Contains(out, "flowschema") {
		w.Fatalf("applying it: %v\n%s", err, out)
	}
}

// level is a priority level that refuses what is beyond its share, which nobody else lends to.
func level(name string, shares int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares, BorrowingLimitPercent: new(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}
}

// flow puts the requests of Ambit's account into a level, before any other schema.
func flow(name, level string) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence:         2, // The first is the API server's own.
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind: flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
						Namespace: embedded.Namespace, Name: embedded.ServiceAccount,
					},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true,
					Namespaces: []string{"*"},
				}},
			}},
		},
	}
}
