package attacks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// injector is what a scope says of the injection into workloads.
type injector = operatorv1.WorkloadInjector

var errUndecided = errors.New("nothing is said of the injection yet")

// victim is a Deployment of Ambit's namespace, selected by a label of its own, that has things in it already.
func victim(name string, edit func(*corev1.PodSpec)) *appsv1.Deployment {
	labels := map[string]string{"attacked": name}
	spec := corev1.PodSpec{
		ServiceAccountName: "default",
		Volumes: []corev1.Volume{{
			Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		}},
		Containers: []corev1.Container{{
			Name: "main", Image: "x",
			Env:          []corev1.EnvVar{{Name: "SET_NAMESPACE", Value: "mine"}, {Name: "EMPTY_NAMESPACE"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/srv/namespaces/data"}},
		}},
		InitContainers: []corev1.Container{{Name: "prepare", Image: "x"}},
	}

	if edit != nil {
		edit(&spec)
	}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// by returns the scope by which somebody who holds ambit-edit, and nothing else, goes for the workloads with some labels.
func by(name string, labels map[string]operatorv1.LabelValue, in *injector) *operatorv1.NamespaceScope {
	return &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: name},
		Spec: operatorv1.NamespaceScopeSpec{
			ConfigmapName: "list-" + name, RestartLabels: labels, WorkloadInjector: in,
		},
	}
}

// decided waits until a scope's condition about injection says something of it that stays, and returns the reason.
func decided(w *testbed.World, nss *operatorv1.NamespaceScope, kind string) *metav1.Condition {
	w.Helper()

	var found *metav1.Condition

	w.Eventually(nss.Name+" says what becomes of it", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		found = meta.FindStatusCondition(nss.Status.Conditions, kind)
		if found == nil || found.ObservedGeneration != nss.Generation || found.Reason == "Waiting" || found.Reason == "OLMNotFound" {
			return fmt.Errorf("%w: %+v", errUndecided, nss.Status)
		}

		return nil
	})

	return found
}

// editor makes a user who holds ambit-edit in Ambit's own namespace, and nothing else.
func editor(w *testbed.World, name string) client.Client {
	w.Helper()

	b := testbed.Bind(embedded.Namespace, "ClusterRole", "ambit-edit", embedded.Namespace, name)
	b.Name, b.Subjects[0].Kind, b.Subjects[0].Namespace = name, "User", ""
	b.Subjects[0].APIGroup = "rbac.authorization.k8s.io"
	w.Make(b)

	user := w.As(name)

	w.Eventually("the rights of "+name, func() error {
		none := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "there-is-none"}}

		return client.IgnoreNotFound(user.Delete(w.Context(), none))
	})

	refused(w, "to write a Deployment", user.Create(w.Context(), victim("by-hand", nil)))

	return user
}

// TestInjectionRunsNoCode has somebody who may write scopes where Ambit itself writes, and nothing else, try to get more into
// workloads than the list of namespaces, or that where it runs something or takes the place of something.
func TestInjectionRunsNoCode(t *testing.T) {
	w := beginTwo(t)
	user := editor(w, "injecting-editor")
	no, main := new(""), []string{"main"}
	at := func(path string) injector { return injector{Variable: no, MountPath: path} }

	for name, tc := range map[string]struct {
		reason string
		victim func(*corev1.PodSpec)
		in     injector
		allow  bool
	}{
		"variable":        {reason: "this is what it is for", in: injector{}, allow: true},
		"mount":           {reason: "and this", in: at("/etc/ambit"), allow: true},
		"other-name":      {reason: "a name that says what it holds", in: injector{Variable: new("WATCHED_NAMESPACES")}, allow: true},
		"arguments":       {reason: "they are code", in: injector{Arguments: []string{"--plugin=/tmp/x"}, Containers: main}},
		"arguments-alone": {reason: "also without more", in: injector{Variable: no, Arguments: []string{"-x"}, Containers: main}},
		"preload":         {reason: "a library is loaded", in: injector{Variable: new("LD_PRELOAD")}},
		"path":            {reason: "programs are found by it", in: injector{Variable: new("PATH")}},
		"api-server":      {reason: "the API server is found by it", in: injector{Variable: new("KUBERNETES_SERVICE_HOST")}},
		"git":             {reason: "whatever a program may run", in: injector{Variable: new("GIT_SSH_COMMAND")}},
		"set":             {reason: "it is there already", in: injector{Variable: new("SET_NAMESPACE")}},
		"replace": {
			reason: "no wish of the scope's changes that",
			in:     injector{Variable: new("SET_NAMESPACE"), Conflicts: operatorv1.ReplaceConflicts},
		},
		"empty": {reason: "an empty one is there, too", in: injector{Variable: new("EMPTY_NAMESPACE")}},
		"from": {
			reason: "it may be there already, where only the kubelet sees it",
			victim: func(s *corev1.PodSpec) {
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
				}}}
			},
		},
		"root":        {reason: "the whole image", in: at("//")},
		"etc":         {reason: "what the image has there goes", in: at("/etc")},
		"application": {reason: "likewise", in: at("/opt/app/plugins")},
		"token":       {reason: "the account's token", in: at("/var/run/secrets/kubernetes.io/serviceaccount")},
		"dots":        {reason: "a name that is another one", in: at("/etc/ambit/../../usr/namespaces/..")},
		"above":       {reason: "what is mounted below goes", in: at("/srv/namespaces")},
		"same":        {reason: "it is there", in: at("/srv/namespaces/data")},
		"below":       {reason: "it would be made in the volume", in: at("/srv/namespaces/data/namespaces")},
		"volume": {
			reason: "a volume of that name is somebody else's",
			victim: func(s *corev1.PodSpec) {
				s.Volumes[0].Name, s.Containers[0].VolumeMounts[0].Name = "ambit-watch-list", "ambit-watch-list"
			},
			in: at("/etc/ambit"),
		},
		"account": {
			reason: "whatever runs as Ambit's account is Ambit",
			victim: func(s *corev1.PodSpec) { s.ServiceAccountName = embedded.ServiceAccount },
		},
	} {
		d := victim("attacked-"+name, tc.victim)
		w.Make(d)

		nss := by("attack-"+name, map[string]operatorv1.LabelValue{"attacked": operatorv1.LabelValue(d.Name)}, &tc.in)
		if err := user.Create(w.Context(), nss); err != nil {
			if tc.allow || !isInvalid(err) {
				t.Errorf("%s: %v", name, err)
			}

			continue // The API server knows better still.
		}

		t.Cleanup(func() { _ = w.Client.Delete(cleanup(), nss) })
		t.Run(name, func(t *testing.T) { isConfined(&testbed.World{T: t, Bed: w.Bed}, d, nss, tc.allow, tc.reason) })
	}
}

// isConfined holds that a workload is as it was, or has in addition the one variable or the one file that it may have.
func isConfined(w *testbed.World, d *appsv1.Deployment, nss *operatorv1.NamespaceScope, allow bool, reason string) {
	w.Helper()

	c := decided(w, nss, "WorkloadsInjected")
	before := d.Spec.Template.DeepCopy()

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		w.Fatal(err)
	}

	changed := !reflect.DeepEqual(before.Spec, d.Spec.Template.Spec)
	if changed != allow || allow != (c.Status == yes) {
		w.Fatalf("%s: changed: %t, condition %+v\n%s", reason, changed, c, inJSON(d.Spec.Template.Spec))
	}

	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == "ambit-watch-list" && v.ConfigMap != nil &&
			!reflect.DeepEqual(v.ConfigMap.Items, []corev1.KeyToPath{{Key: "namespaces", Path: "namespaces"}}) {
			w.Errorf("other keys of the ConfigMap are mounted, too: %s", inJSON(v))
		}
	}
}

// TestInjectionLeavesAmbitAlone aims at Ambit's own Deployment by the labels that it has.
func TestInjectionLeavesAmbitAlone(t *testing.T) {
	w := beginTwo(t)
	user := editor(w, "editor-of-ambit")
	own := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "ambit"}}

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Fatal(err)
	}

	labels := map[string]operatorv1.LabelValue{}
	for k, v := range own.Spec.Template.Labels {
		labels[k] = operatorv1.LabelValue(v)
	}

	nss := by("attack-ambit", labels, &injector{})
	if err := user.Create(w.Context(), nss); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = w.Client.Delete(cleanup(), nss) })

	generation := own.Generation

	if c := decided(w, nss, "WorkloadsInjected"); c.Reason != "InjectionRefused" {
		t.Errorf("it says %+v", c)
	}

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Fatal(err)
	}

	if own.Generation != generation {
		t.Errorf("Ambit's own Deployment was changed: %s", inJSON(own.Spec.Template.Spec))
	}
}

// TestCSVInjectorIsConfined goes the other way into operators: by what OLM makes them from.
func TestCSVInjectorIsConfined(t *testing.T) {
	w := beginTwo(t)
	user := editor(w, "editor-of-operators")
	fromOLM := map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}

	csvs := map[string]*unstructured.Unstructured{
		"plain":   clusterServiceVersion("plain", "default", nil),
		"olm":     clusterServiceVersion("olm", "default", map[string]any{"name": "WATCH_NAMESPACE", "valueFrom": fromOLM}),
		"literal": clusterServiceVersion("literal", "default", map[string]any{"name": "WATCH_NAMESPACE", "value": "one"}),
		"ambit":   clusterServiceVersion("ambit", embedded.ServiceAccount, nil),
	}
	before := map[string]any{}

	for name, csv := range csvs {
		w.Make(csv)

		before[name], _, _ = unstructured.NestedFieldCopy(csv.Object, "spec")
	}

	nss := by("attack-operators", map[string]operatorv1.LabelValue{"sidecar.istio.io/inject": "true"}, nil)
	nss.Spec.CSVInjector = &operatorv1.Injector{}

	if err := user.Create(w.Context(), nss); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = w.Client.Delete(cleanup(), nss) })

	changed := func(name string) bool {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(csvs[name]), csvs[name]); err != nil {
			t.Fatal(err)
		}

		return !reflect.DeepEqual(csvs[name].Object["spec"], before[name])
	}

	if c := decided(w, nss, "CSVsInjected"); c.Reason != "InjectionFailed" {
		t.Errorf("it says %+v", c)
	}

	for name := range csvs {
		if changed(name) {
			t.Errorf("a label of the author's choice came into %s: %s", name, inJSON(csvs[name].Object["spec"]))
		}
	}

	w.Change(nss, func() { nss.Spec.RestartLabels = nil })
	w.Eventually("what may be injected into is", func() error {
		if !changed("plain") || !changed("olm") {
			return errUndecided
		}

		return nil
	})

	for _, name := range []string{"literal", "ambit"} {
		if changed(name) {
			t.Errorf("%s was injected into: %s", name, inJSON(csvs[name].Object["spec"]))
		}
	}
}

func clusterServiceVersion(name, account string, variable map[string]any) *unstructured.Unstructured {
	container := map[string]any{"name": "manager", "image": "x"}
	if variable != nil {
		container["env"] = []any{variable}
	}

	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"displayName": name,
		"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{map[string]any{
			"name": name, "spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"name": name}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"name": name}},
					// The older name of the field means the same.
					"spec": map[string]any{"serviceAccount": account, "containers": []any{container}},
				},
			},
		}}}},
	}}}
	u.SetAPIVersion("operators.coreos.com/v1alpha1")
	u.SetKind("ClusterServiceVersion")
	u.SetNamespace(embedded.Namespace)
	u.SetName(name + ".v1")
	u.SetLabels(map[string]string{"operators.coreos.com/" + name + "." + embedded.Namespace: ""})
	u.SetAnnotations(map[string]string{"nss.operator.ibm.com/managed-operators": name})

	return u
}

func inJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}

	return string(raw)
}
