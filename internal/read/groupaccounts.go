package read

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// GroupAccounts knows which service account the OperatorGroups of each namespace name.
type GroupAccounts struct {
	client client.WithWatch
	// changed wakes up who wants to know.
	changed chan struct{}

	mu     sync.Mutex
	listed bool
	// named are the accounts, by group; empty for a group that names none.
	named map[types.NamespacedName]string
}

// NewGroupAccounts returns GroupAccounts that begin to know with Watch.
func NewGroupAccounts(c client.WithWatch) *GroupAccounts {
	return &GroupAccounts{client: c, changed: make(chan struct{}, 1), named: map[types.NamespacedName]string{}}
}

// Watch watches the groups until the context ends.
func (g *GroupAccounts) Watch(ctx context.Context) {
	from := listerWatcher(g.client, &operatorsv1.OperatorGroupList{}, nil, nil)

	cache.NewReflectorWithOptions(from, nil, g, cache.ReflectorOptions{
		Name: "OperatorGroups", TypeDescription: "OperatorGroup",
	}).RunWithContext(ctx)
}

// Changed receives something after a change.
func (g *GroupAccounts) Changed() <-chan struct{} { return g.changed }

// Accounts returns, for each namespace whose groups all name one account, that account; and whether the groups were listed. A
// namespace with a group that names none, or with groups that name two, is not in it: whose rights count there is not decided.
func (g *GroupAccounts) Accounts() (accounts map[string]string, listed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	undecided := map[string]bool{}
	accounts = map[string]string{}

	for group, account := range g.named {
		if other, known := accounts[group.Namespace]; account == "" || known && other != account {
			undecided[group.Namespace] = true
		}

		accounts[group.Namespace] = account
	}

	for namespace := range undecided {
		delete(accounts, namespace)
	}

	return accounts, g.listed
}

// Add takes in a group that was created.
func (g *GroupAccounts) Add(obj any) error { return g.Update(obj) }

// Update takes in a group that was changed.
func (g *GroupAccounts) Update(obj any) error {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return fmt.Errorf("a watch delivered %T, which is no OperatorGroup", obj)
	}

	g.edit(func() { g.named[client.ObjectKeyFromObject(group)] = group.Spec.ServiceAccountName })

	return nil
}

// Delete takes out a group that was deleted.
func (g *GroupAccounts) Delete(obj any) error {
	group, ok := obj.(*operatorsv1.OperatorGroup)
	if !ok {
		return fmt.Errorf("a watch delivered %T, which is no OperatorGroup", obj)
	}

	g.edit(func() { delete(g.named, client.ObjectKeyFromObject(group)) })

	return nil
}

// Replace takes in all groups.
func (g *GroupAccounts) Replace(objs []any, _ string) error {
	g.edit(func() {
		clear(g.named)

		for _, obj := range objs {
			if group, ok := obj.(*operatorsv1.OperatorGroup); ok {
				g.named[client.ObjectKeyFromObject(group)] = group.Spec.ServiceAccountName
			}
		}

		g.listed = true
	})

	return nil
}

// Resync does nothing: nothing here is done at intervals.
func (*GroupAccounts) Resync() error { return nil }

func (g *GroupAccounts) edit(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()

	edit()
	wake(g.changed)
}
