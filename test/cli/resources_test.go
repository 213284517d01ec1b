package cli_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// define serves a resource in a group until the test ends.
func define(w *testbed.World, plural, group string, scope apiextensionsv1.ResourceScope) {
	w.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "K" + plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
	w.Make(crd)
	w.Cleanup(func() { _ = w.Client.Delete(w.Context(), crd) })
}

// TestWhatIsAskedFor: "ambit who-can" and "ambit why" answer about one resource, the same in every run, and say which it is.
// Where a name is that of several, they name these; where it is that of none, they say so, also of a verb.
func TestWhatIsAskedFor(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	name := "of" + utilrand.String(8)
	define(w, name, "apps."+name+".example.com", apiextensionsv1.ClusterScoped)
	define(w, name, "apps."+name+".example", apiextensionsv1.NamespaceScoped)
	w.Make(testbed.Account(ops, "op"))

	role := testbed.Role(ops, "op", "get "+name, "get secretes")
	role.Rules[0].APIGroups = []string{"apps." + name + ".example"}
	w.Make(role, testbed.Bind(ops, "Role", "op", ops, "op"))

	for asked, want := range map[string]struct {
		code int
		says []string
	}{
		name + ".apps." + name + ".example": {cli.ExitDone, []string{name + ".apps." + name + ".example in namespace " + ops}},
		name + ".apps." + name + ".example.com/status": {
			cli.ExitMissing, []string{name + ".apps." + name + ".example.com/status in the whole cluster"},
		},
		name: {cli.ExitFailed, []string{name + ".apps." + name + ".example, " + name + ".apps." + name + ".example.com"}},
		"namespacescopes": {
			cli.ExitFailed, []string{"namespacescopes.namespacescope.ibm.com, namespacescopes.operator.ibm.com"},
		},
		"secretes":   {cli.ExitDone, []string{"Note: the API server knows no resource secretes"}},
		"po":         {cli.ExitMissing, []string{"get pods in namespace " + ops}},
		"deploy.app": {cli.ExitMissing, []string{"get deployments.apps in namespace " + ops}},
		"nss":        {cli.ExitMissing, []string{"get namespacescopes.operator.ibm.com in namespace " + ops}},
		"pod":        {cli.ExitMissing, []string{"get pods in namespace " + ops}},
		"deployment": {cli.ExitMissing, []string{"get deployments.apps in namespace " + ops}},
	} {
		for _, command := range []string{
			"why " + ops + "/op -n " + ops + " --verb get --resource " + asked, "who-can get " + asked + " -n " + ops,
		} {
			code := want.code
			if strings.HasPrefix(command, "who-can") && code == cli.ExitMissing {
				code = cli.ExitDone
			}

			for range 5 { // The order of the API server's groups is another one each time.
				w.Eventually(command, func() error { // What was defined is discovered soon.
					return asks(w, command, code, want.says)
				})
			}
		}
	}

	for command, code := range map[string]int{
		"why " + ops + "/op -n " + ops + " --verb GET --resource pods": cli.ExitMissing, "who-can GET pods -n " + ops: cli.ExitDone,
	} {
		if err := asks(w, command, code, []string{"Note: Kubernetes itself knows no verb GET"}); err != nil {
			w.Errorf("%s: %v", command, err)
		}
	}
}

// asks runs a command, and says where it does not say what it should.
func asks(w *testbed.World, command string, code int, says []string) error {
	out, errOut, got := run(w, strings.Fields(command)...)

	for _, words := range says {
		if got != code || !strings.Contains(out+errOut, words) {
			return fmt.Errorf("exit code %d, want %d and %q: %s%s", got, code, words, out, errOut)
		}
	}

	return nil
}
