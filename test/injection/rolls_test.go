package injection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

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

// olm plays OLM's part in a namespace: it writes the deployments of each CSV whenever they differ, with its labels and the
// annotations of the operator group on the pods.
func (w *world) olm(ops string) {
	w.Helper()

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})

	w.Cleanup(func() { stop(); <-done })

	go func() {
		defer close(done)

		for ctx.Err() == nil {
			if err := deploy(ctx, w.Client, ops); err != nil && ctx.Err() == nil {
				w.Logf("playing OLM: %v", err)
			}

			time.Sleep(100 * time.Millisecond)
		}
	}()
}

func deploy(ctx context.Context, c client.Client, ops string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(olmv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))

	if err := c.List(ctx, list, client.InNamespace(ops)); err != nil {
		return err
	}

	for i := range list.Items {
		u := &list.Items[i]
		strategy := olmv1alpha1.NamedInstallStrategy{}
		install, _, _ := unstructured.NestedMap(u.Object, "spec", "install")

		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(install, &strategy); err != nil {
			return err
		}

		for _, spec := range strategy.StrategySpec.DeploymentSpecs {
			d := &appsv1.Deployment{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: spec.Name, Labels: map[string]string{
					"olm.owner": u.GetName(), "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": ops,
				}},
				Spec: spec.Spec,
			}
			d.Spec.Template.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.targetNamespaces": ops}

			live := &appsv1.Deployment{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(d), live); apierrors.IsNotFound(err) {
				err = c.Create(ctx, d, client.FieldOwner("olm"))
				if err != nil {
					return err
				}

				continue
			} else if err != nil {
				return err
			}

			// OLM compares what the CSV asks for, and writes the whole template.
			if !slices.Equal(environment(&live.Spec.Template.Spec), environment(&d.Spec.Template.Spec)) {
				live.Spec.Template = d.Spec.Template
				if err := c.Update(ctx, live, client.FieldOwner("olm")); err != nil && !apierrors.IsConflict(err) {
					return err
				}
			}
		}
	}

	return nil
}

// TestOLMRollsOnce lives beside OLM: what Ambit writes into a CSV, OLM rolls out, once; after that a new list evicts the pods
// and changes no template; and what is taken back rolls once more.
func TestOLMRollsOnce(t *testing.T) {
	w := begin(t)
	w.withOLM()
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.publish(csv(ops, "operator.v1", "operator", map[string]string{managedOperators: "operator"}, "operator"))
	w.olm(ops)

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "operator"}}
	w.Eventually("OLM has deployed", func() error { return w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d) })
	w.settled(d)

	// Also an injector of workloads leaves alone what OLM owns.
	spec := withCSVs(member)
	spec.WorkloadInjector = &operatorv1.WorkloadInjector{}
	nss := w.Scope(ops, spec)
	w.shows(d, initList, "manager OPERATOR_NAME=operator", fromList, "manager POD_NAME=field metadata.name")
	w.RestIn(ops)

	if n := w.settled(d); n != 2 {
		t.Errorf("%d rollouts, want OLM's first and the one of the injection", n)
	}

	first := w.pod(ops)
	w.says(nss, "CSVsInjected", yes, "Injected")

	more := w.Namespace("more")
	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{member, more} })
	w.lists(ops, sorted(ops, member, more))
	w.Eventually("the pod is another one", func() error {
		if w.pod(ops) == first {
			return errors.New("it is the same")
		}

		return nil
	})

	if n := w.settled(d); n != 2 {
		t.Errorf("%d rollouts: a new list changes no template of OLM's", n)
	}

	w.Remove(nss)
	w.shows(d, "manager OPERATOR_NAME=operator", fromOLM, "manager POD_NAME=field metadata.name")
	w.Eventually("the scope goes", w.Gone(nss))
	w.settled(d)

	// Events are sent when there is time.
	w.Eventually("one restart is told, for the list: an injection restarts by itself", func() error {
		var events corev1.EventList
		if err := w.Client.List(w.Context(), &events, client.InNamespace(ops)); err != nil {
			return err
		}

		restarts := 0

		for i := range events.Items {
			if events.Items[i].Reason == "WorkloadRestarted" {
				restarts += int(max(1, events.Items[i].Count))
			}
		}

		if restarts != 1 {
			return fmt.Errorf("%d restarts", restarts)
		}

		return nil
	})
}

// pod is the name of the only pod of a namespace that is not on its way out.
func (w *world) pod(ops string) string {
	w.Helper()

	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(ops)); err != nil {
		w.Fatal(err)
	}

	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return pods.Items[i].Name
		}
	}

	return ""
}
