package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
)

// admission is where the objects are that say what is admitted.
const admission = "/apis/admissionregistration.k8s.io/v1/"

// deletions has kwok end only pods that somebody deleted. It deletes a pod by
// its name each time that it hears of a change of one that is being deleted
// (deleteResource in pkg/kwok/controllers/pod_controller.go). By then the name
// may be that of the next pod: those of a stateful set are made again at once.
const deletions = `{
  "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
  "metadata": {"name": "devcluster-deletions"},
  "spec": {
    "failurePolicy": "Ignore",
    "matchConstraints": {"resourceRules": [
      {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]}
    ]},
    "matchConditions": [{"name": "kwok", "expression": "request.userInfo.username == 'kwok'"}],
    "validations": [{
      "expression": "has(oldObject.metadata.deletionTimestamp)",
      "message": "nobody has deleted the pod that has this name now"
    }]
  }
}`

const deletionsBinding = `{
  "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
  "metadata": {"name": "devcluster-deletions"},
  "spec": {"policyName": "devcluster-deletions", "validationActions": ["Deny"]}
}`

// confineDeletions puts that in force.
func (s *Supervisor) confineDeletions(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	for kind, object := range map[string]string{
		"validatingadmissionpolicies": deletions, "validatingadmissionpolicybindings": deletionsBinding,
	} {
		if err := client.Post(ctx, admission+kind, json.RawMessage(object), nil); err != nil {
			return fmt.Errorf("creating what confines deletions: %w", err)
		}
	}
	return nil
}
