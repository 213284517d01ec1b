package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ErrNoPermissions is returned for a ClusterServiceVersion that asks for nothing.
var ErrNoPermissions = errors.New("it asks for no permissions, so there is nothing to scope")

// clusterSuffix ends the name of the pair that binds in the whole cluster what a ClusterServiceVersion asks for there.
const clusterSuffix = "-cluster"

// clusterName is the name of that pair. One that would be too long is cut, and told from others by a hash.
func clusterName(csv string) string {
	const hashDigits = 10

	if len(csv)+len(clusterSuffix) <= validation.DNS1123SubdomainMaxLength {
		return csv + clusterSuffix
	}

	room := validation.DNS1123SubdomainMaxLength - len(clusterSuffix) - hashDigits - 1

	return strings.TrimRight(csv[:room], "-.") + "-" + scope.Digest(hashDigits, csv) + clusterSuffix
}

// ClusterServiceVersion returns the ScopeTemplate and the ScopeInstance that give an operator of OLM the permissions that OLM
// gives it: those of spec.install.spec.permissions in the namespaces of its OperatorGroup and in its own, and where it asks for
// clusterPermissions, a second pair that binds those in the whole cluster.
func ClusterServiceVersion(
	csv *olmv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup,
) ([]scope.Object, []string, error) {
	install := &csv.Spec.InstallStrategy.StrategySpec
	if len(install.Permissions)+len(install.ClusterPermissions) == 0 {
		return nil, nil, ErrNoPermissions
	}

	if err := reaches(group); err != nil {
		return nil, nil, err
	}

	everywhere := len(group.Spec.TargetNamespaces) == 0 && group.Spec.Selector == nil

	var (
		objects []scope.Object
		notes   []string
	)

	if len(install.Permissions) > 0 {
		template := templateOf(csv.Name, csv.Namespace, install.Permissions, everywhere)
		instance := instanceOf(csv, group, everywhere)
		objects = append(objects, template, instance)

		if everywhere {
			notes = append(notes, fmt.Sprintf("OperatorGroup %s selects all namespaces, so ScopeInstance %s binds in the whole cluster",
				group.Name, instance.Name))
		}
	}

	if len(install.ClusterPermissions) > 0 {
		name := clusterName(csv.Name)
		objects = append(objects, templateOf(name, csv.Namespace, install.ClusterPermissions, false), newInstance(name))
		notes = append(notes, fmt.Sprintf("clusterPermissions hold in the whole cluster, so they are a pair of their own, %s; give "+
			"its ScopeInstance namespaces to limit them", name))
	}

	if group.Spec.ServiceAccountName != "" {
		notes = append(notes, fmt.Sprintf("OperatorGroup %s limits its operators to what service account %s may do; nothing limits a "+
			"ScopeInstance so", group.Name, group.Spec.ServiceAccountName))
	}

	return objects, append(notes, "as long as OLM or Ambit serves the ClusterServiceVersion, its own Roles and RoleBindings stay, "+
		"too"), nil
}

// reaches fails for a group whose targets an instance cannot express. An instance that selects nothing is for the whole cluster,
// so there is none for a group whose selector selects nothing.
func reaches(group *operatorsv1.OperatorGroup) error {
	switch {
	case slices.Contains(group.Spec.TargetNamespaces, ""):
		return fmt.Errorf("OperatorGroup %s has \"\" in spec.targetNamespaces, which is no namespace; name the namespaces there, or "+
			"leave targetNamespaces and selector out for all of them", group.Name)
	case len(group.Spec.TargetNamespaces) > 0 || group.Spec.Selector == nil:
		return nil
	}

	if _, err := compile.Selector(group.Spec.Selector.Raw); err != nil {
		return fmt.Errorf("spec.selector of OperatorGroup %s selects nothing: %w; correct it, name the namespaces in "+
			"spec.targetNamespaces, or leave both out for all of them", group.Name, err)
	}

	return nil
}

// templateOf has an entry for each service account. OLM has a Role for each entry of a ClusterServiceVersion, of which several
// may be for one account.
func templateOf(
	name, namespace string, permissions []olmv1alpha1.StrategyDeploymentPermissions, everywhere bool,
) *operatorsv1alpha1.ScopeTemplate {
	t := &operatorsv1alpha1.ScopeTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: "ScopeTemplate"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}

	for i := range permissions {
		p := &permissions[i]

		account := compile.AccountOr(p.ServiceAccountName)

		at := slices.IndexFunc(t.Spec.ClusterRoles, func(r operatorsv1alpha1.ClusterRoleTemplate) bool {
			return r.Subjects[0].Name == account
		})
		if at < 0 {
			at = len(t.Spec.ClusterRoles)
			t.Spec.ClusterRoles = append(t.Spec.ClusterRoles, operatorsv1alpha1.ClusterRoleTemplate{
				GenerateName: operatorsv1alpha1.GenerateNameOf(name + "-" + account),
				Subjects:     []operatorsv1alpha1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
			})
		}

		t.Spec.ClusterRoles[at].Rules = append(t.Spec.ClusterRoles[at].Rules, p.Rules...)
	}

	if everywhere {
		for i := range t.Spec.ClusterRoles {
			t.Spec.ClusterRoles[i].Rules = append(t.Spec.ClusterRoles[i].Rules, compile.SeeNamespaces())
		}
	}

	return t
}

func newInstance(name string) *operatorsv1alpha1.ScopeInstance {
	return &operatorsv1alpha1.ScopeInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: "ScopeInstance"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: name},
	}
}

// instanceOf binds in the namespaces of the group. Like OLM it ignores a selector where namespaces are named, and gives the
// operator its permissions in its own namespace, too. A selector is handed on as it was written: both kinds read it alike.
func instanceOf(
	csv *olmv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup, everywhere bool,
) *operatorsv1alpha1.ScopeInstance {
	in := newInstance(csv.Name)
	if everywhere {
		return in
	}

	in.Spec.Namespaces = append(slices.Clone(group.Spec.TargetNamespaces), csv.Namespace)
	in.Spec.Namespaces = slices.Compact(slices.Sorted(slices.Values(in.Spec.Namespaces)))

	if len(group.Spec.TargetNamespaces) == 0 {
		in.Spec.NamespaceSelector = group.Spec.Selector.DeepCopy()
	}

	return in
}

// GroupOf chooses the OperatorGroup of a ClusterServiceVersion among those of its namespace.
func GroupOf(csv *olmv1alpha1.ClusterServiceVersion, groups []operatorsv1.OperatorGroup) (*operatorsv1.OperatorGroup, error) {
	if len(groups) == 1 {
		return &groups[0], nil
	}

	names := make([]string, 0, len(groups))

	for i := range groups {
		if groups[i].Name == csv.Annotations[operatorsv1.GroupAnnotation] {
			return &groups[i], nil
		}

		names = append(names, groups[i].Name)
	}

	if len(groups) == 0 {
		return nil, errors.New("there is no OperatorGroup beside it, so nobody said where it works; create one first")
	}

	return nil, fmt.Errorf("there are several OperatorGroups beside it, %s, and OLM accepts none of them; delete all but one",
		strings.Join(names, ", "))
}
