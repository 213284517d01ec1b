package reading

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// Remarks are what the planner has to say about a scope.
func Remarks(v *Cluster, f *predict.ScopePrediction) []string {
	var out []string

	say := func(format string, values ...any) { out = append(out, fmt.Sprintf(format, values...)) }

	if f.Selection.Problem != "" {
		say("%s", f.Selection.Problem)
	} else if f.Selection.Asked && f.Selection.Matched == 0 {
		say("its selector matches no namespace")
	}

	unread := "taken to stay as they are, because you may not read their roles and rolebindings: %s"
	if f.Scope.Explicit() {
		unread = "whether these are served is unknown, because you may not read their roles and rolebindings: %s"
	}

	for _, what := range []struct {
		format string
		names  []string
	}{
		{unread, f.Unread},
		{"service accounts that do not exist, and so are not projected: %s", printable.Names(f.MissingAccounts)},
		{"bindings whose role does not exist, and so are not projected: %s", f.DanglingBindings},
		{"ClusterRoles that are somebody else's, and so are neither made nor bound: %s", f.Foreign},
		{"rules that mean nothing in namespaces: %s", f.Ineffective},
		{"bindings that let accounts lead, hardly meant for members; the annotation ambit.dev/project: disabled leaves them out: %s",
			printable.Names(f.Leases)},
		{"left alone, because they bear the mark of IBM's operator and are not its work: %s", f.ForeignLegacy},
	} {
		if len(what.names) > 0 {
			say(what.format, output.Some(what.names))
		}
	}

	if says := plan.SayClusterWide(f.ClusterWide, f.ClusterWideMore); says != "" {
		say("%s", says)
	}

	if f.InjectionRefused != "" {
		say("no workload is injected into: %s", f.InjectionRefused)
	}

	for i := range f.Injectables {
		if c := cmp.Or(f.Injectables[i].Conflict, f.Injectables[i].Refused); c != "" {
			say("%s is not injected into: %s", f.Injectables[i].Target, c)
		}
	}

	for i := range v.Scopes {
		if s := &v.Scopes[i]; s.Owner == f.Scope.Owner {
			out = append(out, s.Problems...)

			if s.NoTemplate && !MayMiss(v.Denied(), scope.Templates) {
				say("there is no ScopeTemplate %s, so nothing is bound", s.Template)
			}
		}
	}

	return out
}

// ScopeName names a scope for users. It includes the legacy group, because both groups may have a scope of one name.
func ScopeName(o scope.Owner) string {
	kind := o.Kind
	if o.Group == namespacescopev1alpha1.GroupVersion.Group {
		kind += "." + o.Group
	}

	return strings.TrimSuffix(kind+" "+o.Namespace, " ") + map[bool]string{true: "/", false: " "}[o.Namespace != ""] + o.Name
}

// ScopeKind is the kind of a scope, with its group where two have it.
func ScopeKind(obj client.Object) string {
	switch obj.(type) {
	case *operatorv1.NamespaceScope:
		return "NamespaceScope"
	case *namespacescopev1alpha1.NamespaceScope:
		return "NamespaceScope of " + namespacescopev1alpha1.GroupVersion.Group
	case *operatorsv1alpha1.ScopeTemplate:
		return "ScopeTemplate"
	case *operatorsv1alpha1.ScopeInstance:
		return "ScopeInstance"
	default:
		return fmt.Sprintf("%T", obj)
	}
}

// isOfTemplates says whether an object is a ScopeTemplate or a ScopeInstance.
func isOfTemplates(obj client.Object) bool {
	switch obj.(type) {
	case *operatorsv1alpha1.ScopeTemplate, *operatorsv1alpha1.ScopeInstance:
		return true
	default:
		return false
	}
}

// StatusOf is the status of a NamespaceScope of either group; nil for any other object.
func StatusOf(obj client.Object) *operatorv1.NamespaceScopeStatus {
	switch nss := obj.(type) {
	case *operatorv1.NamespaceScope:
		return &nss.Status
	case *namespacescopev1alpha1.NamespaceScope:
		return &nss.Status
	default:
		return nil
	}
}

// ScopeResources is the beginning of what the NamespaceScope resources of both groups are called, and templateResources of what
// ScopeTemplates and ScopeInstances are.
const ScopeResources, templateResources = "namespacescopes", "scope"

// MayMiss says whether there may be scopes of a family that the caller may not list.
func MayMiss(denied []snapshot.Denied, f scope.Family) bool {
	prefix := map[scope.Family]string{scope.Templates: templateResources, scope.Installs: "clusterserviceversions"}[f]
	prefix = cmp.Or(prefix, ScopeResources)

	return slices.ContainsFunc(denied, func(d snapshot.Denied) bool { return strings.HasPrefix(d.Resource, prefix) })
}

// MayNotListAllScopes says whether the caller may not list the scopes of all namespaces at once.
func (v *Cluster) MayNotListAllScopes() bool {
	return slices.ContainsFunc(v.Denied(), func(d snapshot.Denied) bool {
		return d.Namespace == "" && strings.HasPrefix(d.Resource, ScopeResources)
	})
}

// Unread says what of an operator namespace, or without one of the whole cluster, the caller may not list, of the resources whose
// names begin with the prefix; empty where it may list all. A plan without them would be wrong. A plan without those of OLM is
// not, because the manager need not see them, either.
func Unread(denied []snapshot.Denied, namespace, prefix string) string {
	return unread(denied, namespace, func(resource string) bool {
		return resource != "clusterserviceversions" && strings.HasPrefix(resource, prefix)
	})
}

func unread(denied []snapshot.Denied, namespace string, matters func(resource string) bool) string {
	var hidden []string

	for _, d := range denied {
		if d.Verb == "list" && d.Namespace == namespace && matters(d.Resource) {
			hidden = append(hidden, d.Resource)
		}
	}

	switch {
	case len(hidden) == 0:
		return ""
	case namespace == "":
		return fmt.Sprintf("you may not list %s in the whole cluster; let somebody run this who may, such as an administrator of "+
			"the cluster", strings.Join(hidden, ", "))
	default:
		return fmt.Sprintf("you may not list its %s; let somebody run this who may, such as an administrator of the namespace",
			strings.Join(hidden, ", "))
	}
}

// UnreadFor says what may not be listed without which a plan for a reconcile key would be wrong; empty where there is nothing.
// What templates and instances ask for depends on each other, and what is left of one that may not be seen looks abandoned.
// Nobody knows what the ClusterRoles and ClusterRoleBindings of templates are called who may not list them.
func UnreadFor(denied []snapshot.Denied, key scope.Key) string {
	if key.Family == scope.Templates {
		return unread(denied, "", func(resource string) bool {
			return resource == "clusterroles" || resource == "clusterrolebindings" || strings.HasPrefix(resource, templateResources)
		})
	}

	return Unread(denied, key.Namespace, "")
}

// UnknownFor fails where something is UnreadFor a reconcile key.
func UnknownFor(denied []snapshot.Denied, key scope.Key) error {
	namespace := key.Namespace
	if key.Family == scope.Templates {
		namespace = ""
	}

	return Unknown(UnreadFor(denied, key), namespace)
}

// Unknown fails where something of a namespace, or without one of the whole cluster, is Unread, as why says.
func Unknown(why, namespace string) error {
	switch {
	case why == "":
		return nil
	case namespace == "":
		return errors.New("what scopes would do is unknown, because " + why)
	default:
		return fmt.Errorf("what the scopes of namespace %s would do is unknown, because %s", namespace, why)
	}
}
