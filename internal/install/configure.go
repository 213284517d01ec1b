package install

import (
	"cmp"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Config is what a Subscription says about the Deployments of its operator.
type Config struct {
	// Subscription is its name, and Package that of what it is for.
	Subscription, Package string
	Says                  olm.SubscriptionConfig
	// Problem says why it cannot be read; empty when it can.
	Problem string
	// LeftOut says that the Subscription is not remembered, so that nobody knows what it says.
	LeftOut bool

	// size is about how many bytes of memory it takes.
	size int
}

// LeftOutConfig returns the config of a Subscription of which only the status is known, and the CSVs that it is for.
func LeftOutConfig(subscription *unstructured.Unstructured) (csvs []string, config *Config) {
	return configures(subscription), &Config{
		Subscription: subscription.GetName(), LeftOut: true,
		Problem: fmt.Sprintf("Subscription %s is left out: namespace %s holds more Subscriptions than may be remembered, and this is "+
			"one of the largest; what it configures stays as it is", subscription.GetName(), subscription.GetNamespace()),
	}
}

// configures are the CSVs that a Subscription says something about.
func configures(subscription *unstructured.Unstructured) (csvs []string) {
	for _, field := range []string{"installedCSV", "currentCSV"} {
		if name, _, _ := unstructured.NestedString(subscription.Object, "status", field); name != "" {
			csvs = append(csvs, name)
		}
	}

	return csvs
}

// ReadConfig reads spec.config of a Subscription, and which CSVs it is for; nil when it says nothing.
func ReadConfig(subscription *unstructured.Unstructured) (csvs []string, config *Config) {
	raw, found, err := unstructured.NestedMap(subscription.Object, "spec", "config")
	if err == nil && !found {
		return nil, nil
	}

	csvs, config = configures(subscription), &Config{Subscription: subscription.GetName()}
	config.Package, _, _ = unstructured.NestedString(subscription.Object, "spec", "name")

	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &config.Says)
	}

	if err == nil {
		config.size = weight(raw)
		_, err = config.selector()
	}

	if err != nil {
		config.Problem = fmt.Sprintf("spec.config of Subscription %s cannot be read: %v", config.Subscription, err)
	}

	return csvs, config
}

// selector says which pods are configured: all, where nothing is said.
func (c *Config) selector() (labels.Selector, error) {
	if c.Says.Selector == nil {
		return labels.Everything(), nil
	}

	selector, err := metav1.LabelSelectorAsSelector(c.Says.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}

	return selector, nil
}

// configure puts what a Subscription says into a Deployment, as OLM does (pkg/controller/operators/olm/overrides/inject): into
// every container, but not into init containers. Of two entries with one name that of the Subscription counts, except among
// annotations.
func (c *Config) configure(d *appsv1.Deployment) {
	pods := &d.Spec.Template

	selector, err := c.selector()
	if err != nil || !selector.Matches(labels.Set(pods.Labels)) {
		return
	}

	says := c.Says.DeepCopy()
	says.Env = lastOf(says.Env)

	// Among annotations, those of the operator itself count.
	d.Annotations = merged(says.Annotations, d.Annotations)
	pods.Annotations = merged(says.Annotations, pods.Annotations)
	pods.Spec.Tolerations = replaced(pods.Spec.Tolerations, says.Tolerations, func(a, b *corev1.Toleration) bool {
		return a.MatchToleration(b)
	})
	pods.Spec.Volumes = replaced(pods.Spec.Volumes, says.Volumes, isSameVolume)
	pods.Spec.Affinity = affinity(pods.Spec.Affinity, says.Affinity)

	if says.NodeSelector != nil {
		pods.Spec.NodeSelector = says.NodeSelector
	}

	for i := range pods.Spec.Containers {
		into := &pods.Spec.Containers[i]
		into.Env = replaced(into.Env, says.Env, func(a, b *corev1.EnvVar) bool { return a.Name == b.Name })
		into.EnvFrom = append(into.EnvFrom, slices.DeleteFunc(slices.Clone(says.EnvFrom), func(e corev1.EnvFromSource) bool {
			return slices.ContainsFunc(into.EnvFrom, func(have corev1.EnvFromSource) bool { return sameSource(&have, &e) })
		})...)
		into.VolumeMounts = replaced(into.VolumeMounts, says.VolumeMounts, isSameMount)

		if says.Resources != nil {
			into.Resources = *says.Resources
		}
	}
}

// lastOf are variables without those that a later one of the same name overrides. A pod may have both, but server-side apply
// takes no name twice: the Deployment could be made, and never be changed.
func lastOf(env []corev1.EnvVar) []corev1.EnvVar {
	last := make(map[string]int, len(env))
	for i := range env {
		last[env[i].Name] = i
	}

	var out []corev1.EnvVar

	for i := range env {
		if last[env[i].Name] == i {
			out = append(out, env[i])
		}
	}

	return out
}

func sameSource(a, b *corev1.EnvFromSource) bool {
	return a.Prefix == b.Prefix && isDerived(*a, *b) && isDerived(*b, *a)
}

// affinity overrides the parts that are given; an empty part takes away what the operator says.
func affinity(has, says *corev1.Affinity) *corev1.Affinity {
	if says == nil {
		return has
	}

	out := cmp.Or(has.DeepCopy(), &corev1.Affinity{})
	out.NodeAffinity = cmp.Or(says.NodeAffinity, out.NodeAffinity)
	out.PodAffinity = cmp.Or(says.PodAffinity, out.PodAffinity)
	out.PodAntiAffinity = cmp.Or(says.PodAntiAffinity, out.PodAntiAffinity)

	return out
}
