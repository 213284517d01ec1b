package compile

import "github.com/ambit-k8s/ambit/internal/scope"

// Namespaced is what a scope means to a manager that serves some namespaces, with what was granted to it in each: nothing is
// read cluster-wide, and there is no policy that asks who wrote the scope.
func Namespaced(s scope.Scope) scope.Scope {
	s.Confined = true

	if s.InjectWorkloads != nil {
		in := *s.InjectWorkloads
		in.Replace = false
		s.InjectWorkloads = &in
	}

	if s.Members.Selector != nil {
		s.Members.Selector = nil
		s.Members.Problem = "spec.namespaceSelector selects nothing: this Ambit may not list namespaces; " +
			"name them in spec.namespaceMembers"
	}

	return s
}
