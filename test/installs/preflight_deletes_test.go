package installs_test

import (
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// preflightNames waits until the command names what an account lacks, and grants it.
func (w *world) preflightNames(c *olm.ClusterServiceVersion, words ...string) {
	w.Helper()
	w.Eventually("what is missing is named", func() error {
		out, code := w.Ambit("preflight", "csv/"+c.Name, "-n", c.Namespace)
		for _, word := range words {
			if code != 3 || !strings.Contains(out, word) {
				return fmt.Errorf("exit code %d, nothing of %q in %s", code, word, out)
			}
		}

		return nil
	})

	out, _ := w.Ambit("preflight", "csv/"+c.Name, "-n", c.Namespace, "-o", "yaml")
	w.apply(out)
	w.Eventually("nothing is missing", func() error {
		if out, code := w.Ambit("preflight", "csv/"+c.Name, "-n", c.Namespace); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}

		return nil
	})
}

// TestPreflightNamesDeploymentsThatGo: an edit takes a Deployment out of a version, and the account of the group may not delete
// it. The command that the status names prints what grants that, and no more is missing with it.
func TestPreflightNamesDeploymentsThatGo(t *testing.T) {
	w := begin(t, "delegated")
	own := w.Namespace("own")
	w.scoped(own, own)

	op := csv(own, "op.v1", func(c *olm.ClusterServiceVersion) {
		specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		*specs = append(*specs, olm.StrategyDeploymentSpec{Name: "second", Spec: deployment("second")})
	})
	w.Make(op)
	w.preflightNames(op, "get, list secrets")
	w.succeeds(op)

	w.Change(op, func() {
		specs := &op.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		*specs = (*specs)[:1]
	})
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "error deleting deployment second",
		"ambit preflight csv/op.v1 -n "+own)
	w.preflightNames(op, "delete deployments named second of apps")
	w.succeeds(op)
	w.gone(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "second"}})
}

// webhooksMayGo takes the webhooks out of a version whose account may not delete their configurations. The command names that
// among what is missing before, because no garbage collection removes them with their version; so does the status afterwards.
func (w *world) webhooksMayGo(c *olm.ClusterServiceVersion) {
	w.Helper()

	left, may := w.hook(c), "delete validatingwebhookconfigurations named v.example.com-"

	if out, code := w.Ambit("preflight", "csv/"+c.Name, "-n", c.Namespace); code != 3 || !strings.Contains(out, may) {
		w.Errorf("exit code %d, nothing of %q in %s", code, may, out)
	}

	w.Change(c, func() { c.Spec.WebhookDefinitions = nil })
	w.becomes(c, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "error deleting validatingwebhookconfiguration v.example.com-",
		"ambit preflight csv/op.v1 -n "+c.Namespace)
	w.preflightNames(c, may)
	w.succeeds(c)
	w.gone(left)
}
