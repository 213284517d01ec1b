package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// late is a cache that tells nothing new of some kinds, since it is busy with the large ones of another namespace.
type late struct {
	client.Client

	cache client.Reader
	held  []client.ObjectList
}

func (c *late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	for _, held := range c.held {
		if kindOfList(held) == kindOfList(list) {
			items, err := meta.ExtractList(held.DeepCopyObject())
			if err != nil {
				return err
			}

			return meta.SetList(list, items)
		}
	}

	return c.cache.List(ctx, list, opts...)
}

// kindOfList tells lists of one type apart that are of several kinds.
func kindOfList(list client.ObjectList) string {
	return fmt.Sprintf("%T %s", list, list.GetObjectKind().GroupVersionKind())
}

// lateFrom returns a cache that tells nothing new of some kinds from now on.
func (w *world) lateFrom(cache client.Reader, kinds ...client.ObjectList) *late {
	w.Helper()

	for _, kind := range kinds {
		if err := cache.List(w.Context(), kind, client.InNamespace(w.ns(ops))); err != nil {
			w.Fatal(err)
		}
	}

	return &late{Client: w.scopes.Client, cache: cache, held: kinds}
}

// isLate fails the case when a cache holds of a kind what there is.
func (w *world) isLate(c *late, kind client.ObjectList) {
	w.Helper()

	if held := w.versions(c, kind, w.ns(ops)); len(held) == 0 || equal(held, w.versions(w.client, kind, w.ns(ops))) {
		w.Fatalf("the cache is not late with %T: it holds %v", kind, held)
	}
}

// another is a reconciler of scopes that the case may change: its own, with another client.
func (w *world) another(reads client.Client) *namespacescope.Reconciler {
	of := w.scopes

	return &namespacescope.Reconciler{
		Shared: of.Shared, Client: reads, Live: of.Live, Quota: namespacescope.NewQuota(), RestartInterval: of.RestartInterval,
		FinishGrace: of.FinishGrace, Finder: of.Finder,
	}
}

// groupsFrom and catalogsFrom are reconcilers that read from another cache.
func (w *world) groupsFrom(cache client.Reader) *group.Reconciler {
	of := w.groups

	return &group.Reconciler{
		Shared: of.Shared, Client: of.Client, Cache: cache, Live: of.Live, Serves: of.Serves, Quota: of.Quota,
		Groups: group.NewGroupQuota(), Subscriptions: of.Subscriptions, Kubernetes: of.Kubernetes, Ours: of.Ours, Index: of.Index,
	}
}

func (w *world) catalogsFrom(cache client.Reader) *catalog.Reconciler {
	of := w.catalogs

	return &catalog.Reconciler{
		Shared: of.Shared, Client: of.Client, Cache: cache, Live: of.Live, Quotas: of.Quotas, Ours: of.Ours, Index: of.Index,
	}
}

// TestLateCacheKeepsNobodyWaiting: whoever fills the cache with large scopes of their own delays what it tells of others. What
// Ambit wrote last to those is not waited for: a right that is taken away goes, and no status is written over an older one.
func TestLateCacheKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.grant(ops, "more", "op", "list pods")
	w.scope(`{"namespaceMembers":["a>","d>"]}`)
	w.settle()

	before := w.lateFrom(w.scopes.Client, &operatorv1.NamespaceScopeList{})
	r := w.another(before)
	key := scope.NamespaceScopes.In(w.ns(ops))
	reconcile := func() call { return w.answered(r, key, func() { w.catchUp(w.client, w.ns(ops)) }) }

	w.namespaces("d")
	reconcile()
	is(w, "members that failed", w.failed("scope"), []string{})
	w.isLate(before, &operatorv1.NamespaceScopeList{})

	w.Remove(testbed.Role(w.ns(ops), "more"))
	w.Remove(w.binding(ops, "more", "Role", "more"))

	version := w.versions(w.client, &operatorv1.NamespaceScopeList{}, w.ns(ops))

	if c := reconcile(); len(c.writes) == 0 {
		t.Errorf("nothing was written; the next plan is in %s", c.RequeueAfter)
	}

	for _, member := range []string{"a", "d"} {
		is(w, "copies in "+member, w.copies(member), one)
	}

	is(w, "the version of the scope", w.versions(w.client, &operatorv1.NamespaceScopeList{}, w.ns(ops)), version)
}

// TestLateCacheKeepsNoGroupWaiting is the same for an OperatorGroup. What was written to the versions installed beside it is
// waited for briefly.
func TestLateCacheKeepsNoGroupWaiting(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"selector":{"matchLabels":{"team":"red>"}}}`)
	w.csv("MultiNamespace")
	w.reconcileGroup()

	before := w.lateFrom(w.groups.Cache, &operatorsv1.OperatorGroupList{}, scope.NewOLMList(scope.KindCSV))
	r := w.groupsFrom(before)
	reconcile := func() call {
		return w.answered(r, scope.Installs.In(w.ns(ops)), func() { w.catchUp(w.client, w.ns(ops)) })
	}

	c := w.object("c")
	w.Change(c, func() { c.Labels["team"] = w.long("red>") })
	reconcile()
	is(w, "served", w.served(), []string{"a", "b", "c", "ops"})
	w.isLate(before, &operatorsv1.OperatorGroupList{})

	w.Change(c, func() { c.Labels["team"] = "blue" })

	wait := reconcile().RequeueAfter
	if wait > changes.CacheWait {
		t.Fatalf("the next plan is in %s, and not within %s", wait, changes.CacheWait)
	}

	time.Sleep(wait)
	reconcile()
	is(w, "served", w.served(), []string{"a", "b", "ops"})
}

// TestLateCacheInstallsByNoGroupOfBefore: the account that a group names now decides who may write what is installed beside it.
// That is not installed with the rights of the account that the group named before, or of Ambit itself, however late the cache
// tells of the group. What is to be revoked goes meanwhile.
func TestLateCacheInstallsByNoGroupOfBefore(t *testing.T) {
	t.Parallel()

	const byAnother = `{"targetNamespaces":["ops>"],"serviceAccountName":"another"}`

	for name, tc := range map[string]struct {
		profile, before string
		change          func(w *world)
	}{
		"it named none": {"cluster", `{"targetNamespaces":["ops>"]}`, func(w *world) { w.regroup(byAnother) }},
		"it is gone, and another one names an account": {"cluster", `{"targetNamespaces":["ops>"]}`, func(w *world) {
			w.Remove(w.groupNamed(ops, "group"))
			w.group("another", byAnother)
		}},
		"it named another account": {
			"delegated", `{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`, func(w *world) { w.regroup(byAnother) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, tc.profile)
			w.Make(testbed.Account(w.ns(ops), "scoped"), testbed.Account(w.ns(ops), "another"))
			w.gives("everything", w.everythingIn(ops))
			w.group("group", tc.before)
			w.csv("OwnNamespace")
			w.reconcileGroup()
			is(w, "where the operator has permissions before", w.served(), []string{"ops"})

			w.watched = ""
			w.catalog()
			w.reconcileCatalogs(true)

			before := &operatorsv1.OperatorGroupList{}
			late := w.lateFrom(w.groups.Cache, before)
			groups, catalogs := w.groupsFrom(late), w.catalogsFrom(late)

			tc.change(w)

			// From then on, the guard may know of it.
			if err := until(w.Context(), func() bool {
				return groups.Index.Contradicts([]*operatorsv1.OperatorGroup{&before.Items[0]})
			}); err != nil {
				t.Fatal(err)
			}

			w.Remove(w.versionCalled("op.v1"))
			w.answered(groups, scope.Installs.In(w.ns(ops)), w.catchUpCatalogs)
			is(w, "where the operator has permissions once its ClusterServiceVersion is gone", w.served(), []string{})

			w.wroteAs = nil
			w.csv("OwnNamespace")
			w.subscribe()

			for range 3 {
				w.answered(groups, scope.Installs.In(w.ns(ops)), w.catchUpCatalogs)
				w.answered(catalogs, scope.Catalogs.In(w.ns(ops)), w.catchUpCatalogs)
			}

			w.isLate(late, &operatorsv1.OperatorGroupList{})
			is(w, "who installed", w.installsAs(), []string{})
			is(w, "where the operator has permissions", w.served(), []string{})
			is(w, "InstallPlans", w.planned(), []string(nil))
		})
	}
}
