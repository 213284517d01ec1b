package explain

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Entry is somebody who may do something, with the right by which they may.
type Entry struct {
	// Kind is ServiceAccount, User or Group.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Right     Right  `json:"right"`
	// Aggregated are the ClusterRoles by which an aggregated one has the right.
	Aggregated []string `json:"aggregated,omitempty"`
}

// Who returns everybody who may do something, by the bindings of a namespace and those of the whole cluster, the bindings of
// which this is unknown, and, for each binding that lets somebody do it with some objects alone, by their names, whom. Who is in
// a group is not known to Kubernetes.
func Who(
	q *Question, bindings []rbacv1.RoleBinding, everywhere []rbacv1.ClusterRoleBinding, roles *Roles,
) (holders []Entry, unread []Right, byName [][]Entry) {
	for _, b := range boundBy(bindings, everywhere) {
		r := rightOf(b, "", roles)
		if r.Unread {
			unread = append(unread, r)

			continue
		}

		allowing, named := Allowing([]Right{r}, q)

		switch {
		case len(allowing) > 0:
			holders = append(holders, entries(&allowing[0], b.subjects, aggregated(r.Role, q, roles))...)
		case len(named) > 0 && q.isAboutAnyName():
			if of := entries(&named[0], b.subjects, nil); len(of) > 0 {
				byName = append(byName, of)
			}
		}
	}

	slices.SortStableFunc(holders, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Right.Binding.Kind, b.Right.Binding.Kind), cmp.Compare(a.Right.Binding.Name, b.Right.Binding.Name))
	})

	return holders, unread, byName
}

// isAboutAnyName says whether a question is about objects of any name, and requests like it name one. A request to create, or to
// delete all, names none; one to create a subresource does.
func (q *Question) isAboutAnyName() bool {
	return q.Name == "" && q.Verb != "deletecollection" && (q.Verb != "create" || strings.Contains(q.Resource, "/"))
}

// entries are the subjects of a binding, each with the right that it gives.
func entries(r *Right, subjects []rbacv1.Subject, from []string) []Entry {
	var out []Entry

	for i := range subjects {
		s := &subjects[i]
		h := Entry{Kind: s.Kind, Name: s.Name, Right: *r, Aggregated: from}

		if s.Kind == rbacv1.ServiceAccountKind {
			// As the authorizer reads it: an account without a namespace is that beside its RoleBinding, and nobody in a
			// ClusterRoleBinding.
			if h.Namespace = cmp.Or(s.Namespace, r.Binding.Namespace); h.Namespace == "" {
				continue
			}
		}

		out = append(out, h)
	}

	return out
}

// aggregated are the ClusterRoles from which an aggregated one has what allows a request.
func aggregated(role Ref, q *Question, roles *Roles) []string {
	of := roles.ClusterRoles[role.Name]
	if role.Kind != "ClusterRole" || of == nil || of.AggregationRule == nil {
		return nil
	}

	var out []string

	takes := Aggregates(of.AggregationRule)

	for name, from := range roles.ClusterRoles {
		if from == nil || name == role.Name || !takes(from.Labels) {
			continue
		}

		if allowing, _ := Allowing([]Right{{Rules: from.Rules}}, q); len(allowing) > 0 {
			out = append(out, name)
		}
	}

	slices.Sort(out)

	return out
}

// Aggregates says of which ClusterRoles an aggregation rule takes the rules, by their labels. A nil rule takes none, and neither
// does a selector that cannot be read. To read selectors takes longer than to match labels: ask once for many ClusterRoles.
func Aggregates(rule *rbacv1.AggregationRule) func(of map[string]string) bool {
	var selectors []labels.Selector

	if rule != nil {
		for i := range rule.ClusterRoleSelectors {
			if s, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i]); err == nil {
				selectors = append(selectors, s)
			}
		}
	}

	return func(of map[string]string) bool {
		return slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(of)) })
	}
}
