package snapshot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
)

// lists is an API server that has what a test says, by resource, and nothing else.
type lists map[string]string

func (l lists) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]

	// Without a kind, it is a list of whatever was asked for.
	of, items := `"apiVersion":"v1","kind":"List"`, l[resource]
	if resource == "operatorgroups" {
		of = `"metadata":{}`
	}

	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{%s,"items":[%s]}`, of, items)

	return w.Result(), nil
}

// TestNamesThatNothingHas: the definitions of OLM's kinds take any text for the name of a namespace, a ConfigMap or a Deployment.
// Nothing is called so, and nobody who asks what is installed fails because of it.
func TestNamesThatNothingHas(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	const of = `"metadata":{"namespace":"ops","name":"one"}`

	for name, there := range map[string]lists{
		"a target": {"operatorgroups": `{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup",` + of +
			`,"spec":{"targetNamespaces":["../b","a/b"]},"status":{"namespaces":["%"]}}`},
		"the ConfigMap of a catalog": {"catalogsources": `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource",` + of +
			`,"spec":{"sourceType":"configmap","configMap":"../secrets/b"}}`},
		"a Deployment": {"clusterserviceversions": `{"apiVersion":"operators.coreos.com/v1alpha1",` +
			`"kind":"ClusterServiceVersion",` + of + `,"spec":{"install":{"strategy":"deployment","spec":{
			"deployments":[{"name":"a/b","spec":{}}]}},"webhookdefinitions":[
			{"type":"ValidatingAdmissionWebhook","deploymentName":"a/b","generateName":"x","sideEffects":"None"}]}}`},
	} {
		c, err := client.New(&rest.Config{Host: "http://example.com", Transport: there, QPS: -1}, client.Options{
			Scheme: scheme, Mapper: testrestmapper.TestOnlyStaticRESTMapper(scheme),
		})
		if err != nil {
			t.Fatal(err)
		}

		for what, within := range map[string][]string{"everywhere": nil, "in single namespaces": {"ops"}} {
			r := New(c)
			if _, err := r.Installs(t.Context(), r.newSnapshot(nil), Installs{
				Namespaces: []string{"ops"}, Ambit: "ambit-system", Within: within,
			}); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}
