package installs_test

import (
	"fmt"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// told waits until a CSV, its pods and the status of its group say the same targets.
func (w *world) told(c *olm.ClusterServiceVersion, g *operatorsv1.OperatorGroup) {
	w.Helper()
	w.Eventually("the operator is told of its group", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}

		want := map[string]string{
			"olm.operatorGroup": g.Name, "olm.operatorNamespace": g.Namespace,
			"olm.targetNamespaces": strings.Join(g.Status.Namespaces, ","),
		}
		if err := has(c.Annotations, want); err != nil {
			return fmt.Errorf("the CSV: %w", err)
		}

		for _, spec := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			if err := w.podsTold(c, spec.Name, want); err != nil {
				return err
			}
		}

		return nil
	})
}

func (w *world) podsTold(c *olm.ClusterServiceVersion, name string, want map[string]string) error {
	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, d); err != nil {
		return err
	}

	if err := has(d.Spec.Template.Annotations, want); err != nil {
		return fmt.Errorf("deployment %s: %w", name, err)
	}

	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(c.Namespace),
		client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return err
	}

	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil {
			continue
		}

		if err := has(p.Annotations, want); err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}

		env := p.Spec.Containers[0].Env
		if last := env[len(env)-1]; last.Name != "OPERATOR_CONDITION_NAME" || last.Value != c.Name {
			return fmt.Errorf("pod %s has the environment %+v", p.Name, env)
		}
	}

	if len(pods.Items) == 0 {
		return fmt.Errorf("deployment %s has no pods", name)
	}

	return nil
}

func has(have, want map[string]string) error {
	for key, value := range want {
		if got, found := have[key]; !found || got != value {
			return fmt.Errorf("annotation %s is %q, want %q", key, got, value)
		}
	}

	return nil
}
