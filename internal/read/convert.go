package read

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func convertNamespace(obj client.Object) (facts.Namespace, bool) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return facts.Namespace{}, false
	}

	out := facts.NamespaceOf(ns)
	out.Labels = sharedLabels(out.Labels)

	return out, true
}

func sharedLabels(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		out[shared(k)] = shared(v)
	}

	return out
}

// convertName keeps nothing but that an object exists.
func convertName(client.Object) (struct{}, bool) { return struct{}{}, true }

// convertAccountName keeps nothing but that an account exists. One that is being deleted does not, however long a finalizer keeps
// it: the API server accepts no token of it either.
func convertAccountName(obj client.Object) (struct{}, bool) {
	return struct{}{}, obj.GetDeletionTimestamp() == nil
}

// convertRole keeps a Role of an operator namespace as a source.
func convertRole(obj client.Object) ([]rbacv1.PolicyRule, bool) {
	role, ok := obj.(*rbacv1.Role)
	if !ok || !IsSource(obj) {
		return nil, false
	}

	return role.Rules, true
}

func convertBinding(obj client.Object) (facts.Binding, bool) {
	b, ok := obj.(*rbacv1.RoleBinding)
	if !ok || !IsSource(obj) {
		return facts.Binding{}, false
	}

	out := facts.Binding{RoleRef: b.RoleRef, Subjects: b.Subjects}
	if isInstalled(b) {
		out.Slot = b.Annotations[scope.AnnotationCopy]
	}

	return out, true
}

// IsSource says whether RBAC of an operator namespace can be projected. What Ambit projected is never a source, nor what IBM's
// operator did, and neither is an authorization, which is about its own namespace.
func IsSource(obj client.Object) bool {
	if _, is := obj.(*rbacv1.RoleBinding); is && obj.GetAnnotations()[scope.AnnotationProject] == scope.ProjectDisabled {
		return false // It is meant for the operator's own namespace, such as leader election.
	}

	return !isLegacy(obj) && (!isProjected(obj) || isInstalled(obj)) &&
		obj.GetLabels()[scope.LabelManagedBy] != scope.ManagedByAuthorization
}

func isProjected(obj client.Object) bool {
	return obj.GetLabels()[scope.LabelScope] != "" || obj.GetAnnotations()[scope.AnnotationOwner] != ""
}

// isInstalled says whether Ambit made RBAC for a ClusterServiceVersion of the same namespace. That is the operator's own and no
// copy, as what OLM makes there: an operator that reads the list of a scope would otherwise fail in its members. To forge the
// mark is of no use: the subjects of a copy are accounts of another namespace.
func isInstalled(obj client.Object) bool {
	owner := scope.ParseOwner(obj.GetAnnotations()[scope.AnnotationOwner])

	return owner.Kind == scope.KindCSV && owner.Namespace == obj.GetNamespace()
}

func convertConfigMap(obj client.Object) (facts.ConfigMap, bool) {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return facts.ConfigMap{}, false
	}

	list, hasList := cm.Data[scope.ListKey]
	others := len(cm.BinaryData) + len(cm.Data)

	if hasList {
		others--
	}

	return facts.ConfigMap{
		List: list, HasList: hasList, OtherKeys: others > 0,
		Immutable:  cm.Immutable != nil && *cm.Immutable,
		Created:    cm.Annotations[scope.AnnotationCreated] == "true",
		ListHash:   cm.Annotations[scope.AnnotationListHash],
		Generation: parseGeneration(cm.Annotations[scope.AnnotationListGeneration]),
		Since:      parseTime(cm.Annotations[scope.AnnotationListSince]),
		Before:     parseTime(cm.Annotations[scope.AnnotationListBefore]),
		Applied:    lastChange(cm.ManagedFields, func(e *metav1.ManagedFieldsEntry) bool { return e.Manager == scope.FieldManager }),
		Written:    lastChange(cm.ManagedFields, scope.HasList),
		Held:       len(cm.Finalizers) > 0, Terminating: cm.DeletionTimestamp != nil,
		Version: scope.ParseVersion(cm.ResourceVersion),
	}, true
}

// lastChange is when one of some managers last changed something in an object, by the API server's clock.
func lastChange(entries []metav1.ManagedFieldsEntry, is func(*metav1.ManagedFieldsEntry) bool) time.Time {
	var at time.Time

	for i := range entries {
		if e := &entries[i]; is(e) && e.Time != nil && e.Time.After(at) {
			at = e.Time.Time
		}
	}

	return at
}

// parseGeneration, like the others, takes what cannot be read for zero.
func parseGeneration(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}

	return n
}

func parseDuration(s string) time.Duration {
	d, _ := time.ParseDuration(s)

	return d
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)

	return t
}
