// Package explain says why an account holds a right: through which binding, from which scope, by whom. It is pure.
package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Account is a service account.
type Account struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// User is the name by which the API server knows it.
func (a Account) User() string { return scope.AccountUser(a.Namespace, a.Name) }

// Groups are those that it is in.
func (a Account) Groups() []string {
	return []string{scope.GroupAccounts, scope.GroupOfAccounts(a.Namespace), scope.GroupAuthenticated}
}

// Ref names an object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String names it for users.
func (r Ref) String() string { return printable.Title(r.Kind, r.Namespace, r.Name) }

// Right is what one binding gives.
type Right struct {
	Rules []rbacv1.PolicyRule `json:"rules"`
	// Binding and Role are where the rules come from; Everywhere says that they hold in the whole cluster.
	Binding    Ref  `json:"binding"`
	Role       Ref  `json:"role"`
	Everywhere bool `json:"everywhere,omitempty"`
	// Through is the group by which the binding means the account; empty when it names it.
	Through string `json:"through,omitempty"`
	// Scope is the scope for which Ambit made the binding, SourceBinding and SourceRole what it copied.
	Scope     *Ref   `json:"scope,omitempty"`
	ScopeHash string `json:"-"`
	// Marked says that the binding bears Ambit's marks, which anybody can write, and that Ambit makes no such binding.
	Marked        bool `json:"marked,omitempty"`
	SourceBinding *Ref `json:"sourceBinding,omitempty"`
	SourceRole    *Ref `json:"sourceRole,omitempty"`
	// Authorization says in words what the binding is for, if "ambit authorize" wrote it.
	Authorization string `json:"authorization,omitempty"`
	// Consent is the same, by the name that it had in the first releases. It goes with the next release.
	Consent string `json:"consent,omitempty"`
	// Author wrote the binding, or where Ambit did, ScopeAuthor the scope.
	Author      *Author `json:"author,omitempty"`
	ScopeAuthor *Author `json:"scopeAuthor,omitempty"`
	// Problem says why the rules are not known, and Unread that whoever looks may not read them.
	Problem string `json:"problem,omitempty"`
	Unread  bool   `json:"-"`
}

// Roles are those that bindings refer to. A nil role may not be read; one that is not there does not exist.
type Roles struct {
	Roles        map[string]*rbacv1.Role
	ClusterRoles map[string]*rbacv1.ClusterRole
}

// Of returns everything that an account holds in a namespace, by the bindings there and those of the whole cluster: what Ambit
// made first, then by name.
func Of(a Account, bindings []rbacv1.RoleBinding, everywhere []rbacv1.ClusterRoleBinding, roles *Roles) []Right {
	var out []Right

	for _, b := range boundBy(bindings, everywhere) {
		if through, meant := meant(a, b.subjects, b.ref.Namespace); meant {
			out = append(out, rightOf(b, through, roles))
		}
	}

	slices.SortStableFunc(out, func(a, b Right) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Binding.Name, b.Binding.Name))
	})

	return out
}

// rank is the order of rights: for a scope, in the namespace, in the whole cluster, and what everybody has.
func rank(r *Right) int {
	switch {
	case r.Scope != nil:
		return 0
	case r.IsEverybodys():
		return 3
	case r.Everywhere:
		return 2
	default:
		return 1
	}
}

// IsEverybodys says whether every service account of the cluster has the right, by a binding that Kubernetes itself made.
func (r *Right) IsEverybodys() bool {
	return r.Everywhere && slices.Contains(scope.GroupsOfAllAccounts(), r.Through) &&
		strings.HasPrefix(r.Binding.Name, "system:")
}

// IsMeant says whether a subject of a binding means an account, by its name or by a group. A service account without a namespace
// is that of the namespace in which the binding is, and nobody in a ClusterRoleBinding.
func (a Account) IsMeant(s *rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return cmp.Or(s.Namespace, namespace) == a.Namespace && s.Name == a.Name
	case rbacv1.UserKind:
		return s.Name == a.User()
	default:
		return s.Kind == rbacv1.GroupKind && slices.Contains(a.Groups(), s.Name)
	}
}

// meant says whether the subjects of a binding mean an account, and by which group, if none of them names it.
func meant(a Account, subjects []rbacv1.Subject, namespace string) (through string, is bool) {
	for i := range subjects {
		if s := &subjects[i]; a.IsMeant(s, namespace) {
			if s.Kind != rbacv1.GroupKind {
				return "", true
			}

			through, is = s.Name, true
		}
	}

	return through, is
}

func rightOf(b *bound, through string, roles *Roles) Right {
	r := givenBy(b, through)
	source := r.fill(b.roleRef, roles)

	switch {
	case r.Scope == nil:
	case r.Scope.Kind == kindScopeInstance && r.Problem == "" && (source == nil || source.Kind != kindScopeTemplate):
		// Ambit binds what it made for the template, and nobody marks a ClusterRole so who may write in a namespace alone.
		r.Scope, r.ScopeHash, r.SourceBinding, r.Marked = nil, "", nil, true
	default:
		r.SourceRole = source
	}

	return r
}

// givenBy is what a binding says of the right that it gives, but for what its role allows.
func givenBy(b *bound, through string) Right {
	r := Right{Binding: b.ref, Role: Ref{Kind: b.roleRef.Kind, Name: b.roleRef.Name}, Through: through, Author: AuthorOf(b)}
	r.Everywhere = b.ref.Kind == string(projected.ClusterRoleBinding)

	if b.roleRef.Kind == string(projected.Role) {
		r.Role.Namespace = b.ref.Namespace
	}

	owner, is, marked := b.scope()
	r.Marked = marked && !is

	if is {
		r.Scope, r.ScopeHash = &owner, b.GetLabels()[scope.LabelScope]

		if s, ok := RefOf(b.GetAnnotations()[scope.AnnotationSource]); ok && s.Kind == b.ref.Kind {
			r.SourceBinding = &s
		}
	}

	if b.GetLabels()[scope.LabelManagedBy] == scope.ManagedByAuthorization {
		r.Authorization = b.GetAnnotations()[grant.AnnotationUse]
		r.Consent = r.Authorization
	}

	return r
}

// fill finds the rules, and returns what the role was copied from.
func (r *Right) fill(ref rbacv1.RoleRef, roles *Roles) *Ref {
	var (
		role  metav1.Object
		rules []rbacv1.PolicyRule
		known bool
	)

	if ref.Kind == string(projected.Role) {
		var one *rbacv1.Role
		if one, known = roles.Roles[ref.Name]; one != nil {
			role, rules = one, one.Rules
		}
	} else {
		var one *rbacv1.ClusterRole
		if one, known = roles.ClusterRoles[ref.Name]; one != nil {
			role, rules = one, one.Rules
		}
	}

	switch {
	case !known:
		r.Problem = "the " + ref.Kind + " does not exist, so the binding gives nothing"
	case role == nil:
		r.Problem, r.Unread = "you may not read the "+ref.Kind+", so what it gives is unknown", true
	}

	r.Rules = scope.WithoutGuard(rules)
	if r.Rules == nil {
		r.Rules = []rbacv1.PolicyRule{}
	}

	if role == nil {
		return nil
	}

	source, ok := RefOf(role.GetAnnotations()[scope.AnnotationSource])
	if !ok {
		return nil
	}

	return &source
}

// Author is who wrote an object, as far as the API server recorded it, or tools left marks on it.
type Author struct {
	// Manager is the program; By is what it worked for, such as a Helm release.
	Manager string     `json:"manager,omitempty"`
	By      string     `json:"by,omitempty"`
	Time    *time.Time `json:"time,omitempty"`
}

// String names the author for users.
func (a *Author) String() string {
	switch {
	case a == nil:
		return "nobody knows whom"
	case a.By == "":
		return a.Manager
	case a.Manager == "":
		return a.By
	default:
		return a.Manager + " (" + a.By + ")"
	}
}

// AuthorOf says who last wrote what users decide about an object; nil when that is not known.
func AuthorOf(obj metav1.Object) *Author {
	var out Author

	entries := obj.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if e.Manager == scope.FieldManager || !decides(e) {
			continue
		}

		if out.Time == nil || e.Time != nil && e.Time.After(*out.Time) {
			out.Manager = e.Manager

			if e.Time != nil {
				out.Time = new(e.Time.UTC())
			}
		}
	}

	out.By = workedFor(obj)

	if out == (Author{}) {
		return nil
	}

	return &out
}

// AuthorOfScope is AuthorOf for what Ambit may have written itself: the scope that it begins with, and what InstallPlans install.
func AuthorOfScope(obj metav1.Object) *Author {
	own := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == scope.FieldManager && decides(&e) }

	author := AuthorOf(obj)
	if author == nil && slices.ContainsFunc(obj.GetManagedFields(), own) {
		return &Author{Manager: scope.FieldManager}
	}

	return author
}

// decides says whether what was written is among what users write.
func decides(e *metav1.ManagedFieldsEntry) bool {
	if e.Subresource != "" || e.FieldsV1 == nil {
		return false
	}

	text := e.FieldsV1.String()

	return slices.ContainsFunc([]string{`"f:spec"`, `"f:rules"`, `"f:roleRef"`, `"f:subjects"`}, func(field string) bool {
		return strings.Contains(text, field)
	})
}

// workedFor reads the marks that tools leave: Helm, Argo CD, Flux, OLM, and OpenShift for whoever asked for a project.
func workedFor(obj metav1.Object) string {
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()

	for _, mark := range []struct{ what, value string }{
		{"Helm release ", annotations["meta.helm.sh/release-name"]},
		{"Argo CD application ", strings.SplitN(annotations["argocd.argoproj.io/tracking-id"], ":", 2)[0]},
		{"Flux Kustomization ", labels["kustomize.toolkit.fluxcd.io/name"]},
		{"Flux HelmRelease ", labels["helm.toolkit.fluxcd.io/name"]},
		{"ClusterServiceVersion ", labels[scope.LabelOLMOwner]},
		{"requested by ", annotations["openshift.io/requester"]},
	} {
		if mark.value != "" {
			return mark.what + printable.Name(mark.value)
		}
	}

	return ""
}

// Question is about one request.
type Question struct {
	Verb     string `json:"verb"`
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	Name     string `json:"name,omitempty"`
	// ClusterScoped says that it is about the whole cluster, because the resource is in no namespace.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
}

// String says in words what is asked, with the resource as users may give it: deployments.apps/scale.
func (q *Question) String() string {
	resource, subresource, hasSubresource := strings.Cut(q.Resource, "/")
	what := q.Verb + " " + schema.GroupResource{Group: q.Group, Resource: resource}.String()

	if hasSubresource {
		what += "/" + subresource
	}

	if q.Name != "" {
		what += " " + q.Name
	}

	return what
}

// isAllowedBy says whether a rule allows it.
func (q *Question) isAllowedBy(r *rbacv1.PolicyRule) bool {
	return rights.Allow([]rbacv1.PolicyRule{*r}, schema.GroupResource{Group: q.Group, Resource: q.Resource}, q.Name, q.Verb)
}

// Allowing returns the rights that allow a request, each with only those of its rules that do; and those that would, were it
// about one of the names to which they are limited.
func Allowing(all []Right, q *Question) (allowing, named []Right) {
	for i := range all {
		r := all[i]
		if q.ClusterScoped && !r.Everywhere {
			continue
		}

		r.Rules = slices.DeleteFunc(slices.Clone(r.Rules), func(rule rbacv1.PolicyRule) bool {
			return !q.isAllowedBy(&rule)
		})

		if len(r.Rules) > 0 {
			allowing = append(allowing, r)

			continue
		}

		r.Rules = slices.DeleteFunc(slices.Clone(all[i].Rules), func(rule rbacv1.PolicyRule) bool {
			names := rule.ResourceNames
			rule.ResourceNames = nil

			return !q.isAllowedBy(&rule) || len(names) == 0
		})

		if len(r.Rules) > 0 {
			named = append(named, r)
		}
	}

	return allowing, named
}
