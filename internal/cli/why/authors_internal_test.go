package why

import (
	"context"
	"encoding/json"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// answering is a cluster in which everything is the same object.
type answering struct {
	client.Client

	text string
}

func (a answering) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return json.Unmarshal([]byte(a.text), obj)
}

// TestAuthorsOfWhatTypesCannotRead: the definition of ClusterServiceVersions takes more than their Go type can read. Whoever
// writes such a one keeps nobody from learning where a right comes from.
func TestAuthorsOfWhatTypesCannotRead(t *testing.T) {
	t.Parallel()

	v := &reading.Cluster{Reader: snapshot.New(answering{text: `{"apiVersion":"operators.coreos.com/v1alpha1",
		"kind":"ClusterServiceVersion","metadata":{"namespace":"ops","name":"kettle.v1","managedFields":[
			{"manager":"jane","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
		"spec":{"version":"the first","install":{"strategy":"deployment","spec":{"deployments":"none"}}}}`})}
	rights := []explain.Right{{Scope: &explain.Ref{Kind: "ClusterServiceVersion", Namespace: "ops", Name: "kettle.v1"}}}

	if err := addAuthors(t.Context(), v, rights); err != nil || rights[0].ScopeAuthor.String() != "jane" {
		t.Errorf("it is by %s: %v", rights[0].ScopeAuthor, err)
	}
}
