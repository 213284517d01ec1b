package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxAuthorizations bounds the authorizations that are remembered of a namespace. Its owner may make as many as there is room
// for.
const maxAuthorizations = 100

// authorizationRecord is an authorization, and the operator namespace whose account it is for.
type authorizationRecord struct {
	operatorNamespace string

	facts.Authorization
}

// convertAuthorization reads an authorization; nil where it is none. A RoleBinding whose name does not fit its label and its
// subject is somebody else's.
func convertAuthorization(obj client.Object) *authorizationRecord {
	b, is := obj.(*rbacv1.RoleBinding)
	to := obj.GetLabels()[scope.LabelAuthorizationTo]

	if !is || to == "" || len(b.Subjects) != 1 || obj.GetLabels()[scope.LabelManagedBy] != scope.ManagedByAuthorization ||
		len(b.Name) > maxName || !strings.HasPrefix(b.Name, scope.AuthorizationPrefix+to) {
		return nil
	}

	account := b.Subjects[0]
	if account.Kind != rbacv1.ServiceAccountKind || account.Namespace != to || len(account.Name) > maxName {
		return nil
	}

	c := facts.Authorization{Name: b.Name, UID: string(b.UID), Account: shared(account.Name)}
	c.ScopeGroup, c.ScopeName = scope.AuthorizationFor(obj.GetAnnotations()[scope.AnnotationAuthorizationScope])

	return &authorizationRecord{operatorNamespace: shared(to), Authorization: c}
}

// IsAuthorization says whether an object is an authorization, which owns copies.
func IsAuthorization(obj client.Object) bool { return convertAuthorization(obj) != nil }

// Authorizations asks the API server itself which authorizations to accounts of an operator namespace are in a namespace. A
// caller who just found that an account may write there may not have heard of the authorization from the watch yet.
func Authorizations(
	ctx context.Context, live client.Reader, namespace, operatorNamespace string,
) ([]facts.Authorization, error) {
	list := &rbacv1.RoleBindingList{}
	if err := live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxAuthorizations), client.MatchingLabels{
		scope.LabelManagedBy: scope.ManagedByAuthorization, scope.LabelAuthorizationTo: operatorNamespace,
	}); err != nil {
		return nil, fmt.Errorf("asking which authorizations are in namespace %s: %w", namespace, err)
	}

	var out []facts.Authorization

	for i := range list.Items {
		if record := convertAuthorization(&list.Items[i]); record != nil {
			out = append(out, record.Authorization)
		}
	}

	return out, nil
}

// authorizationsOf returns the authorizations to accounts of an operator namespace, by namespace.
func (t *projectedTable) authorizationsOf(operatorNamespace string) map[string][]facts.Authorization {
	out := map[string][]facts.Authorization{}

	for key := range t.authorizations.about[operatorNamespace] {
		out[key.namespace] = append(out[key.namespace], t.authorizations.rows[key].record.Authorization)
	}

	for _, authorizations := range out {
		slices.SortFunc(authorizations, func(a, b facts.Authorization) int { return cmp.Compare(a.Name, b.Name) })
	}

	return out
}
