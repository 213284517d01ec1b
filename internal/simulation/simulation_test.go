package simulation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// beginning is a cluster in memory with what is written in YAML.
func beginning(t *testing.T, documents ...string) *simulation.Cluster {
	t.Helper()

	return beginningWith(t, read.NewOnce(nil), documents...)
}

func beginningWith(t *testing.T, once *read.Once, documents ...string) *simulation.Cluster {
	t.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, in := range map[schema.GroupVersionKind]meta.RESTScope{
		{Version: "v1", Kind: "Namespace"}: meta.RESTScopeRoot, {Version: "v1", Kind: "ServiceAccount"}: meta.RESTScopeNamespace,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                         meta.RESTScopeNamespace,
		{Group: rbacv1.GroupName, Version: "v1", Kind: "Role"}:                     meta.RESTScopeNamespace,
		{Group: rbacv1.GroupName, Version: "v1", Kind: "RoleBinding"}:              meta.RESTScopeNamespace,
		{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}:              meta.RESTScopeRoot,
		{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding"}:       meta.RESTScopeRoot,
		{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"}:      meta.RESTScopeNamespace,
		{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"}: meta.RESTScopeNamespace,
	} {
		mapper.Add(kind, in)
	}

	c := simulation.NewCluster(scheme, mapper, once, time.Now())

	for _, obj := range objects(t, documents...) {
		if err := c.Propose(obj); err != nil {
			t.Fatal(err)
		}
	}

	c.Begin()

	return c
}

func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()

	var out []*unstructured.Unstructured

	for text := range strings.SplitSeq(strings.Join(documents, "\n---\n"), "\n---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}

		u := &unstructured.Unstructured{}
		if raw, err := yaml.YAMLToJSON([]byte(text)); err != nil {
			t.Fatal(err, text)
		} else if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err, text)
		}

		out = append(out, u)
	}

	return out
}

// changed are the changes in words.
func changed(t *testing.T, c *simulation.Cluster) []string {
	t.Helper()

	changes, err := c.Changes()
	if err != nil {
		t.Fatal(err)
	}

	var out []string

	for _, change := range changes {
		action := "update"

		switch {
		case change.Before == nil:
			action = "create"
		case change.After == nil:
			action = "delete"
		}

		out = append(out, strings.TrimSuffix(action+" "+change.Key.Kind.Kind+" "+change.Key.Namespace+"/"+change.Key.Name, "/"))
	}

	return out
}

// phase is what the status of an object says.
func phase(t *testing.T, c *simulation.Cluster, namespace, kind, name string) string {
	t.Helper()

	statuses, err := c.Statuses([]string{namespace})
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range statuses {
		if s.Key.Kind.Kind == kind && s.Key.Name == name {
			phase, _, _ := unstructured.NestedString(s.After.Object, "status", "phase")
			reason, _, _ := unstructured.NestedString(s.After.Object, "status", "reason")
			message, _, _ := unstructured.NestedString(s.After.Object, "status", "message")

			return strings.TrimSpace(phase + " " + reason + " " + message)
		}
	}

	return "not there"
}

func namespaces(names ...string) string {
	var out []string
	for _, name := range names {
		out = append(out, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}")
	}

	return strings.Join(out, "\n---\n")
}

const group = `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: ops, name: og}
spec: {targetNamespaces: [a]}`

const csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: ops, name: op.v1}
spec:
  displayName: op
  version: 1.0.0
  installModes: [{type: SingleNamespace, supported: true}]
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
            spec: {serviceAccountName: op, containers: [{name: op, image: op}]}`

func run(t *testing.T, s *simulation.Simulation, namespaces ...string) {
	t.Helper()

	s.AmbitNamespace, s.Kubernetes = "ambit-system", "v1.37.0"
	s.Ours = func() (bool, bool) { return true, true }

	play(t, s, namespaces...)
}

func play(t *testing.T, s *simulation.Simulation, namespaces ...string) {
	t.Helper()

	var keys []scope.Key
	for _, name := range namespaces {
		keys = append(keys, scope.Catalogs.In(name), scope.Installs.In(name))
	}

	if err := s.Run(context.Background(), keys); err != nil {
		t.Fatal(err)
	}
}

// TestOneConverterOfTwo plans two operators that bring different versions of a definition, and would both convert it.
func TestOneConverterOfTwo(t *testing.T) {
	t.Parallel()

	in := func(namespace, version string) string {
		return strings.NewReplacer(
			"namespace: ops", "namespace: "+namespace, "SingleNamespace", "AllNamespaces", "  displayName: op\n", `  displayName: op
  customresourcedefinitions: {owned: [{name: things.example.com, kind: Thing, version: `+version+`}]}
  webhookdefinitions:
  - {type: ConversionWebhook, generateName: c.example.com, deploymentName: op, conversionCRDs: [things.example.com],
     sideEffects: None, admissionReviewVersions: [v1]}
`).Replace(csv)
	}
	version := func(name string, stored bool) string {
		return fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}", name, stored)
	}
	all := "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: all, namespace: "
	definition := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions: [` + version("v1", true) + ", " + version("v2", false) + `]
status: {conditions: [{type: Established, status: "True"}], acceptedNames: {plural: things, kind: Thing}, storedVersions: [v1]}`

	c := beginning(t, namespaces("ops", "others"), definition, all+"ops}", all+"others}", in("ops", "v1"), in("others", "v2"))
	run(t, simulation.New(c), "ops", "others")

	got := []string{
		phase(t, c, "ops", "ClusterServiceVersion", "op.v1"), phase(t, c, "others", "ClusterServiceVersion", "op.v1"),
	}
	if !strings.HasPrefix(got[0], "Succeeded") || !strings.HasPrefix(got[1], "Failed") || !strings.Contains(got[1], "ops/op.v1") {
		t.Errorf("the operators are %q", got)
	}
}

// TestInstall installs an operator in memory, and nothing is left to do after that.
func TestInstall(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, csv)
	run(t, simulation.New(c), "ops")

	if got := phase(t, c, "ops", "ClusterServiceVersion", "op.v1"); !strings.HasPrefix(got, "Succeeded InstallSucceeded") {
		t.Error(got)
	}

	got := changed(t, c)
	for _, want := range []string{
		"create Deployment ops/op", "create ServiceAccount ops/op", "update ClusterServiceVersion ops/op.v1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(got, "\n"))
		}
	}

	c.Begin()
	run(t, simulation.New(c), "ops")

	if got := changed(t, c); len(got) > 0 {
		t.Errorf("an unchanged world is changed: %q", got)
	}
}

// TestRefused names everything that an account lacks, and writes nothing.
func TestRefused(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), strings.Replace(group, "[a]}", "[a], serviceAccountName: deployer}", 1), csv,
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: ops, name: deployer}")
	s := simulation.New(c)
	run(t, s, "ops")

	if got := phase(t, c, "ops", "ClusterServiceVersion", "op.v1"); !strings.HasPrefix(got, "Failed InstallComponentFailed") {
		t.Error(got)
	}

	lacking := s.Lacking()["system:serviceaccount:ops:deployer"]
	if len(lacking) < 2 || lacking[0].Namespace != "" && lacking[0].Namespace != "a" {
		t.Errorf("lacking %+v", lacking)
	}

	for _, line := range changed(t, c) {
		if strings.HasPrefix(line, "create") {
			t.Errorf("it was refused, and yet: %s", line)
		}
	}
}

// TestRulesThatARoleMayNotHave fails where the API server takes no Role of such rules, and goes on where it takes a ClusterRole
// of them. What the API server says is held in test/reconcile by a test of the same name.
func TestRulesThatARoleMayNotHave(t *testing.T) {
	t.Parallel()

	const resource, url = `{apiGroups: [""], resources: [configmaps], verbs: [get]}`, `{nonResourceURLs: [/metrics], verbs: [get]}`

	everywhere := "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {namespace: ops, name: og}\nspec: {}"

	for name, tt := range map[string]struct{ rule, group, want string }{
		"a URL": {
			url, group,
			`rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs`,
		},
		"a URL, for all namespaces": {url, everywhere, ""},
		"a URL and a resource": {
			`{apiGroups: [""], resources: [pods], nonResourceURLs: [/metrics], verbs: [get]}`, everywhere,
			"rules cannot apply to both regular resources and non-resource URLs",
		},
		"no verbs": {
			`{apiGroups: [""], resources: [pods], verbs: []}`, group,
			"rules[0].verbs: Required value: verbs must contain at least one value",
		},
		"no API group": {
			`{resources: [pods], verbs: [get]}`, group,
			"rules[0].apiGroups: Required value: resource rules must supply at least one api group",
		},
		"no resource": {
			`{apiGroups: [""], verbs: [get]}`, group,
			"rules[0].resources: Required value: resource rules must supply at least one resource",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			wants := strings.Replace(strings.Replace(csv, resource, tt.rule, 1), "SingleNamespace, supported: true}",
				"SingleNamespace, supported: true}, {type: AllNamespaces, supported: true}", 1)

			c := beginning(t, namespaces("ops", "a"), tt.group, wants)
			run(t, simulation.New(c), "ops")

			begins := "Failed InstallComponentFailed"
			if tt.want == "" {
				begins = "Succeeded"
			}

			got := phase(t, c, "ops", "ClusterServiceVersion", "op.v1")
			if !strings.HasPrefix(got, begins) || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s: %s", got, begins, tt.want)
			}

			if is := slices.Contains(changed(t, c), "create Deployment ops/op"); is != (tt.want == "") {
				t.Errorf("it has a Deployment: %v", is)
			}
		})
	}
}

// TestDeletion takes away what an operator held, when its CSV goes.
func TestDeletion(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, csv)
	run(t, simulation.New(c), "ops")
	c.Begin()

	if err := c.Delete(objects(t, csv)[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	got := strings.Join(changed(t, c), "\n")
	for _, want := range []string{"delete Deployment ops/op", "delete Role a/", "delete RoleBinding a/"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestNamespaceGoes takes what is installed in a namespace along, with what it made elsewhere.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, csv)
	run(t, simulation.New(c), "ops")
	c.Begin()

	if err := c.Delete(objects(t, namespaces("ops"))[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	got := strings.Join(changed(t, c), "\n")
	for _, want := range []string{
		"delete OperatorGroup ops/og", "delete ClusterServiceVersion ops/op.v1", "delete Deployment ops/op", "delete Role a/",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}

	if strings.Contains(got, "Namespace ") {
		t.Errorf("what the files say is no change: %s", got)
	}
}

// TestSubscription goes all the way from a Subscription over its InstallPlan to the operator.
func TestSubscription(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join("testdata", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	c := beginning(t, namespaces("ops", "a"), group, string(text))
	run(t, simulation.New(c), "ops")

	if got := phase(t, c, "ops", "ClusterServiceVersion", "memcached.v2"); !strings.HasPrefix(got, "Succeeded") {
		t.Errorf("%s\n%s", got, strings.Join(changed(t, c), "\n"))
	}
}

// TestSubscriptionConfig: what a Subscription says of the pods of its operator is in the Deployment.
func TestSubscriptionConfig(t *testing.T) {
	t.Parallel()

	labelled := strings.Replace(csv, "name: op.v1", `name: op.v1, labels: {operators.coreos.com/op.ops: ""}`, 1)
	c := beginning(t, namespaces("ops", "a"), group, labelled, `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: ops, name: op}
spec: {channel: stable, name: op, source: catalog, sourceNamespace: ops, config: {env: [{name: SAID, value: "yes"}]}}
status: {installedCSV: op.v1, currentCSV: op.v1, state: AtLatestKnown}`)
	run(t, simulation.New(c), "ops")

	changes, err := c.Changes()
	if err != nil {
		t.Fatal(err)
	}

	at := slices.IndexFunc(changes, func(c simulation.Change) bool { return c.Key.Kind.Kind == "Deployment" })
	if at < 0 {
		t.Fatal("there is no Deployment")
	}

	if spec := changes[at].After.Object["spec"]; !strings.Contains(fmt.Sprint(spec), "name:SAID value:yes") {
		t.Errorf("the Deployment is %v", spec)
	}
}

// TestRevocation takes back what Ambit made for a CSV that is gone and leaves the rest alone, where OLM serves these kinds.
func TestRevocation(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, csv)
	run(t, simulation.New(c), "ops")
	c.Begin()

	s := simulation.New(c)
	s.Ours = func() (bool, bool) { return false, true }
	play(t, s, "ops")

	if got := changed(t, c); len(got) > 0 {
		t.Errorf("what is still asked for is touched: %q", got)
	}

	if err := c.Delete(objects(t, csv)[0]); err != nil {
		t.Fatal(err)
	}

	c.Begin()
	play(t, s, "ops")

	got := strings.Join(changed(t, c), "\n")
	if !strings.Contains(got, "delete Role a/") || !strings.Contains(got, "delete RoleBinding a/") ||
		strings.Contains(got, "create") || strings.Contains(got, "OperatorGroup") {
		t.Errorf("got\n%s", got)
	}
}

// TestWhatGoesAlong holds that a workload takes along what belongs to it, whether or not everything between is known.
func TestWhatGoesAlong(t *testing.T) {
	t.Parallel()

	const owned = `
metadata:
  namespace: ops
  name: %s
  labels: {pod-template-hash: "7d9"}
  ownerReferences: [{apiVersion: x, kind: %s, name: %s, uid: unknown, controller: true}]`

	pod := "apiVersion: v1\nkind: Pod" + owned
	documents := []string{
		namespaces("ops"),
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: ops, name: op}",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {namespace: ops, name: nightly}",
		fmt.Sprintf("apiVersion: batch/v1\nkind: Job"+owned, "nightly-1", "CronJob", "nightly"),
		fmt.Sprintf(pod, "op-7d9-x", "ReplicaSet", "op-7d9"),
		fmt.Sprintf(pod, "nightly-1-x", "Job", "nightly-1"),
		"apiVersion: v1\nkind: Pod\nmetadata: {namespace: ops, name: bare}",
	}

	for gone, left := range map[int][]string{
		1: {"bare", "nightly-1-x"}, 2: {"bare", "op-7d9-x"}, 6: {"nightly-1-x", "op-7d9-x"},
	} {
		once := read.NewOnce([]string{"ops"})

		c := beginningWith(t, once, documents...)
		if err := c.Delete(objects(t, documents[gone])[0]); err != nil {
			t.Fatal(err)
		}

		var pods []string

		f, _ := once.Store.Facts(scope.NamespaceScopes.In("ops"), time.Now())
		for i := range f.OperatorNamespace.Pods {
			pods = append(pods, f.OperatorNamespace.Pods[i].Name)
		}

		if !slices.Equal(pods, left) {
			t.Errorf("without %s: %v", documents[gone], pods)
		}
	}
}
