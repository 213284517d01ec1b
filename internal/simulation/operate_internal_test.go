package simulation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestDefinitionsAreEstablished: what nobody decided is taken to be established, also as the API server answers a dry run, with
// the versions that it would store and nothing else.
func TestDefinitionsAreEstablished(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct{ status, want string }{
		"no status":             {"", "True"},
		"of a dry run":          {"status: {storedVersions: [v1], acceptedNames: {kind: '', plural: ''}, conditions: null}", "True"},
		"one whose names clash": {"status: {conditions: [{type: Established, status: 'False'}]}", "False"},
	} {
		text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" + tc.status

		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}

		(&Cluster{}).operate(u)

		if got := established(u); got != tc.want {
			t.Errorf("%s: it is established: %q, want %q: %v", reason, got, tc.want, u.Object["status"])
		}
	}
}
