package explain

import (
	"slices"
	"strings"
)

// namespacesResource is in no namespace, and yet a request that names one counts as made in it (NewRequestInfo in
// k8s.io/apiserver/pkg/endpoints/request/requestinfo.go).
const namespacesResource = "namespaces"

// InNoNamespace says that a question about a resource without a namespace, asked in one, is about the whole cluster: what a Role
// or a RoleBinding says of it gives nothing. The exception is the namespace itself, by its name, and its
// subresources.
func (q *Question) InNoNamespace(namespace string) {
	resource, _, _ := strings.Cut(q.Resource, "/")
	itself := q.Group == "" && resource == namespacesResource && (q.Name == "" || q.Name == namespace) &&
		slices.Contains([]string{"get", "update", "patch", "delete"}, q.Verb)

	q.ClusterScoped = !itself
}

// Ineffective returns the rights that say what is asked, and give nothing because it is in no namespace.
func Ineffective(rights []Right, q *Question) []Right {
	if !q.ClusterScoped {
		return nil
	}

	asked := *q
	asked.ClusterScoped = false

	allowing, _ := Allowing(slices.DeleteFunc(slices.Clone(rights), func(r Right) bool { return r.Everywhere }), &asked)

	return allowing
}
