package facts

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodSpec is the part of a pod's spec into which something can be injected.
type PodSpec struct {
	// Containers are the init containers and then the others, each in order.
	Containers []Container
	Volumes    []Volume
}

// Container is a container of a pod template.
type Container struct {
	Name string
	// Init says that it is an init container; Index is its place among those of its sort.
	Init   bool
	Index  int
	Env    []corev1.EnvVar
	Args   []string
	Mounts []Mount
	// EnvFrom are the prefixes of the variables that come from a whole ConfigMap or Secret.
	EnvFrom []string
}

// Mount is where a volume appears in a container.
type Mount struct{ Path, Volume string }

// Volume is a volume of a pod. ConfigMap is its source, or empty.
type Volume struct{ Name, ConfigMap string }

// CSV is a ClusterServiceVersion of the operator namespace that OLM did not copy there.
type CSV struct {
	Name    string
	Version uint64
	// Components are the labels by which OLM marks the CSVs of a package, without their common prefix.
	Components []string
	// ManagedOperators is the annotation of that name, ManagedWebhooks whether there is one of that name.
	ManagedOperators string
	ManagedWebhooks  bool
	// Replaced is the annotation in which Ambit remembers what it wrote over.
	Replaced string
	// Annotated says that it has annotations at all.
	Annotated bool
	// Problem says why its deployments cannot be read; empty when they can.
	Problem     string
	Deployments []CSVDeployment
}

// CSVDeployment is a Deployment that OLM makes for a CSV.
type CSVDeployment struct {
	Name string
	// Selector is what its pods must match; nil where it says nothing.
	Selector *metav1.LabelSelector
	// Bare says that its pod template has no metadata, to which labels could be added.
	Bare     bool
	Template Template
	PodSpec  PodSpec
}

// Twice is the first name that two Deployments of a CSV have, however they were read; empty when there is none.
func Twice[T any](deployments []T, name func(*T) string) string {
	seen := map[string]struct{}{}

	for i := range deployments {
		if _, twice := seen[name(&deployments[i])]; twice {
			return name(&deployments[i])
		}

		seen[name(&deployments[i])] = struct{}{}
	}

	return ""
}

// The kinds of webhook configurations.
const (
	MutatingWebhooks   = "MutatingWebhookConfiguration"
	ValidatingWebhooks = "ValidatingWebhookConfiguration"
)

// WebhookConfiguration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration that OLM or Ambit made for a CSV.
type WebhookConfiguration struct {
	Kind, Name string
	Version    uint64
	// Made says that Ambit made it.
	Made bool
	// CSV is the name of the CSV, in the operator namespace.
	CSV      string
	Webhooks []Webhook
	// Replaced is the annotation in which Ambit remembers what it put in; Annotated whether there are annotations at all.
	Replaced  string
	Annotated bool
}

// Webhook is one webhook of a configuration.
type Webhook struct {
	// Selected says that it has a namespaceSelector; Requirements are the matchExpressions of that.
	Selected     bool
	Requirements []Requirement
}

// Requirement is one of the matchExpressions of a selector. Values are joined by commas, which none of them can hold.
type Requirement struct{ Key, Operator, Values string }

// LimitOf is the place of the requirement by which a scope limits one of the webhooks: the last one with the values that the
// annotation remembers, since it is added at the end; -1 when there is none.
func (c *WebhookConfiguration) LimitOf(webhook int) int {
	if c.Replaced == "" {
		return -1
	}

	for i, r := range slices.Backward(c.Webhooks[webhook].Requirements) {
		if r.IsOfNames() && r.Values == c.Replaced {
			return i
		}
	}

	return -1
}

// IsOfNames says whether it lists namespaces by name.
func (r *Requirement) IsOfNames() bool {
	return r.Key == corev1.LabelMetadataName && r.Operator == string(metav1.LabelSelectorOpIn)
}

// LimitTo is the requirement that limits a webhook to namespaces, which are separated by commas.
func LimitTo(namespaces string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: strings.Split(namespaces, ","),
	}
}
