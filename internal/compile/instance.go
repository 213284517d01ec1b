package compile

import (
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// problemKept is reported of an instance that had namespaces and has none any more.
const problemKept = "spec has no namespaces and no namespaceSelector any more, which means the whole cluster; what was bound " +
	"stays as it is. To bind in the whole cluster, set the annotation " + operatorsv1alpha1.AnnotationAllowClusterWide +
	`: "true"; to bind nowhere, delete the instance`

// ScopeInstance compiles an instance. template is what it refers to; nil when that does not exist, and then nothing is
// bound.
func ScopeInstance(in *operatorsv1alpha1.ScopeInstance, template *Template) scope.Scope {
	s := scope.Scope{
		Owner: InstanceOwner(in.Name), Key: scope.TemplatesKey(), Generation: in.Generation, Created: in.CreationTimestamp.Time,
		OwnerUID: string(in.UID), OwnerVersion: operatorsv1alpha1.GroupVersion.Version,
		Members: instanceMembers(in), Template: TemplateOwner(in.Spec.ScopeTemplateName),
	}
	if template != nil {
		s.Binds = template.Binds
	}

	return s
}

func instanceMembers(in *operatorsv1alpha1.ScopeInstance) scope.Members {
	if len(in.Spec.Namespaces) > 0 || in.Spec.NamespaceSelector != nil {
		return membersOf(in.Spec.Namespaces, in.Spec.NamespaceSelector)
	}

	// An instance that names nothing means the whole cluster only if it never named anything, or says so expressly: a list
	// that was emptied by mistake must not hand out everything. The status may be older than what was bound, if Ambit died
	// in between, so the planner looks at that as well.
	switch {
	case in.Annotations[operatorsv1alpha1.AnnotationAllowClusterWide] == "true":
		return scope.Members{Everywhere: true}
	case in.Status.Reach == operatorsv1alpha1.ReachNamespaces:
		return scope.Members{Kept: true, Problem: problemKept}
	default:
		return scope.Members{Everywhere: true, Unconfirmed: true, Problem: problemKept}
	}
}
