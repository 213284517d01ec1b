package predict_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// TestScopeSeesWhatIsInstalled holds that an operator that a ClusterServiceVersion brings is served in the same plan, and is
// installed anew when the scope injects another list into its ClusterServiceVersion.
func TestScopeSeesWhatIsInstalled(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.scope.Spec.CSVInjector = &operatorv1.Injector{}
	w.add(&rbacv1.Role{ObjectMeta: at("ops", "new"), Rules: []rbacv1.PolicyRule{ruleOf("get", "", "services")}})

	binding := bindingOf("ops", "new", "new")
	binding.Subjects[0].Name = "new"
	w.add(binding)
	w.add(fromYAML(t, `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: ops, name: og}
spec: {targetNamespaces: [ops]}`))
	w.add(fromYAML(t, `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  namespace: ops
  name: new.v1
  labels: {operators.coreos.com/new.ops: ""}
  annotations: {nss.operator.ibm.com/managed-operators: new}
spec:
  displayName: new
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  install:
    strategy: deployment
    spec:
      permissions: [{serviceAccountName: new, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]
      deployments:
      - name: new
        spec:
          replicas: 1
          selector: {matchLabels: {app: new}}
          template:
            metadata: {labels: {app: new, intent: projected}}
            spec: {serviceAccountName: new, containers: [{name: new, image: new}]}`))

	in, cluster := w.begin()
	in.Ours, in.Kubernetes = func() (bool, bool) { return true, true }, "v1.37.0"

	out := installed(w, in)
	if !slices.ContainsFunc(out.Changes, func(c predict.Change) bool {
		return c.Namespace == "a" && c.Copy != nil && c.Copy.Source == "Role/ops/new"
	}) {
		t.Errorf("what the new operator holds is not mirrored: %+v", out.Changes)
	}

	w.scope.Spec.ConfigmapName = "other"
	w.declare(in, w.scope)
	cluster.Begin()

	if out = installed(w, in); len(out.Injections) != 1 {
		t.Fatalf("injected: %+v", out.Injections)
	}

	changes, err := cluster.Changes()
	if err != nil || !slices.ContainsFunc(changes, func(c simulation.Change) bool {
		return c.Key.Kind.Kind == "Deployment" && c.Key.Name == "new" && c.Before != nil && c.After != nil
	}) {
		t.Errorf("the operator is not installed anew: %+v, %v", changes, err)
	}
}

func installed(w *world, in *serving) *predict.Prediction {
	w.Helper()

	out, err := predict.Of(w.Context(), in.Simulation, []predict.Setting{in.setting}, w.amend, scope.Installs.In("ops"))
	if err != nil {
		w.Fatal(err)
	}

	return out[0]
}

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

// TestGrantInTheSamePlan holds that an account may do what it is granted in memory, also where the API server knows of nothing.
func TestGrantInTheSamePlan(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate("a")

	in, _ := w.begin()
	if out := predicted(w, in); !out.Refused() {
		t.Fatal("nothing is refused, so nothing can be granted")
	}

	in, cluster := w.begin()

	role := &rbacv1.Role{ObjectMeta: at("a", "grant"), Rules: []rbacv1.PolicyRule{ruleOf("*", "*", "*")}}
	granted := bindingOf("a", "grant", "grant")
	granted.Subjects[0].Name = "delegate"

	for _, err := range []error{cluster.Propose(role), cluster.Propose(granted)} {
		if err != nil {
			t.Fatal(err)
		}
	}

	if out := predicted(w, in); out.Refused() {
		t.Errorf("it is refused all the same: %+v", out.Changes)
	}
}

// TestRightTakenAway holds that an account may not do what is taken from it in memory, where all roles and bindings are there.
// Where not all may be read, or nothing is taken away, the API server's answer counts.
func TestRightTakenAway(t *testing.T) {
	t.Parallel()

	for _, whole := range []bool{true, false} {
		w := newWorld(t, "a")
		w.delegate()

		bound := bindingOf("a", "grant", "grant")
		bound.Subjects[0].Name = "delegate"
		w.objects = append(w.objects, bound)
		w.add(&rbacv1.Role{ObjectMeta: at("a", "grant"), Rules: []rbacv1.PolicyRule{ruleOf("*", "*", "*")}})

		in, cluster := w.begin()
		in.HasRBAC = func(string) bool { return whole }

		if err := cluster.Delete(bound); err != nil {
			t.Fatal(err)
		}

		out := predicted(w, in)
		if out.Refused() != whole {
			t.Errorf("all in memory: %t, and refused: %+v", whole, out.Changes)
		}

		if i := slices.IndexFunc(out.Lists, func(l predict.List) bool { return l.Refusal != nil }); i >= 0 {
			t.Errorf("where nothing is taken away, the API server's answer does not count: %+v", out.Lists[i])
		}
	}
}
