package cli_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// state is what there is of a world.
type state struct {
	objects map[id]*found
	// pods are those that are there to stay, by namespace and name.
	pods map[string]struct{}
}

// found is an object as it is compared: without what the API server keeps of it, and without its status.
type found struct {
	uid     string
	content map[string]any
	// raw is the object with its status.
	raw *unstructured.Unstructured
}

// looked are the kinds that are looked at.
var looked = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "operator.ibm.com", Version: "v1", Kind: "NamespaceScope"},
	{Group: "namespacescope.ibm.com", Version: "v1alpha1", Kind: "NamespaceScope"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ScopeTemplate"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ScopeInstance"},
	{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "InstallPlan"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "CatalogSource"},
}

// look reads what there is now.
func (w *drawn) look() *state {
	w.Helper()

	out := &state{objects: map[id]*found{}, pods: map[string]struct{}{}}
	namespaces := w.namespaces()

	for _, gvk := range looked {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))

		if err := w.Client.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}

		for i := range list.Items {
			obj := &list.Items[i]
			if obj.GetKind() == "Pod" && obj.GetDeletionTimestamp() == nil {
				out.pods[obj.GetNamespace()+"/"+obj.GetName()] = struct{}{}
			}

			if w.isOurs(obj, namespaces) {
				out.add(obj)
			}
		}
	}

	return out
}

// indexOfGroups is Ambit's own, for its admission policies, and no plan is about it.
const indexOfGroups = "ambit-operator-groups"

// isOurs says whether an object belongs to the world, and is nothing that Kubernetes puts into every namespace.
func (w *drawn) isOurs(obj *unstructured.Unstructured, namespaces []string) bool {
	if obj.GetName() == indexOfGroups || obj.GetKind() == "Pod" && !isBarePod(obj) {
		return false
	}

	if obj.GetNamespace() == "" {
		raw, err := json.Marshal(obj.Object["metadata"])

		return err == nil && strings.Contains(string(raw), w.tag)
	}

	if !slices.Contains(namespaces, obj.GetNamespace()) || obj.GetDeletionTimestamp() != nil && isDeclaration(obj) {
		return false
	}

	return obj.GetName() != "kube-root-ca.crt" && (obj.GetKind() != "ServiceAccount" || obj.GetName() != "default") &&
		(obj.GetNamespace() != embedded.Namespace || !strings.HasPrefix(obj.GetName(), "ambit"))
}

// isBarePod says whether a pod is one that no workload made, and that stays.
func isBarePod(obj client.Object) bool {
	return len(obj.GetOwnerReferences()) == 0 && obj.GetDeletionTimestamp() == nil
}

// isDeclaration says whether an object is one that somebody wrote to ask for something; Ambit's finalizer keeps some of them.
func isDeclaration(obj *unstructured.Unstructured) bool { return obj.GetKind() == "NamespaceScope" }

func (s *state) add(obj *unstructured.Unstructured) {
	s.objects[idOf(obj.Object)] = &found{string(obj.GetUID()), contentOf(obj.Object), obj}
}

// apply makes a state what it is after somebody wrote something: that is what Ambit begins with.
func (s *state) apply(w *drawn, written map[id]map[string]any) {
	namespaces := w.namespaces()

	for of, obj := range written {
		switch {
		case obj == nil:
			s.disown(of)
			delete(s.objects, of)
		case !w.isOurs(&unstructured.Unstructured{Object: obj}, namespaces):
		case slices.ContainsFunc(looked, func(k schema.GroupVersionKind) bool { return k.Group == of.group && k.Kind == of.kind }):
			s.add(&unstructured.Unstructured{Object: obj})
		}
	}
}

// disown takes an object out of the owners of those that have others, as the garbage collector does. No plan lists that.
func (s *state) disown(of id) {
	gone := s.objects[of]
	if gone == nil {
		return
	}

	for other, is := range s.objects {
		refs := is.raw.GetOwnerReferences()

		left := slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool { return string(r.UID) == gone.uid })
		if other.namespace != of.namespace || len(left) == 0 || len(left) == len(refs) {
			continue
		}

		raw := is.raw.DeepCopy()
		raw.SetOwnerReferences(left)
		s.add(raw)
	}
}

// without leaves out what is in namespaces that end: Kubernetes deletes that, and no plan lists it.
func (s *state) without(namespaces map[string]struct{}) {
	for of := range s.objects {
		if _, ends := namespaces[of.namespace]; ends && of.namespace != "" {
			delete(s.objects, of)
		}
	}
}

// contentOf is what is compared of an object; of a pod, only whether it is there.
func contentOf(obj map[string]any) map[string]any {
	if obj["kind"] == "Pod" {
		return nil
	}

	u := (&unstructured.Unstructured{Object: obj}).DeepCopy()

	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "finalizers", "deletionTimestamp",
		"deletionGracePeriodSeconds", "generateName",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}

	delete(u.Object, "status")
	dropAnnotations(u)

	if refs := u.GetOwnerReferences(); len(refs) > 0 {
		for i := range refs {
			refs[i].UID = ""
		}

		u.SetOwnerReferences(refs)
	}

	if u.Object["aggregationRule"] != nil {
		delete(u.Object, "rules") // The cluster itself fills them in.
	}

	if u.GetKind() == "Secret" {
		hideValues(u, "data")
	}

	out, _ := starred(u.Object).(map[string]any)
	delete(out["metadata"].(map[string]any), "name")

	return out
}

func hideValues(u *unstructured.Unstructured, field string) {
	data, _, _ := unstructured.NestedMap(u.Object, field)
	for name := range data {
		data[name] = "hidden"
	}

	u.Object[field] = data
}

// dropAnnotations takes out what is a time, a count or a hash. Restarts are seen by restartOf.
func dropAnnotations(u *unstructured.Unstructured) {
	names := []string{
		"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision", scope.AnnotationListHash,
		scope.AnnotationListGeneration, scope.AnnotationListSince, scope.AnnotationListBefore, scope.AnnotationRestarted,
		scope.AnnotationRestartWait, scope.AnnotationInjectedWith, scope.AnnotationCopy, "ambit.dev/applied", "ambit.dev/steps",
		"olmcahash", "deprecated.daemonset.template.generation",
	}

	for _, at := range [][]string{{"metadata", "annotations"}, {"spec", "template", "metadata", "annotations"}} {
		for _, name := range names {
			unstructured.RemoveNestedField(u.Object, append(slices.Clone(at), name)...)
		}

		if left, is, _ := unstructured.NestedMap(u.Object, at...); is && len(left) == 0 {
			unstructured.RemoveNestedField(u.Object, at...)
		}
	}
}

// restartOf is what changes of a workload that is restarted.
func restartOf(u *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(u.Object, "spec", "template", "metadata", "annotations", scope.AnnotationListHash)

	return text
}

// isIdle says whether a workload asks for no pod, so that nothing begins again when the mark of its last restart is taken off.
func isIdle(u *unstructured.Unstructured) bool {
	replicas, is, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")

	return is && replicas == 0
}

// random ends names that no plan can know.
var random = regexp.MustCompile(`\B[0-9a-f]{16}\b|-[0-9a-f]{16}\b|install-[a-z0-9]{5}\b`)

func star(text string) string {
	return random.ReplaceAllStringFunc(text, func(name string) string {
		switch {
		case strings.HasPrefix(name, "install-"):
			return "install-*"
		case strings.HasPrefix(name, "-"):
			return "-*"
		default:
			return "*"
		}
	})
}

// starred is a value without the ends of names that no plan can know.
func starred(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if key != "caBundle" { // Nobody knows an authority before it is made.
				out[star(key)] = starred(item)
			}
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = starred(v[i])
		}

		return out
	case string:
		return star(v)
	case int64:
		return float64(v)
	case int:
		return float64(v)
	case nil:
		return nil
	default:
		return v
	}
}

func (o *found) String() string {
	raw, err := json.Marshal(o.content)
	if err != nil {
		return fmt.Sprint(err)
	}

	return string(raw)
}
