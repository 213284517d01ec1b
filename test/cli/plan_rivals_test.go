package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
)

// rival has a group of Ambit's for the namespace a, and an operator that owns an API.
func (w *installing) rival(namespace string) (group, csv string) {
	return fmt.Sprintf(`apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: %s, name: og}
spec: {targetNamespaces: [%s]}
---
`, namespace, w.a), fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: %s, name: op.v1}
spec:
  displayName: op
  installModes: [{type: SingleNamespace, supported: true}]
  customresourcedefinitions:
    owned: [{kind: Pot, name: pots.%s.example.com, version: v1}]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: op
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
      deployments:
      - name: op
        spec:
          replicas: 1
          selector: {matchLabels: {app: op}}
          template:
            metadata: {labels: {app: op}}
            spec: {serviceAccountName: op, containers: [{name: op, image: op}]}
`, namespace, w.a)
}

// pots is the definition of the API that rivals bring.
func (w *installing) pots() string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pots.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: Pot, listKind: PotList, plural: pots, singular: pot}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, w.a)
}

// TestRivalsArePlanned plans an operator that brings what one of another namespace brings for the same target, and then the end
// of the other one, and holds that just that happens.
func TestRivalsArePlanned(t *testing.T) {
	w := &installing{World: beds.Alone(t, "cluster")}
	w.a = w.Namespace("a")
	one, two := w.Namespace("one"), w.Namespace("two")

	group, first := w.rival(one)
	w.foretold(one, "Succeeded", "InstallSucceeded", "apply", w.pots()+"---\n"+group+first)

	group, second := w.rival(two)
	w.foretold(two, "Failed", "InterOperatorGroupOwnerConflict", "apply", group+second)
	w.foretold(two, "Succeeded", "InstallSucceeded", "delete", first)
}

// TestRivalsFromCatalogsArePlanned plans a Subscription to an operator that brings what one of another namespace brings. Nothing
// says so but the content of the catalog.
func TestRivalsFromCatalogsArePlanned(t *testing.T) {
	w := &installing{World: beds.Alone(t, "cluster")}
	w.a = w.Namespace("a")
	one, two := w.Namespace("one"), w.Namespace("two")

	group, first := w.rival(one)
	w.foretold(one, "Succeeded", "InstallSucceeded", "apply", w.pots()+"---\n"+group+first)

	group, second := w.rival(two)
	w.foretold(two, "Failed", "InterOperatorGroupOwnerConflict", "apply", group+w.subscribed(two, second))
}

// subscribed is a catalog with an operator that brings the API of rivals, and a Subscription to it.
func (w *installing) subscribed(namespace, csv string) string {
	w.Helper()

	item := func(text string) string {
		return "    - " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
	}

	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: content}
data:
  clusterServiceVersions: |
%[2]s
  customResourceDefinitions: |
%[3]s
  packages: |
    - {packageName: op, channels: [{name: stable, currentCSV: op.v1}]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {namespace: %[1]s, name: catalog}
spec: {sourceType: internal, configMap: content}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: %[1]s, name: op}
spec: {channel: stable, name: op, source: catalog, sourceNamespace: %[1]s}
`, namespace, item(csv), item(w.pots()))
}

// foretold plans for files, applies or deletes them, and checks what the plan says of the operator of a namespace, and that it
// comes true.
func (w *installing) foretold(namespace, phase, reason, verb, content string) {
	w.Helper()

	arguments := []string{"plan", "-o", "json", "-f", file(w.World, "files.yaml", content)}
	if verb == "delete" {
		arguments = append(arguments, "--delete")
	}

	out, errOut, _ := run(w.World, arguments...)

	d := &cliplan.Data{}
	if err := json.Unmarshal([]byte(out), d); err != nil {
		w.Fatal(err, out, errOut)
	}

	at := slices.IndexFunc(d.Installs, func(in cliplan.Install) bool {
		return in.Kind == "ClusterServiceVersion" && in.Namespace == namespace
	})
	if at < 0 || d.Installs[at].Phase != phase || d.Installs[at].Reason != reason {
		w.Fatalf("want %s %s in namespace %s, but the plan says %s", phase, reason, namespace, out)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), verb, "-f", file(w.World, "step.yaml", content)); err != nil {
		w.Fatal(out, err)
	}

	w.Eventually("what happens is what was planned", func() error { return w.says(&d.Installs[at]) })
}
