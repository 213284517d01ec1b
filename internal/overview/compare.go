package overview

import "cmp"

// Compare is the order in which New sorts services.
func Compare(a, b *Service) int {
	return cmp.Or(compareOperators(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Scope, b.Scope))
}
