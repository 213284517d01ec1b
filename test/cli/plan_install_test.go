package cli_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/cli"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// installing is what a test of installs is about.
type installing struct {
	*testbed.World

	ops, a string
}

func (w *installing) group() string {
	return fmt.Sprintf(`apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: %s, name: og}
spec: {targetNamespaces: [%s], serviceAccountName: deployer}
`, w.ops, w.a)
}

func (w *installing) csv(name, replaces string) string {
	return fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: %s, name: %s}
spec:
  displayName: op
  version: 1.0.0
  replaces: %q
  installModes: [{type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: true}]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: op
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
      clusterPermissions:
      - serviceAccountName: op
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
      - name: %s
        spec:
          replicas: 1
          selector: {matchLabels: {app: op}}
          template:
            metadata: {labels: {app: op}}
            spec: {serviceAccountName: op, containers: [{name: op, image: op}]}
`, w.ops, name, replaces, name)
}

// TestInstallsArePlanned plans an install, and after that the grant of what it lacks, and each time applies the files and holds
// that just that happens: the same objects, phases and messages.
func TestInstallsArePlanned(t *testing.T) {
	// In the profile delegated, the account of the group was granted no deletions in targets.
	for profile, back := range map[string]int{"cluster": cli.ExitDone, "delegated": cli.ExitMissing} {
		t.Run(profile, func(t *testing.T) {
			// A grant for the whole cluster matters to whatever else is in it, and so does OLM.
			w := &installing{World: beds.Alone(t, profile)}
			w.plansAnInstall()
			w.plansWhatIsTakenBack(back)
		})
	}
}

func (w *installing) plansAnInstall() {
	w.Helper()

	w.ops, w.a = w.Namespace("ops"), w.Namespace("a")

	account := objectOf("v1", "ServiceAccount", w.ops, "deployer")
	first := w.csv("op.v1", "")

	refused := w.step(cli.ExitMissing, account+"---\n"+w.group()+"---\n"+first)
	if len(refused.Grants) == 0 {
		w.Fatal("nothing says which permissions are missing")
	}

	// Those for the target come last, and by themselves: nothing in such files is where the operator is.
	var here, there strings.Builder

	for _, obj := range refused.Grants {
		text, err := yaml.Marshal(obj)
		if err != nil {
			w.Fatal(err)
		}

		into := &here
		if namespace, _, _ := unstructured.NestedString(obj, "metadata", "namespace"); namespace == w.a {
			into = &there
		}

		into.WriteString("---\n" + string(text))
	}

	w.step(cli.ExitMissing, here.String())
	w.step(cli.ExitDone, there.String())

	// What was granted names the objects of the first version.
	upgrade := planned(w.World, cli.ExitMissing, w.csv("op.v2", "op.v1"))
	if len(upgrade.Grants) == 0 || len(upgrade.Objects) > 0 {
		w.Errorf("it is refused, and yet %+v", upgrade.Objects)
	}
}

// plansWhatIsTakenBack has OLM appear beside what is installed, and holds that a plan says what Ambit takes back once nobody asks
// for it any more, and nothing else.
func (w *installing) plansWhatIsTakenBack(code int) {
	w.Helper()
	w.MakeNamespace("olm")

	theirs := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator", Labels: map[string]string{"app": "olm-operator"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "olm-operator"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "olm-operator"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/c:1"}}},
			},
		},
	}
	w.Make(theirs)

	defer w.Remove(theirs)

	d := planned(w.World, cli.ExitDone, w.csv("op.v2", "op.v1"))
	if len(d.Objects)+len(d.Installs) > 0 || !slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, "OLM's own controller olm/olm-operator runs")
	}) {
		w.Errorf("OLM installs it: %+v", d)
	}

	before := w.look()
	first := w.csv("op.v1", "")

	d = planned(w.World, code, first, "--delete")
	if counted(d, plan.Delete) == 0 || len(d.Installs) > 0 {
		w.Errorf("nothing is taken back: %+v", d)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "delete", "-f", file(w.World, "gone.yaml", first)); err != nil {
		w.Fatal(out, err)
	}

	w.Eventually("what happens beside OLM is what was planned", func() error { return w.compare(d, before) })
}

// TestScopesAndInstallsArePlannedTogether plans an operator and a scope of it in the same files, and after that an injection, and
// holds each time that just that happens.
func TestScopesAndInstallsArePlannedTogether(t *testing.T) {
	w := &installing{World: beds.Alone(t, "cluster")}
	w.ops, w.a = w.Namespace("ops"), w.Namespace("a")
	m := w.Namespace("m")
	csv := w.csv("op.v1", "")

	for _, edit := range [][2]string{
		{"name: op.v1}", "name: op.v1, labels: {operators.coreos.com/op." + w.ops + `: ""}, ` +
			"annotations: {nss.operator.ibm.com/managed-operators: op}}"},
		{"labels: {app: op}}\n            spec", "labels: {app: op, intent: projected}}\n            spec"},
	} {
		if !strings.Contains(csv, edit[0]) {
			t.Fatalf("nothing to edit: %s", edit[0])
		}

		csv = strings.Replace(csv, edit[0], edit[1], 1)
	}

	rbac := fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: more}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: more}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: op}]
---
`, w.ops)
	group := strings.Replace(w.group(), ", serviceAccountName: deployer", "", 1)

	// The account whose permissions are mirrored is there once the CSV is installed.
	d := w.step(cli.ExitDone, rbac+group+"---\n"+csv+"---\n"+scopeOf(w.ops, m, ""))
	if !slices.ContainsFunc(d.Objects, func(o cliplan.Object) bool {
		return o.Kind == "Role" && o.Namespace == m && o.Source == "Role/"+w.ops+"/more"
	}) {
		t.Errorf("what the operator holds is not mirrored: %+v", d.Objects)
	}

	// The CSV into which is injected is installed anew.
	d = w.step(cli.ExitDone, scopeOf(w.ops, m, "  csvInjector: {enable: true}\n"))
	if len(d.Injections) != 1 || !slices.ContainsFunc(d.Objects, func(o cliplan.Object) bool {
		return o.Action == plan.Update && o.Kind == "Deployment" && o.Namespace == w.ops
	}) {
		t.Errorf("the operator does not get the list: %+v, %+v", d.Injections, d.Objects)
	}

	w.Eventually("the operator gets the list, as planned", func() error {
		op := &appsv1.Deployment{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: "op.v1"}, op); err != nil {
			return fmt.Errorf("reading the operator: %w", err)
		}

		if env := op.Spec.Template.Spec.Containers[0].Env; !slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
			return e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil
		}) {
			return fmt.Errorf("it does not: %+v", env)
		}

		return nil
	})
}

// TestCertificatesThatAreThereArePlanned plans a version with a webhook where the Secret for its certificate is somebody else's
// already, which no version that is there uses.
func TestCertificatesThatAreThereArePlanned(t *testing.T) {
	w := &installing{World: beds.Begin(t, "cluster")}
	w.ops, w.a = w.Namespace("ops"), w.Namespace("a")
	w.Make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "op-v1-service-cert"}})

	d := planned(w.World, cli.ExitMissing, w.csv("op.v1", "")+`  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: op.example.com
    deploymentName: op.v1
    admissionReviewVersions: [v1]
    sideEffects: None
    rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [kettles]}]
---
`+strings.Replace(w.group(), ", serviceAccountName: deployer", "", 1))

	if slices.ContainsFunc(d.Objects, func(o cliplan.Object) bool { return o.Kind == "Secret" }) {
		t.Errorf("the Secret of somebody else is taken for one to create: %+v", d.Objects)
	}

	// A version that has webhooks no longer keeps what it answered with.
	csv := w.csv("op.v2", "")
	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w.World, "csv.yaml", csv)); err != nil {
		t.Fatal(out, err)
	}

	uid, err := w.Cluster.Kubectl(w.Context(), "get", "csv", "op.v2", "-n", w.ops, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(uid, err)
	}

	for _, obj := range []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "left-service"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "left-service-cert"}},
	} {
		obj.SetNamespace(w.ops)
		obj.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "op.v2", UID: types.UID(uid),
		}})
		w.Make(obj)
	}

	d = planned(w.World, cli.ExitDone, csv, "--delete")
	for _, name := range []string{"left-service", "left-service-cert"} {
		if !slices.ContainsFunc(d.Objects, func(o cliplan.Object) bool { return o.Name == name && o.Action == plan.Delete }) {
			t.Errorf("%s goes with the version, and is not planned: %+v", name, d.Objects)
		}
	}
}

// step plans for files, applies them, and holds the plan against what happens.
func (w *installing) step(code int, content string) *cliplan.Data {
	w.Helper()

	before := w.look()

	d := planned(w.World, code, content)
	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w.World, "step.yaml", content)); err != nil {
		w.Fatal(out, err)
	}

	w.Eventually("what happens is what was planned for\n"+content, func() error { return w.compare(d, before) })

	return d
}

// look reads what Ambit made.
func (w *installing) look() map[string]*unstructured.Unstructured {
	w.Helper()

	out := map[string]*unstructured.Unstructured{}

	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ServiceAccount"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))

		if err := w.Client.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}

		for i := range list.Items {
			obj := &list.Items[i]
			about := strings.Contains(obj.GetAnnotations()[scope.AnnotationOwner], "/"+w.ops+"/") || obj.GetNamespace() == w.ops

			if apply.IsMade(obj) && about {
				out[gvk.Kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj
			}
		}
	}

	return out
}

const randomDigits = 16

// compare holds what was made and what went against the plan, and the phases.
func (w *installing) compare(d *cliplan.Data, before map[string]*unstructured.Unstructured) error {
	after, happened, promised := w.look(), map[string]int{}, map[string]int{}

	for name, obj := range after {
		if was := before[name]; was != nil && was.GetUID() == obj.GetUID() {
			continue
		}

		// The ClusterRoles of a group have names that everybody knows.
		isGroups := strings.HasPrefix(obj.GetAnnotations()[scope.AnnotationOwner], scope.KindGroup+"/")
		if obj.GetAnnotations()[scope.AnnotationCopy] != "" && !isGroups {
			name = name[:len(name)-randomDigits] + "*"
		}

		happened["create "+name]++
	}

	for name := range before {
		if after[name] == nil {
			happened["delete "+name]++
		}
	}

	for i := range d.Objects {
		o := &d.Objects[i]
		if o.Action != "update" {
			promised[string(o.Action)+" "+o.Kind+" "+o.Namespace+"/"+o.Name]++
		}
	}

	var errs []error
	if !maps.Equal(happened, promised) {
		errs = append(errs, fmt.Errorf("planned %v\nhappened %v", promised, happened))
	}

	for i := range d.Installs {
		errs = append(errs, w.says(&d.Installs[i]))
	}

	return errors.Join(errs...)
}

// says holds what a status says against the plan.
func (w *installing) says(in *cliplan.Install) error {
	version := map[string]string{"OperatorGroup": "v1"}[in.Kind]
	if version == "" {
		version = "v1alpha1"
	}

	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: version, Kind: in.Kind})

	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: in.Namespace, Name: in.Name}, obj); err != nil {
		return fmt.Errorf("%s %s: %w", in.Kind, in.Name, err)
	}

	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	reason, _, _ := unstructured.NestedString(obj.Object, "status", "reason")
	message, _, _ := unstructured.NestedString(obj.Object, "status", "message")
	targets, _, _ := unstructured.NestedStringSlice(obj.Object, "status", "namespaces")

	if phase != in.Phase || reason != in.Reason || message != in.Message || !slices.Equal(targets, in.Targets) {
		return fmt.Errorf("%s %s: planned %q %q %q %v, is %q %q %q %v", in.Kind, in.Name, in.Phase, in.Reason, in.Message,
			in.Targets, phase, reason, message, targets)
	}

	return nil
}
