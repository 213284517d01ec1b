package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	subscriptionKind = olmv1alpha1.SubscriptionKind
	planKind         = olmv1alpha1.InstallPlanKind
	sourceKind       = olmv1alpha1.CatalogSourceKind
)

const (
	fieldSourceType = "sourceType"
	fieldConfigMap  = "configMap"
)

// resources are what was read for one namespace.
type resources struct {
	namespace     string
	subscriptions []*subscription
	plans         []*installPlan
	sources       []*source
	// global are the CatalogSources of Ambit's own namespace that Subscriptions name, and unread those that cannot be read.
	global map[string]*source
	unread map[types.NamespacedName]error
	groups []*operatorsv1.OperatorGroup
	csvs   []*olmv1alpha1.ClusterServiceVersion
	// unreadable are the ClusterServiceVersions that cannot be read, or that are left out: that they are there is known even so.
	unreadable []*unstructured.Unstructured
}

// subscription, installPlan and source are objects as they were read, with what Ambit looks at in types.
type subscription struct {
	object *unstructured.Unstructured
	typed  *olmv1alpha1.Subscription
	// leftOut says that nothing of the spec is known.
	leftOut bool
}

type installPlan struct {
	object *unstructured.Unstructured
	typed  *olmv1alpha1.InstallPlan
	// status is what it should be; nil when nothing is known about it.
	status *olmv1alpha1.InstallPlanStatus
	// leftOut says that nothing of its spec, labels and annotations is known.
	leftOut bool
}

func (ip *installPlan) isComplete() bool {
	return ip.typed.Status.Phase == olmv1alpha1.InstallPlanPhaseComplete
}

// isReplaced says whether another version was installed after what an InstallPlan installed.
func (ip *installPlan) isReplaced() bool {
	return ip.typed.Status.GetCondition(catalog.InstallPlanReplaced).Status == corev1.ConditionTrue
}

func (ip *installPlan) isSuperseded() bool {
	return ip.typed.Status.GetCondition(olmv1alpha1.InstallPlanInstalled).Reason == catalog.ReasonSuperseded
}

// version is the name of the ClusterServiceVersion that an InstallPlan is for; empty where it does not name just one.
func (ip *installPlan) version() string {
	if names := ip.typed.Spec.ClusterServiceVersionNames; len(names) == 1 {
		return names[0]
	}

	return ""
}

// installs says whether an InstallPlan is the one for a ClusterServiceVersion.
func (ip *installPlan) installs(csv *olmv1alpha1.ClusterServiceVersion) bool {
	return csv != nil && ip.version() == csv.Name
}

func (ip *installPlan) becomes(status olmv1alpha1.InstallPlanStatus) { ip.status = &status }

type source struct {
	catalog.Source

	object *unstructured.Unstructured
	status *olmv1alpha1.CatalogSourceStatus
	// known says whether its ConfigMap was looked for.
	known bool
}

// read reads the groups last, as the controller of groups does: what somebody writes beside a group with an account is not to be
// installed by the group that was there before, which may have named none.
func (r *Reconciler) read(ctx context.Context, namespace string) (*resources, error) {
	found, csvs := &resources{namespace: namespace}, scope.NewOLMList(scope.KindCSV)

	if err := r.Cache.List(ctx, csvs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %T: %w", csvs, err)
	}

	for i := range csvs.Items {
		found.addVersion(&csvs.Items[i])
	}

	for kind, add := range map[string]func(obj *unstructured.Unstructured, leftOut bool) error{
		subscriptionKind: found.addSubscription, planKind: found.addPlan,
		sourceKind: func(obj *unstructured.Unstructured, leftOut bool) error {
			s, err := r.source(obj, leftOut)
			found.sources = append(found.sources, s)

			return err
		},
	} {
		if err := r.each(ctx, kind, namespace, add); err != nil {
			return nil, err
		}
	}

	found.sources = slices.DeleteFunc(found.sources, func(s *source) bool { return s == nil })

	// Whoever may write in Ambit's own namespace is trusted with more than this bounds.
	if namespace != r.AmbitNamespace {
		found.boundSources()
	}

	// The first Subscription of a package is the one that counts.
	slices.SortFunc(found.subscriptions, func(a, b *subscription) int { return scope.CompareAge(a.typed, b.typed) })
	slices.SortFunc(found.plans, func(a, b *installPlan) int { return cmp.Compare(a.typed.Name, b.typed.Name) })
	slices.SortFunc(found.sources, func(a, b *source) int { return cmp.Compare(a.Name, b.Name) })
	r.written.Keep(namespace, found.objects())
	r.readGlobal(ctx, found)

	return found, r.readGroups(ctx, found)
}

func (r *Reconciler) readGroups(ctx context.Context, found *resources) error {
	var groups operatorsv1.OperatorGroupList
	if err := r.Cache.List(ctx, &groups, client.InNamespace(found.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T: %w", &groups, err)
	}

	found.groups = collect.Filter(collect.Pointers(groups.Items), func(g *operatorsv1.OperatorGroup) bool {
		return g.DeletionTimestamp == nil
	})

	return nil
}

// addVersion adds a ClusterServiceVersion. The controller of these reports one that cannot be read or is over the limit.
func (f *resources) addVersion(obj *unstructured.Unstructured) {
	if obj.GetDeletionTimestamp() != nil || install.IsCopy(obj) {
		return
	}

	if csv, err := install.Read(obj); err == nil && install.LeftOut(obj) == "" {
		f.csvs = append(f.csvs, csv)
	} else {
		f.unreadable = append(f.unreadable, obj)
	}
}

// readGlobal reads the CatalogSources of Ambit's own namespace that Subscriptions of another one may mean.
func (r *Reconciler) readGlobal(ctx context.Context, found *resources) {
	found.global, found.unread = map[string]*source{}, map[types.NamespacedName]error{}

	for _, s := range found.subscriptions[:min(len(found.subscriptions), catalog.MaxSubscriptions)] {
		if s.leftOut || s.typed.Spec == nil {
			continue
		}

		places, _ := catalog.Where(found.namespace, r.AmbitNamespace, s.typed.Spec) // lookFor reports what is wrong with it.
		for _, place := range places {
			if place.Namespace == found.namespace || found.global[place.Name] != nil {
				continue
			}

			obj := scope.NewOLM(sourceKind)

			err := r.Cache.Get(ctx, place, obj)
			if err == nil && obj.GetDeletionTimestamp() == nil {
				found.global[place.Name], err = r.source(obj, declared.IsEmptied(obj))
			}

			if client.IgnoreNotFound(err) != nil {
				found.unread[place] = fmt.Errorf("reading CatalogSource %s: %w", place, err)
			}
		}
	}
}

// each calls do for the objects of a kind that are not being deleted, with whether they are left out. One that cannot be read as
// what it claims to be is left alone, and logged: its status may be what cannot be read.
func (r *Reconciler) each(
	ctx context.Context, kind, namespace string, do func(obj *unstructured.Unstructured, leftOut bool) error,
) error {
	list := scope.NewOLMList(kind)
	if err := r.Cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}

	over, err := r.Quotas[kind].Fit(ctx, r.Live, namespace, changes.Objects(list.Items))
	if err != nil {
		return err
	}

	for i := range list.Items {
		obj := &list.Items[i]
		if obj.GetDeletionTimestamp() != nil {
			continue
		}

		_, leftOut := over[obj.GetUID()]
		if err := do(obj, leftOut); err != nil {
			log.FromContext(ctx).Error(err, "It is not served", "kind", kind, "namespace", namespace, "name", obj.GetName())
		}
	}

	return nil
}

func (f *resources) addSubscription(obj *unstructured.Unstructured, leftOut bool) error {
	s := &subscription{object: obj, typed: &olmv1alpha1.Subscription{}, leftOut: leftOut}

	// The config for its Deployments is read with the ClusterServiceVersion, whose status reports whatever is wrong with it.
	content := runtime.DeepCopyJSON(obj.Object)
	unstructured.RemoveNestedField(content, "spec", "config")

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, s.typed); err != nil {
		return fmt.Errorf("reading a Subscription: %w", err)
	}

	f.subscriptions = append(f.subscriptions, s)

	return nil
}

func (f *resources) addPlan(obj *unstructured.Unstructured, leftOut bool) error {
	p := &installPlan{object: obj, typed: &olmv1alpha1.InstallPlan{}, leftOut: leftOut}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p.typed); err != nil {
		return fmt.Errorf("reading an InstallPlan: %w", err)
	}

	f.plans = append(f.plans, p)

	return nil
}

// source reads a CatalogSource, and what is known of its ConfigMap.
func (r *Reconciler) source(obj *unstructured.Unstructured, leftOut bool) (*source, error) {
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(obj.Object, "spec", field)

		return s
	}
	s := &source{object: obj, status: &olmv1alpha1.CatalogSourceStatus{}, Source: catalog.Source{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Generation: obj.GetGeneration(),
		Type: olmv1alpha1.SourceType(text(fieldSourceType)), ConfigMap: text(fieldConfigMap), LeftOut: leftOut,
	}}

	if status, ok := obj.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, s.status); err != nil {
			return nil, fmt.Errorf("reading the status of a CatalogSource: %w", err)
		}
	}

	if !s.IsFromConfigMap() {
		s.known = true

		return s, nil
	}

	content, known := r.Store.Catalog(s.Namespace, s.ConfigMap)
	s.known = known

	if content != nil {
		s.Content = content.Content
		s.Seen = olmv1alpha1.ConfigMapResourceReference{
			Namespace: s.Namespace, Name: s.ConfigMap, UID: content.UID, ResourceVersion: content.ResourceVersion,
		}
	}

	return s, nil
}

// boundSources leaves out the youngest catalogs where there are more than are served.
func (f *resources) boundSources() {
	slices.SortFunc(f.sources, func(a, b *source) int { return scope.CompareAge(a.object, b.object) })

	served := 0

	for _, s := range f.sources {
		if !s.IsFromConfigMap() {
			continue
		}

		if served++; served > catalog.MaxSources {
			s.Excess, s.Content, s.known = true, nil, true
		}
	}
}

// configMaps are those that the catalogs of the namespace are in.
func (f *resources) configMaps() []string {
	read := collect.Filter(f.sources, func(s *source) bool { return s.IsFromConfigMap() })
	names := collect.Map(read, func(s *source) string { return s.ConfigMap })

	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// objects are those that Ambit writes to.
func (f *resources) objects() []client.Object {
	return slices.Concat(collect.Map(f.subscriptions, func(s *subscription) client.Object { return s.object }),
		collect.Map(f.plans, func(p *installPlan) client.Object { return p.object }),
		collect.Map(f.sources, func(s *source) client.Object { return s.object }))
}
