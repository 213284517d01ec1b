package narrow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
)

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.GroupName + "/v1", Kind: kind}
}

// metaFrom is the metadata of what is made from something else: its labels and annotations, without those by which it would
// become part of aggregated roles.
func metaFrom(of *metav1.ObjectMeta, namespace, name, from string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: maps.Clone(of.Labels), Annotations: maps.Clone(of.Annotations),
	}

	maps.DeleteFunc(out.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "rbac.authorization.k8s.io/") })

	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}

	delete(out.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(out.Annotations, "rbac.authorization.kubernetes.io/autoupdate")
	out.Annotations[AnnotationFrom] = from

	return out
}

// namespaceScope is the scope of a group of accounts.
func (g *group) namespaceScope(o *Options) *operatorv1.NamespaceScope {
	s := &operatorv1.NamespaceScope{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: kindScope},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.name},
		Spec: operatorv1.NamespaceScopeSpec{
			NamespaceMembers: o.Members, ServiceAccountMembers: g.accountNames(), ConfigmapName: g.configMap(),
			RestartLabels:     map[string]operatorv1.LabelValue{LabelScope: operatorv1.LabelValue(g.name)},
			NamespaceSelector: o.selector(),
		},
	}

	if g.variable != "" {
		s.Spec.WorkloadInjector = &operatorv1.WorkloadInjector{Enable: new(true), Variable: &g.variable, Containers: g.containers}
	}

	return s
}

// isTemplate says whether a ScopeTemplate is that of a group: it gives something to accounts of its namespace.
func (g *group) isTemplate(d *Document) bool {
	var t operatorsv1alpha1.ScopeTemplate

	return d.into(&t) == nil && slices.ContainsFunc(t.Spec.ClusterRoles, func(of operatorsv1alpha1.ClusterRoleTemplate) bool {
		return slices.ContainsFunc(of.Subjects, func(s operatorsv1alpha1.Subject) bool {
			return s.Namespace == g.namespace && slices.Contains(g.accountNames(), s.Name)
		})
	})
}

// template has the rules of an operator, and instance says where they hold.
func (g *group) template(name string) *operatorsv1alpha1.ScopeTemplate {
	t := &operatorsv1alpha1.ScopeTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: kindTemplate},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}

	for _, s := range g.served {
		if len(s.namespaced) == 0 {
			continue
		}

		t.Spec.ClusterRoles = append(t.Spec.ClusterRoles, operatorsv1alpha1.ClusterRoleTemplate{
			GenerateName: operatorsv1alpha1.GenerateNameOf(s.Name), Rules: s.namespaced,
			Subjects: []operatorsv1alpha1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.Name}},
		})
	}

	return t
}

// selector selects the members by their labels; nil where there are none to select by.
func (o *Options) selector() *operatorv1.NamespaceSelector {
	if len(o.MemberLabels) == 0 {
		return nil
	}

	raw, err := json.Marshal(map[string]any{"matchLabels": o.MemberLabels})
	if err != nil {
		panic(err) // Strings can be written.
	}

	return &operatorv1.NamespaceSelector{Raw: raw}
}

func (g *group) instance(name string, o *Options) *operatorsv1alpha1.ScopeInstance {
	return &operatorsv1alpha1.ScopeInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: kindInstance},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: operatorsv1alpha1.ScopeInstanceSpec{
			ScopeTemplateName: name, Namespaces: o.namesFor(g.namespace), NamespaceSelector: o.selector(),
		},
	}
}
