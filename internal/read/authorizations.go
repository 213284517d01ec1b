package read

import (
	"cmp"
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
	key string
	facts.Authorization
}

// authorizationTable holds what the owners of namespaces granted to accounts of operator namespaces.
type authorizationTable struct {
	rows  map[projectedKey]authorizationRow
	count map[string]int
	// changed is told the operator namespace.
	changed func(key string)
}

type authorizationRow struct {
	authorizationRecord

	version uint64
}

// convertAuthorization reads an authorization; nil where it is none. A name that does not fit what it says is somebody else's.
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

	return &authorizationRecord{key: shared(to), Authorization: c}
}

func (t *authorizationTable) put(key projectedKey, c *authorizationRecord, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version || !known && t.count[key.namespace] >= maxAuthorizations {
		return
	}

	if t.rows == nil {
		t.rows, t.count = map[projectedKey]authorizationRow{}, map[string]int{}
	}

	t.rows[key] = authorizationRow{*c, a.version}

	if !known {
		t.count[key.namespace]++
	}

	if before.authorizationRecord != *c {
		t.changed(c.key)
	}

	if known && before.key != c.key {
		t.changed(before.key)
	}
}

func (t *authorizationTable) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	t.remove(key)
	t.changed(before.key)
}

func (t *authorizationTable) remove(key projectedKey) {
	delete(t.rows, key)

	if t.count[key.namespace]--; t.count[key.namespace] == 0 {
		delete(t.count, key.namespace)
	}
}

func (t *authorizationTable) forget(namespace string) {
	for key := range t.rows {
		if key.namespace == namespace {
			t.remove(key)
		}
	}
}

// of returns the authorizations to accounts of an operator namespace, by namespace.
func (t *authorizationTable) of(operatorNamespace string) map[string][]facts.Authorization {
	out := map[string][]facts.Authorization{}

	for key, row := range t.rows {
		if row.key == operatorNamespace {
			out[key.namespace] = append(out[key.namespace], row.Authorization)
		}
	}

	for _, authorizations := range out {
		slices.SortFunc(authorizations, func(a, b facts.Authorization) int { return cmp.Compare(a.Name, b.Name) })
	}

	return out
}
