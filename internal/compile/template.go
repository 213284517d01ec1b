package compile

import (
	"fmt"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// hashDigits is the length of the hash that ends the name of a ClusterRole.
const hashDigits = 10

// Template is what a ScopeTemplate means.
type Template struct {
	// Scope makes the ClusterRoles. It has no members while no instance refers to the template.
	Scope scope.Scope
	// Binds are what an instance binds.
	Binds []scope.Binding
	// Problems say which subjects get nothing, and why.
	Problems []string
}

// ScopeTemplate compiles a template. referred says whether some instance refers to it: its ClusterRoles exist while one
// does.
func ScopeTemplate(t *operatorsv1alpha1.ScopeTemplate, referred bool) Template {
	out := Template{Scope: scope.Scope{
		Owner: TemplateOwner(t.Name), Key: scope.TemplatesKey(), Generation: t.Generation, Created: t.CreationTimestamp.Time,
		OwnerUID: string(t.UID), OwnerVersion: operatorsv1alpha1.GroupVersion.Version,
		Members: scope.Members{Everywhere: referred},
	}}
	shared := subjectsOf("spec.bindingTemplate.subjects", t.Spec.BindingTemplate, &out.Problems)
	seen := map[string]int{}

	for i := range t.Spec.ClusterRoles {
		entry := &t.Spec.ClusterRoles[i]
		name := clusterRoleName(t.Name, entry.GenerateName, seen[entry.GenerateName])
		seen[entry.GenerateName]++
		path := fmt.Sprintf("spec.clusterRoles[%d]", i)

		subjects := subjectsAt(path+".subjects", entry.Subjects, &out.Problems)
		subjects = append(subjects, subjectsOf(path+".bindingTemplate.subjects", entry.BindingTemplate, &out.Problems)...)
		subjects = distinctSubjects(append(subjects, shared...))

		out.Scope.Defines = append(out.Scope.Defines, scope.ClusterRole{
			Name: name, Rules: entry.Rules, Guarded: true, Source: out.Scope.Owner.String(),
		})

		if len(subjects) > 0 {
			out.Binds = append(out.Binds, scope.Binding{Role: name, Subjects: subjects, Rules: entry.Rules})
		}
	}

	return out
}

// TemplateOwner names a ScopeTemplate as the owner of what is made for it.
func TemplateOwner(name string) scope.Owner {
	return scope.Owner{Group: operatorsv1alpha1.GroupVersion.Group, Kind: "ScopeTemplate", Name: name}
}

// InstanceOwner names a ScopeInstance as the owner of what is made for it.
func InstanceOwner(name string) scope.Owner {
	return scope.Owner{Group: operatorsv1alpha1.GroupVersion.Group, Kind: "ScopeInstance", Name: name}
}

// clusterRoleName is the same after a crash, and never that of a ClusterRole which somebody else thought of.
func clusterRoleName(template, generateName string, index int) string {
	return generateName + scope.Digest(hashDigits, "ScopeTemplate", template, generateName, strconv.Itoa(index))
}

func subjectsOf(path string, b *operatorsv1alpha1.BindingTemplate, problems *[]string) []rbacv1.Subject {
	if b == nil {
		return nil
	}

	return subjectsAt(path, b.Subjects, problems)
}

// subjectsAt returns the subjects that can be bound. Nothing is guessed for the others.
func subjectsAt(path string, from []operatorsv1alpha1.Subject, problems *[]string) []rbacv1.Subject {
	var out []rbacv1.Subject

	for i := range from {
		s := &from[i]
		if problem := problemOf(s); problem != "" {
			*problems = append(*problems, fmt.Sprintf("%s[%d], %s %s: %s", path, i, s.Kind, s.Name, problem))

			continue
		}

		group := rbacv1.GroupName
		if s.Kind == rbacv1.ServiceAccountKind {
			group = ""
		}

		out = append(out, rbacv1.Subject{Kind: s.Kind, APIGroup: group, Namespace: s.Namespace, Name: s.Name})
	}

	return out
}

func problemOf(s *operatorsv1alpha1.Subject) string {
	switch {
	case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "":
		return "a service account needs a namespace"
	case s.Kind == rbacv1.ServiceAccountKind && s.APIGroup != "":
		return "a service account has no apiGroup; leave it out"
	case s.Kind == rbacv1.ServiceAccountKind && len(validation.ValidateServiceAccountName(s.Name, false)) > 0:
		// The API server would refuse the whole binding, with the subjects that are right.
		return "no service account can be called so; the name has lower-case letters, digits, dashes and dots"
	case s.Kind != rbacv1.ServiceAccountKind && s.Namespace != "":
		return "only a service account has a namespace; leave it out"
	case s.Kind != rbacv1.ServiceAccountKind && s.APIGroup != "" && s.APIGroup != rbacv1.GroupName:
		return "the apiGroup of a user or group is " + rbacv1.GroupName + "; leave it out"
	default:
		return ""
	}
}

func distinctSubjects(subjects []rbacv1.Subject) []rbacv1.Subject {
	var out []rbacv1.Subject

	for _, s := range subjects {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}

	return out
}
