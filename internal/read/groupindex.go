package read

import (
	"context"
	"fmt"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
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

	for name, w := range map[string]struct {
		store *indexStore
		list  client.ObjectList
		opts  []client.ListOption
	}{
		"OperatorGroup": {
			store: &indexStore{x, x.forgetGroups, x.putGroup, x.dropGroup}, list: &operatorsv1.OperatorGroupList{},
		},
		"ClusterRole " + GroupIndexName: {
			store: &indexStore{x, x.forgetWritten, x.putWritten, func(client.Object) { x.forgetWritten() }}, list: roles,
			opts: []client.ListOption{client.MatchingFields{"metadata.name": GroupIndexName}},
		},
	} {
		go newReflector(listerWatcher(x.client, w.list, nil, w.opts), w.store, name).RunWithContext(ctx)
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

	name := group.Spec.ServiceAccountName
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = "" // There is no such account, so nobody decided.
	}

	x.named[client.ObjectKeyFromObject(group)] = name
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

// indexStore records what a watch reports. Its functions are called with the index locked.
type indexStore struct {
	of        *GroupIndex
	forget    func()
	put, drop func(client.Object)
}

// Transformer makes the reflector keep no whole groups while it gathers the first list.
func (*indexStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
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
}

// Add stores an object that was created.
func (s *indexStore) Add(obj any) error { return s.edit(obj, s.put) }

// Update stores an object that was changed.
func (s *indexStore) Update(obj any) error { return s.edit(obj, s.put) }

// Delete takes out an object that was deleted.
func (s *indexStore) Delete(obj any) error { return s.edit(obj, s.drop) }

// Replace stores all objects.
func (s *indexStore) Replace(objs []any, _ string) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()

	s.forget()

	for _, obj := range objs {
		if o, ok := obj.(client.Object); ok {
			s.put(o)
		}
	}

	wake(s.of.changed)

	return nil
}

// Resync does nothing: nothing here is done at intervals.
func (*indexStore) Resync() error { return nil }

func (s *indexStore) edit(obj any, edit func(client.Object)) error {
	o, ok := obj.(client.Object)
	if !ok {
		return fmt.Errorf("a watch delivered %T, which is no Kubernetes object", obj)
	}

	s.of.mu.Lock()
	defer s.of.mu.Unlock()

	edit(o)
	wake(s.of.changed)

	return nil
}
