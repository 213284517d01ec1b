package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxAuthorizations bounds the authorizations that are remembered of a namespace. Its owner may make as many as there is room
// for.
const maxAuthorizations = 100

// authorizationsAtOnce is how many of them are in one answer.
const authorizationsAtOnce = 5

// maxGranted bounds the rules of an authorization that are kept, and maxGrantedIn those of one namespace. One that grants more
// allows nothing that is known. smallGranted is what counts for nothing while they are listed.
const (
	maxGranted   = 32 << 10
	maxGrantedIn = 128 << 10
	smallGranted = 1 << 10
)

// maxAuthorizationName is how long the name of an authorization can be, which holds those of a namespace and of a scope.
const maxAuthorizationName = 2 * maxName

// authorizationRecord is an authorization, the operator namespace whose account it is for, and the Role that it refers to; empty
// where that is no Role.
type authorizationRecord struct {
	operatorNamespace, role string

	facts.Authorization
}

// authorizationRole is what an authorization grants: the rules of its Role, as JSON.
type authorizationRole struct{ operatorNamespace, rules string }

// convertAuthorizationRole reads the Role of an authorization; nil where it is none.
func convertAuthorizationRole(obj client.Object) *authorizationRole {
	r, is := obj.(*rbacv1.Role)
	to := authorizedNamespace(obj)

	if !is || to == "" {
		return nil
	}

	rules, err := json.Marshal(r.Rules)
	if err != nil || len(rules) > maxGranted {
		rules = nil
	}

	return &authorizationRole{shared(to), shared(string(rules))}
}

// weight is what is bounded of all that a namespace holds.
func (r *projectedRecord) weight() int {
	if r.authorizationRole == nil {
		return 0
	}

	return len(r.authorizationRole.rules)
}

// lighten leaves out what an authorization grants.
func (r *projectedRecord) lighten() {
	r.authorizationRole = &authorizationRole{operatorNamespace: r.authorizationRole.operatorNamespace}
}

// authorizedNamespace is the operator namespace whose account an authorization, or its Role, is for; empty for what is neither.
func authorizedNamespace(obj client.Object) string {
	to := obj.GetLabels()[scope.LabelAuthorizationTo]
	if obj.GetLabels()[scope.LabelManagedBy] != scope.ManagedByAuthorization || len(obj.GetName()) > maxAuthorizationName ||
		!strings.HasPrefix(obj.GetName(), scope.AuthorizationPrefix+to) {
		return ""
	}

	return to
}

// convertAuthorization reads an authorization; nil where it is none. A RoleBinding whose name does not fit its label and its
// subject is somebody else's.
func convertAuthorization(obj client.Object) *authorizationRecord {
	b, is := obj.(*rbacv1.RoleBinding)
	to := authorizedNamespace(obj)

	if !is || to == "" || len(b.Subjects) != 1 {
		return nil
	}

	account := b.Subjects[0]
	if account.Kind != rbacv1.ServiceAccountKind || account.Namespace != to || len(account.Name) > maxName {
		return nil
	}

	c := facts.Authorization{Name: b.Name, UID: string(b.UID), Account: shared(account.Name)}
	c.ScopeGroup, c.ScopeName = scope.AuthorizationFor(obj.GetAnnotations()[scope.AnnotationAuthorizationScope])

	record := &authorizationRecord{operatorNamespace: shared(to), Authorization: c}
	if b.RoleRef.Kind == string(projected.Role) && len(b.RoleRef.Name) <= maxAuthorizationName {
		record.role = shared(b.RoleRef.Name)
	}

	return record
}

// IsOfAuthorization says whether an object is an authorization, which owns copies, or its Role, which owns the authorization.
func IsOfAuthorization(obj client.Object) bool {
	return convertAuthorization(obj) != nil || convertAuthorizationRole(obj) != nil
}

// Authorizations asks the API server itself which authorizations to accounts of a scope's operator namespace are in a namespace.
// A caller who just found that an account may write there may not have heard of the authorization from the watch yet.
func Authorizations(
	ctx context.Context, live client.Reader, namespace string, of scope.Owner,
) ([]facts.Authorization, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{
		scope.LabelManagedBy: scope.ManagedByAuthorization, scope.LabelAuthorizationTo: of.Namespace,
	}}

	var records []*authorizationRecord

	bindings, roles := &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}
	seen, err := eachOf(ctx, live, bindings, func() int {
		for i := range bindings.Items {
			if record := convertAuthorization(&bindings.Items[i]); record != nil {
				records = append(records, record)
			}
		}

		return len(bindings.Items)
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("asking which authorizations are in namespace %s: %w", namespace, err)
	}

	granted := map[string]*authorizationRole{}

	// One alone owns what is written, whatever it grants, unless it is another scope's.
	if seen > 1 || len(records) == 1 && !records[0].IsFor(of) {
		if _, err := eachOf(ctx, live, roles, func() int {
			for i := range roles.Items {
				granted[roles.Items[i].Name] = convertAuthorizationRole(&roles.Items[i])
			}

			return len(roles.Items)
		}, options...); err != nil {
			return nil, fmt.Errorf("asking what the authorizations in namespace %s grant: %w", namespace, err)
		}
	}

	var out []facts.Authorization

	for _, record := range records {
		out = append(out, record.granting(granted[record.role]))
	}

	return out, nil
}

// eachOf lists a few objects at a time, because whoever administers the namespace decides how large they are, and no more than
// are remembered. note takes in those that are in the list, and counts them. It returns how many there were.
func eachOf(
	ctx context.Context, live client.Reader, list client.ObjectList, note func() int, options ...client.ListOption,
) (seen int, err error) {
	for {
		page := append(slices.Clip(options), client.Limit(authorizationsAtOnce), client.Continue(list.GetContinue()))
		if err := live.List(ctx, list, page...); err != nil {
			return seen, err //nolint:wrapcheck // The caller says what was asked.
		}

		if seen += note(); list.GetContinue() == "" || seen >= maxAuthorizations {
			return seen, nil
		}
	}
}

// granting is the authorization with what its Role grants; nil for a Role of which nothing is known.
func (r *authorizationRecord) granting(role *authorizationRole) facts.Authorization {
	a := r.Authorization
	if role != nil && role.operatorNamespace == r.operatorNamespace {
		a.Rules = role.rules
	}

	return a
}

// authorizationsOf returns the authorizations to accounts of an operator namespace, by namespace.
func (t *projectedTable) authorizationsOf(operatorNamespace string) map[string][]facts.Authorization {
	out := map[string][]facts.Authorization{}

	for key := range t.authorizations.about[operatorNamespace] {
		record := t.authorizations.rows[key].record
		at := projectedKey{key.namespace, facts.ProjectedKey{Kind: projected.Role, Name: record.role}}
		role := t.authorizationRoles.rows[at].record
		out[key.namespace] = append(out[key.namespace], record.granting(&role))
	}

	for _, authorizations := range out {
		slices.SortFunc(authorizations, func(a, b facts.Authorization) int { return cmp.Compare(a.Name, b.Name) })
	}

	return out
}
