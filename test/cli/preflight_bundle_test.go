package cli_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// filled copies files of testdata, with the names that they leave open.
func filled(w *testbed.World, names map[string]string, paths ...string) string {
	w.Helper()

	dir := w.TempDir()

	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			w.Fatal(err)
		}

		to := filepath.Join(dir, path)
		content := os.Expand(string(text), func(name string) string { return names[name] })

		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o750), os.WriteFile(to, []byte(content), 0o600)); err != nil {
			w.Fatal(err)
		}
	}

	return dir
}

// bundle are the files of a bundle that somebody made.
func bundle(w *testbed.World, names map[string]string) string {
	w.Helper()

	return filepath.Join(filled(w, names, "bundle/manifests/csv.yaml", "bundle/manifests/crds.yaml", "bundle/manifests/others.yaml",
		"bundle/manifests/elsewhere.yaml", "bundle/manifests/unknown.yaml", "bundle/metadata.yaml"), "bundle")
}

func groupOf(namespace string) string {
	return "g" + strings.ReplaceAll(namespace, "-", "") + ".example.com"
}

// TestPreflightOfAWholeBundle holds that everything in the files of a bundle is asked about as what it is, and in the namespace
// that it is of.
func TestPreflightOfAWholeBundle(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	own, other := w.Namespace("own"), w.Namespace("other")
	group := groupOf(own)
	w.Make(testbed.Account(own, "installer"))

	dir := bundle(w, map[string]string{"OWN": own, "OTHER": other, "GROUP": group})
	arguments := []string{"preflight", "-f", dir, "--service-account", own + "/installer"}

	out, errOut, code := run(w, arguments...)
	if code != cli.ExitMissing {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	places := lines(out)

	for place, rights := range map[string][]string{
		"the whole cluster": {
			"create customresourcedefinitions of apiextensions.k8s.io", "create kitchens of " + group,
			"get, patch kitchens named " + own + " of " + group, "get nodes", "get /metrics",
			"create, patch clusterrolebindings, clusterroles", "get clusterroles named " + own + "-kettle-metrics-reader",
		},
		own: {
			"create clusterserviceversions of operators.coreos.com", "create serviceaccounts, services",
			"get, patch services named kettle-metrics",
			"do everything with all resources of " + group, "get, list configmaps, secrets", "get, update leases of coordination.k8s.io",
		},
		other: {"create configmaps", "get, patch configmaps named kettle-elsewhere"},
	} {
		for _, right := range rights {
			if !slices.Contains(places[place], right) {
				t.Errorf("%s: there is no %q in %q", place, right, places[place])
			}
		}
	}

	if len(places) != 3 || strings.Contains(out, "placeholder") {
		t.Errorf("got %s", out)
	}

	for _, note := range []string{
		"Note: the cluster does not know the kind ServiceMonitor of monitoring.example.com/v1,",
		"Note: the cluster does not know the kind PrometheusRule of monitoring.example.com/v1,",
		"Note: the cluster does not know the kind Kettle of " + group + "/v2, and no CustomResourceDefinition of the files makes it, " +
			"so this was not asked about: later\n",
	} {
		if !strings.Contains(errOut, note) {
			t.Errorf("there is no %q in %s", note, errOut)
		}
	}

	grants := exact(w, arguments...)

	// The API server agrees: with these rights the account writes all of it.
	w.Make(grants...)

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join(dir, "manifests", "crds.yaml")); err != nil {
		w.Fatalf("%v: %s", err, out)
	}

	for file, namespace := range map[string]string{"others.yaml": own, "elsewhere.yaml": other} {
		w.Eventually("the account applies "+file, func() error {
			out, err := w.Cluster.Kubectl(w.Context(), "apply", "--as=system:serviceaccount:"+own+":installer", "-n", namespace, "-f",
				filepath.Join(dir, "manifests", file))
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}

			return nil
		})
	}
}

// TestPreflightTakesTheGroupOfTheFiles holds that an OperatorGroup among the files says who installs, and for which namespaces.
func TestPreflightTakesTheGroupOfTheFiles(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	own, other := w.Namespace("own"), w.Namespace("other")
	target := w.Namespace("target", "kettle="+own)
	names := map[string]string{"OWN": own, "OTHER": other, "GROUP": groupOf(own)}
	dir := bundle(w, names)
	tenant := filepath.Join(filled(w, names, "tenant.yaml"), "tenant.yaml")

	out, errOut, code := run(w, "preflight", "-f", dir, "-f", tenant, "-n", own)
	places := lines(out)

	for place, right := range map[string]string{
		"the whole cluster": "get, patch namespaces named " + own + "-new", target: "get, list configmaps, secrets",
		own + "-new": "get, list configmaps, secrets", own: "get, patch operatorgroups, subscriptions named kettle",
	} {
		if code != cli.ExitMissing || !slices.ContainsFunc(places[place], func(s string) bool { return strings.Contains(s, right) }) {
			t.Errorf("exit code %d, %s: there is no %q in %q", code, place, right, places[place])
		}
	}

	if !strings.Contains(out, "Service account "+own+"/installer lacks permissions") ||
		!strings.Contains(errOut, "namespace "+own+"-new does not exist; make it before you apply") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	// The group of the cluster wins.
	w.Make(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": map[string]any{"name": "there", "namespace": own},
		"spec": map[string]any{"serviceAccountName": "another", "targetNamespaces": []any{other}},
	}})

	out, errOut, code = run(w, "preflight", "-f", dir, "-f", tenant, "-n", own)
	if code != cli.ExitMissing || !strings.Contains(out, "Service account "+own+"/another lacks permissions in 3 of 3 places") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	// So does whoever asks.
	out, errOut, code = run(w, "preflight", "-f", dir, "-f", tenant, "--service-account", other+"/mine", "--in", other)
	if code != cli.ExitMissing || !strings.Contains(out, "Service account "+other+"/mine lacks permissions in 2 of 2 places") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// TestPlanLacksWhatPreflightLacks: operators run without the ClusterRoles that give people their APIs, and the account of a group
// rarely holds what these take, which is the API in the whole cluster. Neither command has somebody grant that.
func TestPlanLacksWhatPreflightLacks(t *testing.T) {
	w := amongServed(t)
	own := w.Namespace("own")
	w.Make(testbed.Account(own, "installer"))

	text := strings.NewReplacer("OWN", own, "GROUP", groupOf(own)).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Kettle, listKind: KettleList, plural: kettles, singular: kettle}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: OWN}
spec: {serviceAccountName: installer, targetNamespaces: [OWN]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: kettle.v1, namespace: OWN}
spec:
  displayName: kettle
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions: {owned: [{kind: Kettle, name: kettles.GROUP, version: v1}]}
  install: {strategy: deployment, spec: {deployments: [], permissions: [
    {serviceAccountName: kettle, rules: [{apiGroups: [GROUP], resources: [kettles], verbs: [get]}]}]}}
`)
	arguments := []string{"preflight", "-n", own, "-f", file(w, "kettle.yaml", text)}

	out, errOut, code := run(w, append(arguments, "-o", "yaml")...)
	if code != cli.ExitMissing {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	w.Make(objectsIn(w, out)...)
	w.Eventually("nothing is missing", func() error {
		if out, errOut, code := run(w, arguments...); code != cli.ExitDone {
			return fmt.Errorf("exit code %d: %s%s", code, out, errOut)
		}

		return nil
	})

	if d := planned(w, cli.ExitDone, text); len(d.Grants) > 0 {
		t.Errorf("the plan has somebody grant %v", d.Grants)
	}
}

// TestPreflightOfKindsToCome holds that plain manifests may bring their kinds along.
func TestPreflightOfKindsToCome(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	own := w.Namespace("own")
	group := groupOf(own)
	names := map[string]string{"OWN": own, "GROUP": group}
	unknown := filepath.Join(bundle(w, names), "manifests", "unknown.yaml")
	crds := filepath.Join(bundle(w, names), "manifests", "crds.yaml")
	first := file(w, "first.yaml", "apiVersion: "+group+"/v1\nkind: Kettle\nmetadata: {name: first}\n")
	as := []string{"preflight", "-n", own, "--for-user", "jane"}

	out, errOut, code := run(w, append(as, "-f", crds, "-f", first, "-f", unknown)...)
	if code != cli.ExitMissing || !strings.Contains(out, "create kettles of "+group) || strings.Contains(out, "monitoring") ||
		!strings.Contains(errOut, "does not know the kind ServiceMonitor") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	// Where nothing can be asked about, that is no answer.
	out, errOut, code = run(w, append(as, "-f", unknown)...)
	if code != cli.ExitFailed || out != "" || !strings.Contains(errOut, "error: the cluster does not know the kind") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// TestPreflightOfRealBundles holds for operators as they were published that what is said to be missing is exactly that.
func TestPreflightOfRealBundles(t *testing.T) {
	dir := cmp.Or(os.Getenv("AMBIT_BUNDLES"), filepath.Join(embedded.Root(), "..", "shared", "bundles"))

	bundles, err := filepath.Glob(filepath.Join(dir, "*", "manifests", "csv.yaml"))
	if err != nil || len(bundles) == 0 {
		t.Skipf("NOT TESTED: there are no bundles in %s; set AMBIT_BUNDLES to a folder of <name>/manifests/csv.yaml", dir)
	}

	for _, path := range bundles {
		path = filepath.Dir(filepath.Dir(path))

		t.Run(filepath.Base(path), func(t *testing.T) {
			w := beds.Begin(t, "cluster", "--restart-interval=1s")
			own, target := w.Namespace("own"), w.Namespace("target")
			w.Make(testbed.Account(own, "installer"))

			exact(w, "preflight", "-f", path, "--service-account", own+"/installer", "--in", own+","+target)
		})
	}
}

// exact grants what is printed, and holds that nothing is missing then, and that something is without any one of the rules. It
// returns the grants, and takes them away.
func exact(w *testbed.World, arguments ...string) []client.Object {
	w.Helper()

	becomes := func(what string, want int) {
		w.Helper()
		w.Eventually(what, func() error {
			if out, errOut, code := run(w, arguments...); code != want {
				return fmt.Errorf("exit code %d: %s%s", code, out, errOut)
			}

			return nil
		})
	}

	out, errOut, code := run(w, append(slices.Clone(arguments), "-o", "yaml")...)
	if code != cli.ExitMissing {
		w.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	grants := objectsIn(w, out)
	w.Make(grants...)
	becomes("what was printed is granted", cli.ExitDone)

	for _, obj := range grants {
		rules := rulesOf(obj)

		for i := range *rules {
			all := slices.Clone(*rules)

			w.Change(obj, func() { *rules = slices.Delete(slices.Clone(all), i, i+1) })
			becomes(fmt.Sprintf("%s without %v", obj.GetName(), all[i]), cli.ExitMissing)
			w.Change(obj, func() { *rules = all })
			becomes(fmt.Sprintf("%s with %v again", obj.GetName(), all[i]), cli.ExitDone)
		}
	}

	again := make([]client.Object, 0, len(grants))

	for _, obj := range grants {
		w.Remove(obj)

		fresh, _ := obj.DeepCopyObject().(client.Object)
		fresh.SetResourceVersion("")
		fresh.SetUID("")
		again = append(again, fresh)
	}

	return again
}

// rulesOf are the rules of a role; a binding has none.
func rulesOf(obj client.Object) *[]rbacv1.PolicyRule {
	switch role := obj.(type) {
	case *rbacv1.Role:
		return &role.Rules
	case *rbacv1.ClusterRole:
		return &role.Rules
	default:
		return &[]rbacv1.PolicyRule{}
	}
}

func objectsIn(w *testbed.World, text string) []client.Object {
	w.Helper()

	var out []client.Object

	for document := range strings.SplitSeq(text, "---\n") {
		var head struct {
			Kind string `json:"kind"`
		}

		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			w.Fatal(err)
		}

		obj, known := map[string]client.Object{
			"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{}, "ClusterRole": &rbacv1.ClusterRole{},
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		}[head.Kind]
		if !known {
			continue
		}

		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			w.Fatal(err)
		}

		out = append(out, obj)
	}

	return out
}

// lines are what a table says is missing, by place.
func lines(table string) map[string][]string {
	out := map[string][]string{}
	place := ""

	for i, line := range strings.Split(table, "\n") {
		if line == "" {
			break
		}

		if i == 0 {
			continue
		}

		first, rest, found := strings.Cut(line, "  ")
		if found && first != "" {
			place = first
		}

		out[place] = append(out[place], strings.TrimSpace(rest))
	}

	return out
}

// TestPreflightOfWhoAsks holds that what is printed for whoever asks grants it to them, whoever they are, and that they need not
// be let look for OperatorGroups.
func TestPreflightOfWhoAsks(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	own, other := w.Namespace("own"), w.Namespace("other")
	csv := filepath.Join(bundle(w, map[string]string{"OWN": own, "OTHER": other, "GROUP": groupOf(own)}), "manifests", "csv.yaml")

	for _, user := range []string{"jane-" + own, "system:serviceaccount:" + own + ":writer"} {
		_, errOut, code := as(w, user, "preflight", "-f", csv, "-n", own)
		if code != cli.ExitMissing || !strings.Contains(errOut, "Note: you may not list operatorgroups in namespace "+own) {
			t.Fatalf("%s: exit code %d: %s", user, code, errOut)
		}

		exact(w, "preflight", "-f", csv, "-n", own, "--as", user)
	}
}
