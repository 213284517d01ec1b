package injection_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func injecting(members ...string) operatorv1.NamespaceScopeSpec {
	return operatorv1.NamespaceScopeSpec{NamespaceMembers: members, WorkloadInjector: &operatorv1.WorkloadInjector{}}
}

// settled waits until the rollout of a Deployment is over, and returns how many there were.
func (w *world) settled(d *appsv1.Deployment) int {
	w.Helper()
	w.Eventually(d.Name+" is rolled out", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}

		if !testbed.RolledOut(d) {
			return fmt.Errorf("%+v", d.Status)
		}

		return nil
	})

	var sets appsv1.ReplicaSetList
	if err := w.Client.List(w.Context(), &sets, client.InNamespace(d.Namespace)); err != nil {
		w.Fatal(err)
	}

	n := 0

	for i := range sets.Items {
		if metav1.IsControlledBy(&sets.Items[i], d) {
			n++
		}
	}

	return n
}

func TestOperatorsOfHelmReadTheList(t *testing.T) {
	w := begin(t)
	ops, member := w.Namespace("ops"), w.Namespace("member")
	k, c := w.install(ops, keda), w.install(ops, cnpg)
	w.settled(k)
	w.settled(c)

	nss := w.Scope(ops, injecting(member))
	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)
	w.shows(c, cnpgWith("manager WATCH_NAMESPACE=configmap namespace-scope/namespaces")...)
	w.says(nss, "WorkloadsInjected", yes, "Injected")
	w.Reports(nss, yes, "Reconciled")

	// A workload that changed under Ambit's hands is named only after the next try.
	w.Eventually("the status names the workloads", func() error {
		w.read(nss)

		got := strings.Join(nss.Status.InjectedWorkloads, ",")
		if got != "Deployment cnpg-controller-manager,Deployment keda-operator" {
			return fmt.Errorf("it names %q", got)
		}

		return nil
	})

	// The injection rolls the pods by itself. They begin with the list, so nothing else restarts them.
	w.RestIn(ops)

	if n := w.settled(k); n != 2 {
		t.Errorf("%d rollouts of keda-operator, want the first and the injection's", n)
	}

	if h := k.Spec.Template.Annotations["ambit.dev/namespaces-hash"]; h != "" {
		t.Errorf("it was restarted: %s", h)
	}

	// From now on it is a reader like any other.
	more := w.Namespace("more")
	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{member, more} })
	w.lists(ops, sorted(ops, member, more))
	w.Eventually("keda-operator restarts with the new list", func() error {
		w.read(k)

		if k.Spec.Template.Annotations["ambit.dev/namespaces-hash"] == "" {
			return errors.New("it does not")
		}

		return nil
	})

	// Helm upgrades what it owns, without a word about what it does not.
	if _, err := w.helm(ops, keda, "keda:2.17.1", "keda:2.17.2"); err != nil {
		t.Errorf("an upgrade by Helm: %v", err)
	}

	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)

	if k.Spec.Template.Spec.Containers[0].Image != "ghcr.io/kedacore/keda:2.17.2" {
		t.Errorf("the image is %s", k.Spec.Template.Spec.Containers[0].Image)
	}

	// Without the injector everything is as Helm wrote it.
	w.Change(nss, func() { nss.Spec.WorkloadInjector = nil })
	w.shows(k, kedaWith("")...)
	w.shows(c, cnpgWith()...)
	w.clean(k)
	w.clean(c)
}

// clean says that nothing of the injector is left in an object.
func (w *world) clean(obj client.Object) {
	w.Helper()
	w.Eventually("nothing of the injector is left in "+obj.GetName(), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		for _, e := range obj.GetManagedFields() {
			if e.Manager == "ambit-injector" {
				return fmt.Errorf("it owns %s", e.FieldsV1)
			}
		}

		for _, a := range []string{"ambit.dev/injected", "ambit.dev/injected-for", "ambit.dev/replaced"} {
			if v, is := obj.GetAnnotations()[a]; is {
				return fmt.Errorf("%s=%s", a, v)
			}
		}

		return nil
	})
}

func TestValueOfSomebodyElseIsReported(t *testing.T) {
	for name, tc := range map[string]struct{ set, says, shows string }{
		"a literal": {`value: monitoring`, "to a literal value", "monitoring"},
		"another ConfigMap": {
			`valueFrom: {configMapKeyRef: {name: mine, key: list}}`, "to key list of ConfigMap mine", "configmap mine/list",
		},
		"a field": {
			`valueFrom: {fieldRef: {fieldPath: metadata.namespace}}`, "to field metadata.namespace", "field metadata.namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops := w.Namespace("ops")
			g := w.install(ops, grafana, "value: monitoring", tc.set)
			k := w.install(ops, keda)
			nss := w.Scope(ops, injecting())

			w.says(nss, "WorkloadsInjected", no, "InjectionConflict",
				"Deployment grafana-operator: container grafana-operator: WATCH_NAMESPACE is set already, "+tc.says)
			w.Reports(nss, no, "InjectionFailed")
			w.shows(g, grafanaWith(tc.shows)...)
			w.clean(g)
			// The other operator is served all the same.
			w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)

			// Asked for, it is written over, and put back afterwards.
			w.Change(nss, func() { nss.Spec.WorkloadInjector.Conflicts = operatorv1.ReplaceConflicts })
			w.shows(g, grafanaWith("configmap namespace-scope/namespaces")...)
			w.Reports(nss, yes, "Reconciled")
			w.Remove(nss)
			w.shows(g, grafanaWith(tc.shows)...)
			w.clean(g)
			w.clean(k)

			// Helm owns it again with its next upgrade, and may change it with the one after.
			w.install(ops, grafana, "value: monitoring", tc.set)
			w.install(ops, grafana, "value: monitoring", "value: elsewhere")
		})
	}
}

func TestArgumentsAndFile(t *testing.T) {
	w := begin(t)
	ops, member := w.Namespace("ops"), w.Namespace("member")
	c := w.install(ops, cnpg, "args:", "#")
	k := w.install(ops, keda)
	spec := injecting(member)
	spec.WorkloadInjector = &operatorv1.WorkloadInjector{
		Variable: new("SCOPE"), Arguments: []string{"--watch-namespaces=$(SCOPE)"}, MountPath: "/etc/scope",
		Containers: []string{"manager"},
	}
	nss := w.Scope(ops, spec)

	w.shows(c, cnpgWith("manager SCOPE=configmap namespace-scope/namespaces")...)
	w.Reports(nss, yes, "Reconciled")

	got := &c.Spec.Template.Spec
	if a := strings.Join(got.Containers[0].Args, " "); a != "--watch-namespaces=$(SCOPE)" {
		t.Errorf("the arguments are %q", a)
	}

	if len(got.Volumes) != 1 || got.Volumes[0].ConfigMap == nil || got.Volumes[0].ConfigMap.Name != "namespace-scope" ||
		len(got.Containers[0].VolumeMounts) != 1 || got.Containers[0].VolumeMounts[0].MountPath != "/etc/scope" {
		t.Errorf("the list is not mounted: %+v, %+v", got.Volumes, got.Containers[0].VolumeMounts)
	}

	// A workload that has none of the containers is none of ours.
	w.clean(k)

	// Where the arguments are Helm's, they are a conflict; replaced, they come after Helm's own.
	w.Change(nss, func() { nss.Spec.WorkloadInjector.Containers = []string{"keda-operator"} })
	w.clean(c)
	w.says(nss, "WorkloadsInjected", no, "InjectionConflict")
	w.Change(nss, func() { nss.Spec.WorkloadInjector.Conflicts = operatorv1.ReplaceConflicts })
	w.says(nss, "WorkloadsInjected", yes, "Injected")
	// They may come with a second try, when Kubernetes wrote the Deployment's status during the first.
	w.Eventually("the arguments are injected", func() error {
		w.read(k)

		args := strings.Join(k.Spec.Template.Spec.Containers[0].Args, " ")
		if args != "--leader-elect --zap-log-level=info --watch-namespaces=$(SCOPE)" {
			return fmt.Errorf("they are %q", args)
		}

		return nil
	})

	w.Change(nss, func() { nss.Spec.WorkloadInjector.Enable = new(false) })
	w.clean(k)

	if s := &k.Spec.Template.Spec; strings.Join(s.Containers[0].Args, " ") != "--leader-elect --zap-log-level=info" ||
		len(s.Volumes) != 1 || len(s.Containers[0].VolumeMounts) != 1 || len(s.Containers[0].Env) != 3 {
		t.Errorf("something is left: %+v", s)
	}
}

func TestEveryKindAndContainer(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	labels := map[string]string{"name": "op", "intent": "projected"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "prepare", Image: "x"}},
		Containers:     []corev1.Container{{Name: "operator", Image: "x"}, {Name: "proxy", Image: "x"}},
	}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"name": "op"}}
	called := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ops, Name: name} }
	stateful := &appsv1.StatefulSet{
		ObjectMeta: called("stateful"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template},
	}
	daemon := &appsv1.DaemonSet{
		ObjectMeta: called("daemon"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}
	other := &appsv1.Deployment{
		ObjectMeta: called("other"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: *template.DeepCopy()},
	}
	delete(other.Spec.Template.Labels, "intent")
	w.Make(stateful, daemon, other)

	nss := w.Scope(ops, injecting())
	want := []string{
		"prepare WATCH_NAMESPACE=configmap namespace-scope/namespaces", "operator WATCH_NAMESPACE=configmap namespace-scope/namespaces",
		"proxy WATCH_NAMESPACE=configmap namespace-scope/namespaces",
	}
	w.shows(stateful, want...)
	w.shows(daemon, want...)
	w.says(nss, "WorkloadsInjected", yes, "Injected")
	w.shows(other)

	// Drift: the variable is taken away, and comes back.
	w.Change(stateful, func() { stateful.Spec.Template.Spec.Containers[0].Env = nil })
	w.shows(stateful, want...)

	// A label that goes takes the injection with it.
	w.Change(nss, func() { nss.Spec.RestartLabels = map[string]operatorv1.LabelValue{"name": "op", "intent": "other"} })
	w.shows(stateful)
	w.clean(daemon)
	w.says(nss, "WorkloadsInjected", no, "NothingToInject")
}

// TestUnchangedWorldIsNotWritten looks at what is there: nobody wrote it again.
func TestUnchangedWorldIsNotWritten(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	k := w.install(ops, keda)
	g := w.install(ops, grafana)
	nss := w.Scope(ops, injecting())
	w.says(nss, "WorkloadsInjected", no, "InjectionConflict")
	w.shows(k, kedaWith("configmap namespace-scope/namespaces")...)
	w.settled(k)
	w.settled(g)
	w.Eventually("the status names what is injected", func() error {
		if w.read(nss); len(nss.Status.InjectedWorkloads) != 1 {
			return fmt.Errorf("%v", nss.Status.InjectedWorkloads)
		}

		return nil
	})

	w.RestIn(ops)
	w.read(k)
	w.read(nss)

	before, status := k.Generation, nss.ResourceVersion

	w.RestIn(ops)
	w.read(k)
	w.read(nss)

	if k.Generation != before || nss.ResourceVersion != status {
		t.Errorf("generation %d became %d, the scope's version %s became %s", before, k.Generation, status, nss.ResourceVersion)
	}
}

func TestInjectorThatCannotWorkIsRefused(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")

	for reason, in := range map[string]operatorv1.WorkloadInjector{
		"nothing to inject":             {Variable: new("")},
		"arguments for whom?":           {Arguments: []string{"--x"}},
		"no name of a variable":         {Variable: new("A B")},
		"a relative path":               {MountPath: "etc"},
		"the root":                      {MountPath: "/"},
		"a policy that does not exist":  {Conflicts: "Force"},
		"an argument that says nothing": {Arguments: []string{""}, Containers: []string{"x"}},
	} {
		err := w.Client.Create(w.Context(), &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"},
			Spec:       operatorv1.NamespaceScopeSpec{WorkloadInjector: &in},
		})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
