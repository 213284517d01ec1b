package read

import (
	"context"
	"maps"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// Where the guard reads which account the groups of a namespace name.
const (
	// GroupIndexName is the ClusterRole, without rules, that config installs for it.
	GroupIndexName = "ambit-operator-groups"
	// AccountPrefix begins the annotation that names the account of a namespace; the namespace follows.
	AccountPrefix = "account.ambit.dev/"
)

// GroupIndex knows which service account the OperatorGroups of each namespace name, and which is written down for the guard.
type GroupIndex struct {
	// Global is the namespace whose catalogs are for all namespaces, and with that for all accounts.
	Global string

	client client.WithWatch
	// changed wakes up whoever receives from Changed.
	changed chan struct{}

	mu sync.Mutex
	// named are the accounts, by group; empty for a group that names none. written are the annotations that the guard reads, of
	// the one ClusterRole that has them.
	named   listed[string]
	written listed[map[string]string]
}

// NewGroupIndex returns a GroupIndex that begins to know with Watch.
func NewGroupIndex(c client.WithWatch) *GroupIndex {
	return &GroupIndex{client: c, changed: make(chan struct{}, 1)}
}

// Watch watches the groups, and what is written down, until the context ends.
func (x *GroupIndex) Watch(ctx context.Context) {
	roles := &metav1.PartialObjectMetadataList{}
	roles.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))

	follow(ctx, x.client, x.groups(), &operatorsv1.OperatorGroupList{}, nil)
	follow(ctx, x.client, x.index(), roles, nil, client.MatchingFields{"metadata.name": GroupIndexName})
}

func (x *GroupIndex) groups() *sink[string] {
	return x.named.sink(&x.mu, convertGroup, func() { wake(x.changed) })
}

func (x *GroupIndex) index() *sink[map[string]string] {
	return x.written.sink(&x.mu, convertIndex, func() { wake(x.changed) })
}

// Changed receives something after a change.
func (x *GroupIndex) Changed() <-chan struct{} { return x.changed }

// Accounts returns, for each namespace whose groups all name one account, that account. A namespace with a group that names
// none, or with groups that name two, is not in it: whose rights count there is not decided. Nor is the one whose catalogs are
// for all namespaces: what is written there is installed as anybody's account. written are the annotations that the guard reads.
// known says whether both were listed.
func (x *GroupIndex) Accounts() (accounts, written map[string]string, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()

	undecided := map[string]bool{}
	accounts = map[string]string{}

	for group, row := range x.named.rows {
		account := row.record
		if other, seen := accounts[group.Namespace]; account == "" || seen && other != account {
			undecided[group.Namespace] = true
		}

		accounts[group.Namespace] = account
	}

	for namespace := range undecided {
		delete(accounts, namespace)
	}

	delete(accounts, x.Global)

	written = x.written.rows[types.NamespacedName{Name: GroupIndexName}].record

	return accounts, written, x.named.isListed && x.written.isListed
}

// convertGroup keeps the account that a group names. Nothing is installed for one that is being deleted, however long a finalizer
// keeps it.
func convertGroup(obj client.Object) (string, bool) {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok || group.DeletionTimestamp != nil {
		return "", false
	}

	return accountOf(group), true
}

// convertIndex keeps the annotations that the guard reads.
func convertIndex(obj client.Object) (map[string]string, bool) {
	written := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(written, func(key, _ string) bool { return !strings.HasPrefix(key, AccountPrefix) })

	return written, true
}

// accountOf is the account that a group names. Where there can be no such account, nobody decided.
func accountOf(group *operatorsv1.OperatorGroup) string {
	if name := group.Spec.ServiceAccountName; len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}

	return ""
}

// Contradicts says whether the one group of a namespace, as another watch brought it, is not as it is known here. The guard goes
// by what is known here, and lets through what is then written beside the group. A group that was there before must not install
// that. Without an index, or before its first list, no guard goes by it.
func (x *GroupIndex) Contradicts(groups []*operatorsv1.OperatorGroup) bool {
	if x == nil || len(groups) != 1 {
		return false // None of several installs anything.
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	known, is := x.named.rows[client.ObjectKeyFromObject(groups[0])]

	return x.named.isListed && (!is || known.record != accountOf(groups[0]))
}
