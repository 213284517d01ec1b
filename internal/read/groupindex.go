package read

import (
	"context"
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
	// named are the accounts, by group; empty for a group that names none. written are those that the guard reads, by the key of
	// the annotation. Both are nil until they were listed.
	named   map[types.NamespacedName]string
	written map[string]string
}

// NewGroupIndex returns a GroupIndex that begins to know with Watch.
func NewGroupIndex(c client.WithWatch) *GroupIndex {
	return &GroupIndex{client: c, changed: make(chan struct{}, 1)}
}

// Watch watches the groups, and what is written down, until the context ends.
func (x *GroupIndex) Watch(ctx context.Context) {
	roles := &metav1.PartialObjectMetadataList{}
	roles.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))

	groups := listerWatcher(x.client, &operatorsv1.OperatorGroupList{}, nil, nil)
	index := listerWatcher(x.client, roles, nil, []client.ListOption{client.MatchingFields{"metadata.name": GroupIndexName}})

	go newReflector(groups, x.groups(), "OperatorGroup").RunWithContext(ctx)
	go newReflector(index, x.index(), "ClusterRole "+GroupIndexName).RunWithContext(ctx)
}

func (x *GroupIndex) groups() *objectStore {
	return &objectStore{locked: x.changing, forget: x.forgetGroups, put: x.putGroup, drop: x.dropGroup, trim: withoutContent}
}

func (x *GroupIndex) index() *objectStore {
	return &objectStore{
		locked: x.changing, forget: x.forgetWritten, put: x.putWritten, drop: func(client.Object) { x.forgetWritten() },
	}
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

	for group, account := range x.named {
		if other, seen := accounts[group.Namespace]; account == "" || seen && other != account {
			undecided[group.Namespace] = true
		}

		accounts[group.Namespace] = account
	}

	for namespace := range undecided {
		delete(accounts, namespace)
	}

	delete(accounts, x.Global)

	return accounts, x.written, x.named != nil && x.written != nil
}

func (x *GroupIndex) forgetGroups() { x.named = map[types.NamespacedName]string{} }

func (x *GroupIndex) putGroup(obj client.Object) {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok || x.named == nil {
		return
	}

	// Nothing is installed for one that is being deleted, however long a finalizer keeps it.
	if group.DeletionTimestamp != nil {
		x.dropGroup(group)

		return
	}

	x.named[client.ObjectKeyFromObject(group)] = accountOf(group)
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

	account, known := x.named[client.ObjectKeyFromObject(groups[0])]

	return x.named != nil && (!known || account != accountOf(groups[0]))
}

func (x *GroupIndex) dropGroup(obj client.Object) { delete(x.named, client.ObjectKeyFromObject(obj)) }

func (x *GroupIndex) forgetWritten() { x.written = map[string]string{} }

func (x *GroupIndex) putWritten(obj client.Object) {
	written := map[string]string{}

	for key, account := range obj.GetAnnotations() {
		if strings.HasPrefix(key, AccountPrefix) {
			written[key] = account
		}
	}

	x.written = written
}

// changing calls a function that changes what is known.
func (x *GroupIndex) changing(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()

	change()
	wake(x.changed)
}

// withoutContent is what a group says of its account: no whole groups are kept while the first list is gathered.
func withoutContent(obj any) (any, error) {
	group, is := obj.(*operatorsv1.OperatorGroup)
	if !is {
		return obj, nil
	}

	named := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: group.Namespace, Name: group.Name, ResourceVersion: group.ResourceVersion,
		DeletionTimestamp: group.DeletionTimestamp,
	}}
	named.Spec.ServiceAccountName = group.Spec.ServiceAccountName

	return named, nil
}
