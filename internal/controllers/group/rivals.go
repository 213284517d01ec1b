package group

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// byAPI is the name of the index by which the cache finds ClusterServiceVersions that bring an API.
const byAPI = "providedAPIs"

func providedBy(obj client.Object) []string { return ofOriginal(obj, install.ProvidedBy) }

// ofOriginal reads something of a ClusterServiceVersion that is no copy of another.
func ofOriginal(obj client.Object, read func(csv map[string]any) []string) []string {
	csv, ok := obj.(*unstructured.Unstructured)
	if !ok || install.IsCopy(csv) {
		return nil
	}

	return read(csv.Object)
}

// holding finds where each CSV of a namespace holds permissions.
func holding(namespace string, f *facts.Facts) map[string]map[string]struct{} {
	out := map[string]map[string]struct{}{}
	prefix := compile.CSVOwner(namespace, "").String()

	for in, objects := range f.Projected {
		for _, o := range objects {
			name, is := strings.CutPrefix(o.Owner, prefix)
			if !is {
				continue
			}

			if out[name] == nil {
				out[name] = map[string]struct{}{}
			}

			out[name][in] = struct{}{}
		}
	}

	return out
}

// findRivals finds the operators of other namespaces that run and bring what CSVs of this one bring.
func (r *Reconciler) findRivals(ctx context.Context, w *snapshot) error {
	if w.Group == nil {
		return nil
	}

	apis := sets.Set[string]{}
	for _, csv := range w.CSVs {
		apis.Insert(install.Provided(csv)...)
	}

	candidates, err := r.bringing(ctx, apis)
	if err != nil {
		return err
	}

	among := append([]string{w.Namespace}, w.Group.Targets...)
	neighbours := map[string]*neighbour{}

	for _, csv := range candidates {
		namespace := csv.GetNamespace()
		if namespace == w.Namespace || csv.GetDeletionTimestamp() != nil {
			continue
		}

		if _, looked := neighbours[namespace]; !looked {
			if neighbours[namespace], err = r.neighbour(ctx, namespace); err != nil {
				return err
			}
		}

		if n := neighbours[namespace]; n.group != nil && n.runs(csv) {
			w.Others = append(w.Others, r.operator(csv, n, among))
		}
	}

	slices.SortFunc(w.Others, func(a, b install.Operator) int { return strings.Compare(a.Namespace, b.Namespace) })

	return nil
}

// bringing are the CSVs, of any namespace, that bring one of the APIs, sorted. They are the cache's own.
func (r *Reconciler) bringing(ctx context.Context, apis sets.Set[string]) ([]*unstructured.Unstructured, error) {
	if r.Confined != nil {
		return r.bringingHere(ctx, apis)
	}

	found := map[types.NamespacedName]*unstructured.Unstructured{}

	for api := range apis {
		list := scope.NewOLMList(scope.KindCSV)
		if err := r.Cache.List(ctx, list, client.MatchingFields{byAPI: api}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing who brings %s: %w", api, err)
		}

		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		}
	}

	keys := slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})

	return collect.Map(keys, func(key types.NamespacedName) *unstructured.Unstructured { return found[key] }), nil
}

// neighbour is another namespace in which something is installed.
type neighbour struct {
	// group is nil when there is none, or more than one: then nothing is served by the operators there.
	group   *operatorsv1.OperatorGroup
	targets sets.Set[string]
	// owners are those of the Deployments that Ambit made there, if they are known.
	owners map[string]struct{}
	known  bool
}

func (r *Reconciler) neighbour(ctx context.Context, namespace string) (*neighbour, error) {
	var groups operatorsv1.OperatorGroupList
	if err := r.Cache.List(ctx, &groups, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the groups of namespace %s: %w", namespace, err)
	}

	n := &neighbour{}
	n.owners, n.known = r.Store.Operators(namespace)

	for i := range groups.Items {
		switch g := &groups.Items[i]; {
		case g.DeletionTimestamp != nil:
		case n.group != nil:
			return &neighbour{}, nil
		default:
			n.group = g
		}
	}

	if n.group != nil {
		n.targets = sets.New(n.group.Status.Namespaces...)
	}

	return n, nil
}

// runs says whether a CSV has a Deployment that Ambit made for it. What its status says decides only for as long as that is not
// known, just after Ambit started.
func (n *neighbour) runs(csv *unstructured.Unstructured) bool {
	if !n.known {
		phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase")

		return phase == string(olm.CSVPhaseSucceeded)
	}

	_, runs := n.owners[string(csv.GetUID())]

	return runs
}

// converter names the operator of another namespace that runs, brings a definition, and converts it by now; empty where there is
// none. Two that bring different versions of a definition are in no conflict by these, and each would undo what the other writes.
func (p *state) converter(ctx context.Context, definition string) (string, error) {
	namespace, _, is := strings.Cut(p.snapshot.CRDs[definition].Converter, "/")
	if !is || namespace == p.snapshot.Namespace {
		return "", nil
	}

	list := scope.NewOLMList(scope.KindCSV)
	if err := p.Cache.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{byDefinition: definition},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing who brings %s: %w", definition, err)
	}

	there, err := p.neighbour(ctx, namespace)
	if err != nil || there.group == nil {
		return "", err
	}

	for i := range list.Items {
		csv := &list.Items[i]
		if csv.GetDeletionTimestamp() == nil && there.runs(csv) && install.Owns(csv.Object, definition) {
			return namespace + "/" + csv.GetName(), nil
		}
	}

	return "", nil
}

// operator says where an operator that runs works. Where it holds no permissions, nobody has let it in. That a Deployment is
// Ambit's, anybody may write who writes Deployments there; so without permissions that tell, its status has to say that it runs.
func (r *Reconciler) operator(csv *unstructured.Unstructured, n *neighbour, among []string) install.Operator {
	namespace := csv.GetNamespace()
	out := install.Operator{
		Namespace: namespace, Group: n.group.Name, UID: string(n.group.UID), Created: n.group.CreationTimestamp.Time,
		APIs: install.ProvidedBy(csv.Object),
	}

	key, owner := scope.Installs.In(namespace), compile.CSVOwner(namespace, csv.GetName())
	inCluster := actsInCluster(csv, out.APIs, r.Store.Held(key, owner.String(), ""))
	in := func(name string) bool { return inCluster || len(r.Store.Held(key, owner.String(), name)) > 0 }
	inOwn := in(namespace) || len(install.AccountsWith(csv, "permissions")) == 0 && install.Runs(csv)

	_, everywhere := n.targets[""]
	out.Everywhere = everywhere && inCluster

	for _, name := range among {
		_, is := n.targets[name]

		switch {
		case (name == "" || name == namespace) && inOwn: // All namespaces are among these.
			out.Serves = append(out.Serves, namespace)
		case name != "" && is && in(name):
			out.Serves = append(out.Serves, name)
		}
	}

	out.Serves = slices.Compact(slices.Sorted(slices.Values(out.Serves)))

	return out
}

// actsInCluster says whether what an operator holds in the cluster as a whole lets it act on the APIs that it brings everywhere:
// the permissions of a group for all namespaces, or rules about these APIs. Anything else, such as to get nodes, does not.
func actsInCluster(csv *unstructured.Unstructured, apis []string, held []*facts.Projected) bool {
	owner := compile.CSVOwner(csv.GetNamespace(), csv.GetName())
	lifted := sets.Set[string]{}

	for _, account := range install.AccountsWith(csv, "permissions") {
		lifted.Insert(compile.LiftedSlot(owner, account))
	}

	return slices.ContainsFunc(held, func(o *facts.Projected) bool {
		if lifted.Has(o.Slot) {
			return true
		}

		var rules []rbacv1.PolicyRule

		return json.Unmarshal([]byte(o.Rules), &rules) == nil && install.MayChange(rules, apis)
	})
}

// brought remembers what the operators of a namespace bring, and where, so that others are planned again when that changes.
type brought struct {
	mu sync.Mutex
	by map[string]map[types.UID]bringing
}

// bringing is what one operator brings, a digest of where, and the namespaces in which that may matter to others; the empty name
// stands for all.
type bringing struct {
	apis, places []string
	where        uint64
}

// change records what the operators of a namespace bring, and returns the APIs about which something has changed, and where.
func (b *brought) change(namespace string, now map[types.UID]bringing) (changed, places sets.Set[string]) {
	b.mu.Lock()
	defer b.mu.Unlock()

	before := b.by[namespace]
	changed, places = sets.Set[string]{}, sets.Set[string]{}

	note := func(is, was bringing) {
		if is.where != was.where || !slices.Equal(is.apis, was.apis) {
			changed.Insert(is.apis...).Insert(was.apis...)
			places.Insert(is.places...).Insert(was.places...)
		}
	}

	for uid, is := range now {
		note(is, before[uid])
	}

	for uid, was := range before {
		if _, there := now[uid]; !there {
			note(bringing{}, was)
		}
	}

	if b.by == nil {
		b.by = map[string]map[types.UID]bringing{}
	}

	b.by[namespace] = now
	if len(now) == 0 {
		delete(b.by, namespace)
	}

	return changed, places
}

// notifyRivals asks for plans of the namespaces whose operators bring an API that an operator of this namespace brings elsewhere
// than before, or no longer brings, and may work where it does. w is nil when nothing is installed there any more. Thousands of
// teams may have the same operator: what changes in the namespace of one is no concern of the others.
func (r *Reconciler) notifyRivals(ctx context.Context, namespace string, w *snapshot) error {
	now := map[types.UID]bringing{}

	if w != nil && w.Group != nil {
		for _, csv := range w.CSVs {
			if w.IsInstalled(csv) {
				at, places := where(w, csv)
				now[csv.UID] = bringing{apis: install.Provided(csv), where: at, places: places}
			}
		}
	}

	apis, places := r.brought.change(namespace, now)

	others, err := r.bringing(ctx, apis)
	if err != nil {
		return err
	}

	namespaces := sets.Set[string]{}
	for _, csv := range others {
		namespaces.Insert(csv.GetNamespace())
	}

	namespaces.Delete(namespace)

	var keys []scope.Key

	for other := range namespaces {
		n, err := r.neighbour(ctx, other)
		if err != nil {
			return err
		}

		if n.mayWorkIn(other, places) {
			keys = append(keys, scope.Installs.In(other))
		}
	}

	r.Changes.RivalsChanged(namespace, keys)

	return nil
}

// mayWorkIn says whether operators of another namespace may work in one of some places. Where that is not said by name, they may.
func (n *neighbour) mayWorkIn(own string, places sets.Set[string]) bool {
	if n.group == nil || len(n.group.Spec.TargetNamespaces) == 0 || n.targets.Has("") || places.HasAny("", own) {
		return true
	}

	return slices.ContainsFunc(install.Reach(n.group), places.Has)
}

// where is a digest of the namespaces in which a CSV holds something, of those among the targets of its group, and of the group,
// whatever their order; and the namespaces themselves, with its own. A target in which nobody let it in says nothing: everybody
// can name the namespaces of others.
func where(w *snapshot, csv *olm.ClusterServiceVersion) (sum uint64, places []string) {
	add := func(what, name string) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(what + "/" + name)) // A hash never fails.
		sum += h.Sum64()
	}

	held := w.Holding[csv.Name]
	_, inCluster := held[""]

	places = append(make([]string, 0, 1+len(held)), w.Namespace)
	for name := range held {
		add("holds", name)
		places = append(places, name)
	}

	for _, name := range w.Group.Targets {
		if _, holds := held[name]; holds || inCluster {
			add("target", name)
		}
	}

	add("group", w.Group.UID)

	return sum + 1, places
}
