package slow_test

import (
	"fmt"
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// classified is where the API server put a request.
type classified struct{ schema, level types.UID }

// asked is a request of each sort that a FlowSchema tells apart.
type asked struct{ method, path, body string }

func requests(namespace string) []asked {
	return []asked{
		{http.MethodGet, "/api/v1/namespaces/" + namespace + "/configmaps", ""},
		{http.MethodGet, "/api/v1/namespaces?limit=1", ""},
		{http.MethodGet, "/version", ""},
		{http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles?dryRun=All",
			`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}`},
		{http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All",
			`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}`},
	}
}

// classify makes a request, and returns what the API server says in the answer. Whether it is allowed comes after that.
func classify(w *testbed.World, config *rest.Config, a asked) classified {
	w.Helper()

	response := testcluster.Send(w, config, a.method, a.path, a.body) //nolint:bodyclose // Send closes it.

	return classified{
		schema: types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)),
		level:  types.UID(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)),
	}
}

// TestFlowSchemaCatchesAmbitAlone: everything that Ambit asks for itself, and nothing that anybody else does, whatever they are
// called; nor what Ambit does in an account's name, which is that account's.
func TestFlowSchemaCatchesAmbitAlone(t *testing.T) {
	w := beds.Own(t, "cluster")
	other := w.Namespace("other")
	w.Make(testbed.Account(embedded.Namespace, "beside"), testbed.Account(other, embedded.ServiceAccount))
	w.Grant(other, "acts", embedded.Namespace, embedded.ServiceAccount, "impersonate serviceaccounts")

	installFlowSchema(w, "flowSchema.priorityLevel.create=true", "flowSchema.priorityLevel.name=ambit")

	schema, level := &flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: "ambit-" + embedded.Namespace}, schema); err != nil {
		w.Fatal(err)
	}

	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: "ambit"}, level); err != nil {
		w.Fatal(err)
	}

	want := classified{schema.UID, level.UID}
	ambit := w.ConfigOf(embedded.Namespace, embedded.ServiceAccount)

	for _, a := range requests(other) {
		w.Eventually(fmt.Sprintf("%s %s of Ambit is caught", a.method, a.path), func() error {
			if got := classify(w, ambit, a); got != want {
				return fmt.Errorf("it is %+v, not %+v", got, want)
			}

			return nil
		})
	}

	asAnother := rest.CopyConfig(ambit)
	asAnother.Impersonate.UserName = scope.AccountUser(other, embedded.ServiceAccount)
	called := rest.CopyConfig(w.Config)
	called.Impersonate = rest.ImpersonationConfig{UserName: "ambit", Groups: []string{"system:authenticated"}}

	for who, config := range map[string]*rest.Config{
		"an account beside Ambit":                  w.ConfigOf(embedded.Namespace, "beside"),
		"an account of the name, in another place": w.ConfigOf(other, embedded.ServiceAccount),
		"a person of the name":                     called,
		"a cluster administrator":                  w.Config,
		"an account in whose name Ambit writes":    asAnother,
	} {
		for _, a := range requests(other) {
			switch got := classify(w, config, a); {
			case got.schema == "" || got.level == "":
				t.Errorf("%s: %s %s is not classified at all", who, a.method, a.path)
			case got.schema == want.schema || got.level == want.level:
				t.Errorf("%s: %s %s is caught: %+v", who, a.method, a.path, got)
			}
		}
	}
}
