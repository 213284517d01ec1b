package operators_test

import (
	"path/filepath"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// webhookPort is where ECK listens, unless it is told otherwise.
const webhookPort = 9443

// packed is ECK as its authors pack it for OLM: their bundles are not in the module, but what they make them of is. Its webhooks
// refuse what they cannot be asked about, which its chart allows.
func (w *world) packed(folder string) (csv *olm.ClusterServiceVersion, definitions []*unstructured.Unstructured) {
	w.Helper()

	chart := filepath.Join(folder, "deploy", "eck-operator")
	definitions, rest := sort(w.documents(w.tool("helm", "template", w.op.workload, chart, "-n", w.ops, "--include-crds",
		"--kube-version", "1.35.0", "--set", "webhook.failurePolicy=Fail")))

	csv = &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "elastic-cloud-eck.v3.5.0"}}
	csv.Spec.DisplayName = "Elasticsearch (ECK) Operator"

	for _, mode := range []olm.InstallModeType{
		olm.InstallModeTypeOwnNamespace, olm.InstallModeTypeSingleNamespace, olm.InstallModeTypeMultiNamespace,
		olm.InstallModeTypeAllNamespaces,
	} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true})
	}

	for _, d := range definitions {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, w.owned(d))
	}

	csv.Spec.InstallStrategy.StrategyName = olm.InstallStrategyNameDeployment
	strategy := &csv.Spec.InstallStrategy.StrategySpec

	for _, o := range rest {
		switch {
		case o.GetKind() == "ClusterRole" && o.GetName() == w.op.account:
			role := as[rbacv1.ClusterRole](w, o)
			strategy.Permissions = append(strategy.Permissions, olm.StrategyDeploymentPermissions{
				ServiceAccountName: w.op.account, Rules: role.Rules,
			})
		case o.GetKind() == "StatefulSet":
			set := as[appsv1.StatefulSet](w, o)
			strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, w.deployed(set))
		case o.GetKind() == "ValidatingWebhookConfiguration":
			configuration := as[admissionv1.ValidatingWebhookConfiguration](w, o)
			csv.Spec.WebhookDefinitions = w.defined(configuration)
		}
	}

	if len(strategy.Permissions) != 1 || len(strategy.DeploymentSpecs) != 1 || len(csv.Spec.WebhookDefinitions) == 0 {
		w.Fatalf("the chart has %d ClusterRoles, %d StatefulSets and %d webhooks",
			len(strategy.Permissions), len(strategy.DeploymentSpecs), len(csv.Spec.WebhookDefinitions))
	}

	return csv, definitions
}

// as reads a manifest as what it is.
func as[T any](w *world, o *unstructured.Unstructured) *T {
	w.Helper()

	out := new(T)
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out))

	return out
}

// owned is how a CSV names a definition.
func (w *world) owned(o *unstructured.Unstructured) olm.CRDDescription {
	w.Helper()

	d := as[apiextensionsv1.CustomResourceDefinition](w, o)

	return olm.CRDDescription{Name: d.Name, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.Kind}
}

// deployed is the operator with the arguments and the environment that it has in the bundles of its authors. Storage classes and
// its telemetry are for who has rights in the whole cluster.
func (w *world) deployed(set *appsv1.StatefulSet) olm.StrategyDeploymentSpec {
	w.Helper()

	template := set.Spec.Template
	template.Spec.Volumes = nil
	container := &template.Spec.Containers[0]
	container.VolumeMounts = nil
	container.Args = []string{
		"manager", "--manage-webhook-certs=false", "--enable-webhook", "--validate-storage-class=false", "--disable-telemetry",
	}
	container.Env = []corev1.EnvVar{
		fromAnnotation("NAMESPACES", "olm.targetNamespaces"), fromAnnotation("OPERATOR_NAMESPACE", "olm.operatorNamespace"),
	}

	return olm.StrategyDeploymentSpec{
		Name: set.Name, Spec: appsv1.DeploymentSpec{Replicas: set.Spec.Replicas, Selector: set.Spec.Selector, Template: template},
	}
}

func fromAnnotation(variable, annotation string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"},
	}}
}

// defined are webhooks as a CSV defines them.
func (w *world) defined(c *admissionv1.ValidatingWebhookConfiguration) []olm.WebhookDescription {
	out := make([]olm.WebhookDescription, 0, len(c.Webhooks))

	for i := range c.Webhooks {
		hook := &c.Webhooks[i]
		out = append(out, olm.WebhookDescription{
			Type: olm.ValidatingAdmissionWebhook, GenerateName: hook.Name, DeploymentName: w.op.workload,
			TargetPort: new(intstr.FromInt32(webhookPort)), Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
			MatchPolicy: hook.MatchPolicy, SideEffects: hook.SideEffects, WebhookPath: hook.ClientConfig.Service.Path,
			AdmissionReviewVersions: hook.AdmissionReviewVersions,
		})
	}

	return out
}

// image is that of the operator's container.
func image(csv *olm.ClusterServiceVersion) string {
	return csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
}
