package reconcile_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// A picture shows what there is of some kinds in the namespace ops, of permissions in all namespaces of the case, and of those
// without a namespace what speaks of these.
var (
	inOps = map[string]string{
		"v1": "ServiceAccount ConfigMap Secret Service", "apps/v1": "Deployment", "operator.ibm.com/v1": "NamespaceScope",
		"operators.coreos.com/v1":       "OperatorGroup",
		"operators.coreos.com/v1alpha1": "ClusterServiceVersion Subscription InstallPlan CatalogSource",
	}
	permissions = map[string]string{"rbac.authorization.k8s.io/v1": "Role RoleBinding"}
	inNone      = map[string]string{
		"operators.coreos.com/v1alpha1":   "ScopeTemplate ScopeInstance",
		"rbac.authorization.k8s.io/v1":    "ClusterRole ClusterRoleBinding",
		"admissionregistration.k8s.io/v1": "ValidatingWebhookConfiguration MutatingWebhookConfiguration",
		"apiextensions.k8s.io/v1":         "CustomResourceDefinition",
	}
)

// picture shows what there is of a case, without what differs each time that it runs: one line for each object.
func (w *world) picture() []string {
	w.Helper()

	out := append(w.lines(inNone, ""), w.lines(inOps, w.ns(ops))...)
	for _, namespace := range w.spaces {
		out = append(out, w.lines(permissions, namespace)...)
	}

	slices.Sort(out)

	return out
}

func (w *world) lines(kinds map[string]string, namespace string) []string {
	w.Helper()

	var out []string

	for version, names := range kinds {
		for kind := range strings.FieldsSeq(names) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind+"List"))

			if err := w.client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
				w.Fatalf("listing %s: %v", kind, err)
			}

			for i := range list.Items {
				if line := w.line(&list.Items[i]); line != "" {
					out = append(out, line)
				}
			}
		}
	}

	return out
}

// line shows an object; nothing when it is another case's.
func (w *world) line(u *unstructured.Unstructured) string {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}

	// A list has been another one before where a member that was refused at first joins later.
	for _, annotation := range []string{scope.AnnotationListBefore, scope.AnnotationListGeneration, scope.AnnotationListSince} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", annotation)
	}

	refs := u.GetOwnerReferences()
	for i := range refs {
		refs[i].UID = ""
	}

	u.SetOwnerReferences(refs)

	isVersion := u.GetKind() == olmv1alpha1.ClusterServiceVersionKind
	if isVersion {
		unstructured.RemoveNestedField(u.Object, "status", "conditions") // They are a history.
	}

	managers := []string{}

	for _, e := range u.GetManagedFields() {
		// Nobody comes back for the record that something was restored in a version; whoever writes one does so without an apply.
		if e.Manager == scope.InjectionManager && isVersion {
			continue
		}

		managers = append(managers, fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource))
	}

	u.SetManagedFields(nil)
	slices.Sort(managers)

	u.Object["writtenBy"] = slices.Compact(managers)

	if u.GetKind() == "Secret" {
		u.Object["data"] = nil
	}

	text, err := json.Marshal(u.Object)
	if err != nil || !strings.Contains(string(text), w.suffix) {
		return ""
	}

	return fmt.Sprintf("%s %s", u.GetKind(), random.ReplaceAllString(w.called(string(text)), "#"))
}

// random is what differs each time: hashes, times, what the API server chooses, and certificates. A step whose answer was lost
// finds what it created.
var random = regexp.MustCompile(
	`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,}\b|-[0-9A-Za-z]{30,}\b|\d{4}-\d\d-\d\dT[0-9:.]+Z|` +
		`\binstall-[a-z0-9]{5}\b|"caBundle":"[^"]*"|\b10(\.\d+){3}\b|resourceVersion\\*":\\*"\d+|"status":"(Created|Present)"`)

// differs says in which lines two pictures differ.
func differs(got, want []string) string {
	var out []string

	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "- "+line)
		}
	}

	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "+ "+line)
		}
	}

	if len(out) == 0 && len(got) != len(want) {
		out = append(out, fmt.Sprintf("there are %d objects, not %d", len(got), len(want)))
	}

	return strings.Join(out, "\n")
}
