package injection_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/crds"
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	managedOperators = "nss.operator.ibm.com/managed-operators"
	managedWebhooks  = "nss.operator.ibm.com/managed-webhooks"
)

// withOLM installs the definition of ClusterServiceVersions, as OLM does.
func (w *world) withOLM() {
	w.Helper()

	err := w.Client.Create(w.Context(), csvDefinition())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}

	w.Eventually("ClusterServiceVersions are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(olmv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))

		return w.Client.List(w.Context(), list)
	})
}

func csvDefinition() *unstructured.Unstructured {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crds.ClusterServiceVersion())
	if err != nil {
		panic(err)
	}

	u := &unstructured.Unstructured{Object: raw}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	unstructured.RemoveNestedField(u.Object, "status")

	return u
}

// csv is a ClusterServiceVersion with deployments of one container each, which has the variable as given.
func csv(ops, name, pkg string, annotations map[string]string, deployments ...string) *olmv1alpha1.ClusterServiceVersion {
	c := &olmv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: olmv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterServiceVersion"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name, Annotations: annotations, Labels: map[string]string{
			"operators.coreos.com/" + component(pkg, ops): "",
		}},
	}
	c.Spec.DisplayName = name
	c.Spec.InstallStrategy.StrategyName = olmv1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []olmv1alpha1.StrategyDeploymentSpec{} // The schema wants it.

	for _, d := range deployments {
		labels := map[string]string{"name": d}
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs,
			olmv1alpha1.StrategyDeploymentSpec{Name: d, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					ServiceAccountName: "default", TerminationGracePeriodSeconds: new(int64(0)),
					InitContainers: []corev1.Container{{Name: "prepare", Image: "x"}},
					Containers: []corev1.Container{{Name: "manager", Image: "x", Env: []corev1.EnvVar{
						{Name: "OPERATOR_NAME", Value: d},
						{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
							FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
						}},
						{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
							FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
						}},
					}}},
				}},
			}})
	}

	return c
}

func component(pkg, ops string) string {
	name := pkg + "." + ops

	return strings.TrimRight(name[:min(len(name), 63)], "-_.")
}

// publish applies a ClusterServiceVersion as OLM does, and waits for nothing.
func (w *world) publish(c *olmv1alpha1.ClusterServiceVersion) {
	w.Helper()
	w.Make(asUnstructured(c))
}

func asUnstructured(c *olmv1alpha1.ClusterServiceVersion) *unstructured.Unstructured {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}

	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		panic(err)
	}

	delete(u.Object, "status")

	return u
}

// get reads a ClusterServiceVersion into OLM's types.
func (w *world) get(ops, name string) (*olmv1alpha1.ClusterServiceVersion, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(olmv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"))

	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: ops, Name: name}, u); err != nil {
		return nil, err
	}

	raw, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}

	c := &olmv1alpha1.ClusterServiceVersion{}

	return c, json.Unmarshal(raw, c)
}

const (
	fromOLM  = "manager WATCH_NAMESPACE=field metadata.annotations['olm.targetNamespaces']"
	fromList = "manager WATCH_NAMESPACE=configmap namespace-scope/namespaces (optional)"
	initList = "prepare WATCH_NAMESPACE=configmap namespace-scope/namespaces (optional)"
)

// injected waits until every deployment of a CSV reads the list, and original until it is as published.
func (w *world) injected(ops, name string) {
	w.Helper()
	w.deploys(ops, name, true)
}

func (w *world) original(ops, name string) {
	w.Helper()
	w.deploys(ops, name, false)
}

func (w *world) deploys(ops, name string, injected bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s injected: %t", name, injected), func() error {
		c, err := w.get(ops, name)
		if err != nil {
			return err
		}

		for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			want := []string{"manager OPERATOR_NAME=" + d.Name, fromOLM, "manager POD_NAME=field metadata.name"}
			if injected {
				want = []string{initList, want[0], fromList, want[2]}
			}

			if got := environment(&d.Spec.Template.Spec); !slices.Equal(got, want) {
				return fmt.Errorf("%s has\n%s", d.Name, strings.Join(got, "\n"))
			}

			if _, labelled := d.Spec.Template.Labels["intent"]; labelled != injected {
				return fmt.Errorf("labels %v", d.Spec.Template.Labels)
			}
		}

		if _, remembers := c.Annotations["ambit.dev/replaced"]; remembers != injected {
			return fmt.Errorf("annotations %v", c.Annotations)
		}

		return nil
	})
}

func withCSVs(members ...string) operatorv1.NamespaceScopeSpec {
	return operatorv1.NamespaceScopeSpec{NamespaceMembers: members, CSVInjector: &operatorv1.Injector{Enable: new(true)}}
}

// covers waits until the status names packages as covered and as injected.
func (w *world) covers(nss *operatorv1.NamespaceScope, managed, patched string) {
	w.Helper()
	w.Eventually("the status covers "+managed+" and has "+patched, func() error {
		w.read(nss)

		m, p := strings.Join(nss.Status.ManagedCSVList, ","), strings.Join(nss.Status.PatchedCSVList, ",")
		if m != managed || p != patched {
			return fmt.Errorf("managed %q, patched %q, %+v", m, p, nss.Status.Conditions)
		}

		return nil
	})
}

func TestOperatorsOfOLMReadTheList(t *testing.T) {
	w := begin(t)
	w.withOLM()
	ops, member := w.Namespace("ops"), w.Namespace("member")

	// The annotation names its own package and one that nobody can annotate, with blanks, twice and with nothing in between.
	w.publish(csv(ops, "my-operator1.v1.0.0", "my-operator1", map[string]string{
		managedOperators: "my-operator1, my-thirdparty-operator,,my-operator1,not-installed",
	}, "operator", "webhook"))
	w.publish(csv(ops, "thirdparty.v2.0.0", "my-thirdparty-operator", nil, "thirdparty"))
	w.publish(csv(ops, "unrelated.v1.0.0", "unrelated", nil, "unrelated"))
	copied := csv(ops, "elsewhere.v1.0.0", "my-operator1", map[string]string{managedOperators: "unrelated"}, "elsewhere")
	copied.Labels["olm.copiedFrom"] = "openshift-operators"
	w.publish(copied)

	nss := w.Scope(ops, withCSVs(member))
	w.injected(ops, "my-operator1.v1.0.0")
	w.injected(ops, "thirdparty.v2.0.0")
	w.covers(nss, "my-operator1,my-thirdparty-operator,not-installed", "my-operator1,my-thirdparty-operator")
	w.says(nss, "CSVsInjected", yes, "Injected")
	w.Reports(nss, yes, "Reconciled")
	w.original(ops, "unrelated.v1.0.0")
	w.original(ops, "elsewhere.v1.0.0")

	// An upgrade is a CSV of another name.
	w.publish(csv(ops, "thirdparty.v2.1.0", "my-thirdparty-operator", nil, "thirdparty"))
	w.injected(ops, "thirdparty.v2.1.0")

	// A package leaves the annotation.
	u := asUnstructured(csv(ops, "my-operator1.v1.0.0", "", nil))
	w.Change(u, func() { u.SetAnnotations(with(u.GetAnnotations(), managedOperators, "my-operator1")) })
	w.original(ops, "thirdparty.v2.0.0")
	w.original(ops, "thirdparty.v2.1.0")
	w.covers(nss, "my-operator1", "my-operator1")

	// Somebody undoes a part of it.
	w.Change(u, func() {
		deployments, _, _ := unstructured.NestedSlice(u.Object, "spec", "install", "spec", "deployments")
		path := []string{"spec", "template", "metadata", "labels", "intent"}
		unstructured.RemoveNestedField(deployments[1].(map[string]any), path...)

		if err := unstructured.SetNestedSlice(u.Object, deployments, "spec", "install", "spec", "deployments"); err != nil {
			t.Fatal(err)
		}
	})
	w.injected(ops, "my-operator1.v1.0.0")

	w.Change(nss, func() { nss.Spec.CSVInjector.Enable = new(false) })
	w.original(ops, "my-operator1.v1.0.0")
	w.covers(nss, "", "")

	w.Change(nss, func() { nss.Spec.CSVInjector.Enable = new(true) })
	w.injected(ops, "my-operator1.v1.0.0")
	w.Remove(nss)
	w.original(ops, "my-operator1.v1.0.0")
	w.Eventually("the scope goes", w.Gone(nss))
}

func with(m map[string]string, k, v string) map[string]string {
	m[k] = v

	return m
}

func TestUnusualCSVs(t *testing.T) {
	w := begin(t)
	w.withOLM()
	ops := w.Namespace("ops-of-a-team-with-a-rather-long-name")

	long := "an-operator-whose-package-has-a-long-name"
	w.publish(csv(ops, "long", long, map[string]string{managedOperators: long + ",empty,bare,stubborn,literal,odd"}, "long"))
	w.publish(csv(ops, "empty", "empty", nil))

	bare := csv(ops, "bare", "bare", nil, "bare")
	spec := &bare.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
	spec.Labels, spec.Spec.InitContainers, spec.Spec.Containers[0].Env = nil, nil, nil
	w.publish(bare)

	stubborn := csv(ops, "stubborn", "stubborn", nil, "stubborn")
	d := &stubborn.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	d.Selector.MatchLabels["intent"], d.Template.Labels = "other", map[string]string{"name": "stubborn", "intent": "other"}
	w.publish(stubborn)

	literal := csv(ops, "literal", "literal", nil, "literal")
	manager := &literal.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	manager.Env[1] = corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "one,two"}
	w.publish(literal)

	// A version that nobody can parse must not hide the others.
	odd := asUnstructured(csv(ops, "odd", "odd", nil, "odd"))
	if err := unstructured.SetNestedField(odd.Object, "latest", "spec", "version"); err != nil {
		t.Fatal(err)
	}

	w.Make(odd)

	nss := w.Scope(ops, withCSVs())
	w.injected(ops, "long")
	w.Eventually("the CSV without a variable has one", func() error {
		c, err := w.get(ops, "bare")
		if err != nil {
			return err
		}

		template := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
		if got := environment(&template.Spec); !slices.Equal(got, []string{fromList}) || template.Labels["intent"] != "projected" {
			return fmt.Errorf("%v %v", got, template.Labels)
		}

		return nil
	})

	w.says(nss, "CSVsInjected", no, "InjectionFailed",
		"ClusterServiceVersion stubborn, deployment stubborn: its selector asks for intent=other")
	w.covers(nss, long+",bare,empty,literal,odd,stubborn", long+",bare,literal,odd")

	w.Remove(nss)
	w.original(ops, "long")
	w.Eventually("the literal is back", func() error {
		c, err := w.get(ops, "literal")
		if err != nil {
			return err
		}

		got := environment(&c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec)
		if !slices.Contains(got, "manager WATCH_NAMESPACE=one,two") {
			return fmt.Errorf("%v", got)
		}

		return nil
	})
}
