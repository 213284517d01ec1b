package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Annotations of IBM's operator.
const (
	managedOperators = "nss.operator.ibm.com/managed-operators"
	managedWebhooks  = "nss.operator.ibm.com/managed-webhooks"
)

// PodSpec reads the part of a pod's spec into which something can be injected.
func PodSpec(spec *corev1.PodSpec) facts.PodSpec {
	var out facts.PodSpec

	for _, sort := range []struct {
		init       bool
		containers []corev1.Container
	}{{true, spec.InitContainers}, {false, spec.Containers}} {
		for i := range sort.containers {
			c := &sort.containers[i]
			into := facts.Container{Name: c.Name, Init: sort.init, Index: i, Env: c.Env, Args: c.Args}

			for _, from := range c.EnvFrom {
				into.EnvFrom = append(into.EnvFrom, from.Prefix)
			}

			for _, m := range c.VolumeMounts {
				into.Mounts = append(into.Mounts, facts.Mount{Path: m.MountPath, Volume: m.Name})
			}

			out.Containers = append(out.Containers, into)
		}
	}

	for i := range spec.Volumes {
		v := facts.Volume{Name: spec.Volumes[i].Name}
		if cm := spec.Volumes[i].ConfigMap; cm != nil {
			v.ConfigMap = cm.Name
		}

		out.Volumes = append(out.Volumes, v)
	}

	return out
}

// noteInjection reads Ambit's marks of an injection. What is to be restored may be any variable: where it was written with the
// status of a workload, by which annotations can be written, too, it is from somebody who may perhaps not write the rest.
func noteInjection(w *facts.Workload, obj client.Object) {
	annotations := obj.GetAnnotations()
	w.Injected, w.InjectedFor = annotations[scope.AnnotationInjected], annotations[scope.AnnotationInjectedFor]
	w.Replaced, w.Annotated = annotations[scope.AnnotationReplaced], len(annotations) > 0

	for _, e := range obj.GetManagedFields() {
		if e.Manager == scope.InjectionManager && e.Subresource == "" {
			w.Applied = w.Applied || e.Operation == metav1.ManagedFieldsOperationApply
			w.Patched = w.Patched || e.Operation == metav1.ManagedFieldsOperationUpdate
		}

		if e.Subresource != "" && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+scope.AnnotationReplaced+`"`) {
			w.Replaced = ""
		}
	}
}

// convertCSV keeps a ClusterServiceVersion that OLM did not copy from elsewhere. Only its install strategy is decoded into
// OLM's types: one whose version nobody can parse must not hide all the others of its namespace.
func convertCSV(obj client.Object) (facts.CSV, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || install.IsCopy(u) || u.GetDeletionTimestamp() != nil {
		return facts.CSV{}, false
	}

	annotations := u.GetAnnotations()
	csv := facts.CSV{
		Name:             u.GetName(),
		ManagedOperators: annotations[managedOperators], Replaced: annotations[scope.AnnotationReplaced],
		Annotated: len(annotations) > 0,
	}
	_, csv.ManagedWebhooks = annotations[managedWebhooks]

	for key := range u.GetLabels() {
		if name, is := strings.CutPrefix(key, scope.PackagePrefix); is {
			csv.Components = append(csv.Components, name)
		}
	}

	slices.Sort(csv.Components)

	csv.Deployments, csv.Problem = deploymentsOf(u)

	return csv, true
}

func deploymentsOf(u *unstructured.Unstructured) ([]facts.CSVDeployment, string) {
	install, _, err := unstructured.NestedMap(u.Object, "spec", "install")
	if err != nil {
		return nil, "its install strategy cannot be read"
	}

	var strategy olmv1alpha1.NamedInstallStrategy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(install, &strategy); err != nil {
		return nil, "its install strategy cannot be read"
	}

	if strategy.StrategyName != olmv1alpha1.InstallStrategyNameDeployment {
		return nil, ""
	}

	list, _, _ := unstructured.NestedFieldNoCopy(install, "spec", "deployments")
	written, _ := list.([]any) // Otherwise, it would not have become a list of OLM's type.

	var out []facts.CSVDeployment

	for i := range strategy.StrategySpec.DeploymentSpecs {
		d := &strategy.StrategySpec.DeploymentSpecs[i]
		out = append(out, facts.CSVDeployment{
			Name: d.Name, Selector: d.Spec.Selector, Bare: isBare(written[i]), PodSpec: PodSpec(&d.Spec.Template.Spec),
			Template: Template(&d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec),
		})
	}

	return out, ""
}

// isBare says whether the pod template of a deployment has no metadata. OLM's type has some either way.
func isBare(deployment any) bool {
	d, _ := deployment.(map[string]any)
	metadata, _, _ := unstructured.NestedFieldNoCopy(d, "spec", "template", "metadata")
	_, has := metadata.(map[string]any)

	return !has
}

// webhookRecord is a webhook configuration and the namespace of the CSV that it belongs to.
type webhookRecord struct {
	operatorNamespace string
	facts.WebhookConfiguration
	// made is what is known of one that Ambit made for what is installed; nil for those of OLM.
	made *facts.InstalledWebhooks
}

func convertWebhooks(obj client.Object) (webhookRecord, bool) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	r := webhookRecord{operatorNamespace: labels[scope.LabelOLMOwnerNamespace], WebhookConfiguration: facts.WebhookConfiguration{
		Name: obj.GetName(), CSV: labels[scope.LabelOLMOwner], Made: writtenByAmbit(obj.GetManagedFields()),
		Replaced: annotations[scope.AnnotationReplaced], Annotated: len(annotations) > 0,
	}}

	r.Kind, _ = eachWebhook(obj, func(selector *metav1.LabelSelector) {
		r.Webhooks = append(r.Webhooks, webhook(selector))
	})

	if r.Made {
		r.made = r.installed(obj)
	}

	return r, r.operatorNamespace != "" && r.CSV != "" && labels[scope.LabelOLMOwnerKind] == scope.KindCSV
}

// eachWebhook looks at the webhooks of a configuration in order, and returns its kind and all of them.
func eachWebhook(obj client.Object, look func(selector *metav1.LabelSelector)) (kind string, all any) {
	switch o := obj.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			look(o.Webhooks[i].NamespaceSelector)
		}

		return facts.MutatingWebhooks, o.Webhooks
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			look(o.Webhooks[i].NamespaceSelector)
		}

		return facts.ValidatingWebhooks, o.Webhooks
	default:
		return "", nil
	}
}

// installed is what is known of a webhook configuration that Ambit made, apart from the limit that a scope adds to it.
func (r *webhookRecord) installed(obj client.Object) *facts.InstalledWebhooks {
	made := &facts.InstalledWebhooks{
		Kind: r.Kind, Name: r.Name, UID: string(obj.GetUID()), Owner: obj.GetLabels()[scope.LabelScope], Limit: r.Replaced,
	}

	var reach *metav1.LabelSelector

	unlimited, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
	index := 0
	_, content := eachWebhook(unlimited, func(selector *metav1.LabelSelector) {
		r.unlimit(index, selector)

		reach = selector
		index++
	})
	made.Content = facts.Shape(content)

	// Ambit makes configurations of one webhook; what reaches further by another one looks like no reach of Ambit's.
	if len(r.Webhooks) == 1 {
		made.Reach, made.Namespaces = facts.Shape(reach), r.namespaces()
	}

	return made
}

// unlimit takes the limit of a scope out of the selector of one of the webhooks.
func (r *webhookRecord) unlimit(webhook int, selector *metav1.LabelSelector) {
	if at := r.LimitOf(webhook); at >= 0 {
		selector.MatchExpressions = slices.Delete(selector.MatchExpressions, at, at+1)
	}
}

// namespaces are those to which the first webhook is limited by name, apart from the limit of a scope.
func (r *webhookRecord) namespaces() string {
	names, limit := "", r.LimitOf(0)

	for i, requirement := range r.Webhooks[0].Requirements {
		if i != limit && requirement.IsOfNames() {
			names = requirement.Values
		}
	}

	return names
}

func webhook(selector *metav1.LabelSelector) facts.Webhook {
	w := facts.Webhook{Selected: selector != nil}
	if selector == nil {
		return w
	}

	for _, r := range selector.MatchExpressions {
		w.Requirements = append(w.Requirements, facts.Requirement{
			Key: r.Key, Operator: string(r.Operator), Values: strings.Join(r.Values, ","),
		})
	}

	return w
}

// startWebhooks watches the webhook configurations that OLM or Ambit made.
func (w *Watches) startWebhooks(ctx context.Context) {
	made := client.MatchingLabels{scope.LabelOLMOwnerKind: scope.KindCSV}

	for kind, list := range map[string]client.ObjectList{
		facts.MutatingWebhooks:   &admissionv1.MutatingWebhookConfigurationList{},
		facts.ValidatingWebhooks: &admissionv1.ValidatingWebhookConfigurationList{},
	} {
		k := tableSink(w.store.webhooks[kind], convertWebhooks)
		start(ctx, w, &k, list, func() {}, nil, made)
	}
}

// newWebhooks returns the tables that startWebhooks fills. They delay no plan: limiting a webhook can wait.
func (s *Store) newWebhooks() {
	changed := func(_ types.NamespacedName, before, after *webhookRecord) {
		for _, r := range []*webhookRecord{before, after} {
			if r != nil {
				s.changed(scope.NamespaceScopes.In(r.operatorNamespace))

				if r.made != nil {
					s.changed(scope.Installs.In(r.operatorNamespace))
				}
			}
		}
	}
	s.webhooks = map[string]*table[webhookRecord]{
		facts.MutatingWebhooks: {changed: changed}, facts.ValidatingWebhooks: {changed: changed},
	}
}

func (s *Store) webhooksOf(operatorNamespace string) []facts.WebhookConfiguration {
	var out []facts.WebhookConfiguration

	for _, t := range s.webhooks {
		for _, r := range t.rows {
			if r.record.operatorNamespace == operatorNamespace {
				w := r.record.WebhookConfiguration
				w.Version = r.version
				out = append(out, w)
			}
		}
	}

	slices.SortFunc(out, func(a, b facts.WebhookConfiguration) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})

	return out
}

// installedWebhooks are those that Ambit made for the ClusterServiceVersions of a namespace, also where nothing is watched
// because there is none any more.
func (s *Store) installedWebhooks(namespace string) map[string]facts.InstalledWebhooks {
	out := map[string]facts.InstalledWebhooks{}

	for _, t := range s.webhooks {
		for key, r := range t.rows {
			if r.record.made != nil && r.record.operatorNamespace == namespace {
				out[key.Name] = *r.record.made
			}
		}
	}

	return out
}

// InstalledWebhooks are the webhook configurations that Ambit made for the ClusterServiceVersions of a namespace.
func (s *Store) InstalledWebhooks(namespace string) map[string]facts.InstalledWebhooks {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.installedWebhooks(namespace)
}
