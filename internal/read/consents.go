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

// maxConsents bounds the consents that are remembered of a namespace. Its owner may make as many as there is room for.
const maxConsents = 100

// consentRecord is a consent, and the operator namespace whose account it is for.
type consentRecord struct {
	key string
	facts.Consent
}

// consentTable holds what the owners of namespaces granted to accounts of operator namespaces.
type consentTable struct {
	rows  map[projectedKey]consentRow
	count map[string]int
	// changed is told the operator namespace.
	changed func(key string)
}

type consentRow struct {
	consentRecord

	version uint64
}

// convertConsent reads a consent; nil where it is none. A name that does not fit what it says is somebody else's.
func convertConsent(obj client.Object) *consentRecord {
	b, is := obj.(*rbacv1.RoleBinding)
	to := obj.GetLabels()[scope.LabelConsentTo]

	if !is || to == "" || len(b.Subjects) != 1 || obj.GetLabels()[scope.LabelManagedBy] != scope.ManagedByConsent ||
		len(b.Name) > maxName || !strings.HasPrefix(b.Name, scope.ConsentPrefix+to) {
		return nil
	}

	account := b.Subjects[0]
	if account.Kind != rbacv1.ServiceAccountKind || account.Namespace != to || len(account.Name) > maxName {
		return nil
	}

	c := facts.Consent{Name: b.Name, UID: string(b.UID), Account: shared(account.Name)}
	c.ScopeGroup, c.ScopeName = scope.ConsentFor(obj.GetAnnotations()[scope.AnnotationConsentScope])

	return &consentRecord{key: shared(to), Consent: c}
}

func (t *consentTable) put(key projectedKey, c *consentRecord, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version || !known && t.count[key.namespace] >= maxConsents {
		return
	}

	if t.rows == nil {
		t.rows, t.count = map[projectedKey]consentRow{}, map[string]int{}
	}

	t.rows[key] = consentRow{*c, a.version}

	if !known {
		t.count[key.namespace]++
	}

	if before.consentRecord != *c {
		t.changed(c.key)
	}

	if known && before.key != c.key {
		t.changed(before.key)
	}
}

func (t *consentTable) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	t.remove(key)
	t.changed(before.key)
}

func (t *consentTable) remove(key projectedKey) {
	delete(t.rows, key)

	if t.count[key.namespace]--; t.count[key.namespace] == 0 {
		delete(t.count, key.namespace)
	}
}

func (t *consentTable) forget(namespace string) {
	for key := range t.rows {
		if key.namespace == namespace {
			t.remove(key)
		}
	}
}

// of returns the consents to accounts of an operator namespace, by namespace.
func (t *consentTable) of(operatorNamespace string) map[string][]facts.Consent {
	out := map[string][]facts.Consent{}

	for key, row := range t.rows {
		if row.key == operatorNamespace {
			out[key.namespace] = append(out[key.namespace], row.Consent)
		}
	}

	for _, consents := range out {
		slices.SortFunc(consents, func(a, b facts.Consent) int { return cmp.Compare(a.Name, b.Name) })
	}

	return out
}
