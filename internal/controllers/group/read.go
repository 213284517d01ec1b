package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resources are what was read for one namespace.
type resources struct {
	namespace  string
	groups     []*operatorsv1.OperatorGroup
	csvs       []*olm.ClusterServiceVersion
	crds       map[string]install.CRD
	configs    map[string]*install.Config
	unreadable []unreadable
}

// unreadable is a CSV that cannot be read, and why.
type unreadable struct {
	object *unstructured.Unstructured
	why    error
	// over says that there is no room for it.
	over bool
}

// read reads the groups last. What is written beside a group with an account is for that account to install, and whoever may use
// it may write that. Read first, the group could be the one that was there before, which may have named none. Each kind has a
// watch of its own, so that of the groups may be behind even so, which the state looks for.
func (r *Reconciler) read(ctx context.Context, namespace string) (*resources, error) {
	csvs, found := scope.NewOLMList(scope.KindCSV), &resources{namespace: namespace}

	// Without a copy: what is changed is copied first, and there can be many of them.
	if err := r.Cache.List(ctx, csvs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %T: %w", csvs, err)
	}

	cached := make([]client.Object, 0, len(csvs.Items)+1)

	for i := range csvs.Items {
		cached = append(cached, &csvs.Items[i])
		found.addVersion(&csvs.Items[i])
	}

	slices.SortFunc(found.csvs, func(a, b *olm.ClusterServiceVersion) int { return cmp.Compare(a.Name, b.Name) })

	if err := r.readBeside(ctx, found); err != nil {
		return nil, err
	}

	groups, err := r.readGroups(ctx, found)
	if err != nil {
		return nil, err
	}

	r.written.Keep(namespace, append(cached, groups...))

	return found, nil
}

// addVersion adds a CSV, unless it is being deleted, or a copy that OLM left.
func (f *resources) addVersion(obj *unstructured.Unstructured) {
	if obj.GetDeletionTimestamp() != nil || install.IsCopy(obj) {
		return
	}

	if why := install.LeftOut(obj); why != "" {
		f.unreadable = append(f.unreadable, unreadable{obj.DeepCopy(), errors.New(why), true})

		return
	}

	if csv, err := install.Read(obj); err == nil {
		f.csvs = append(f.csvs, csv)
	} else {
		f.unreadable = append(f.unreadable, unreadable{obj.DeepCopy(), err, false})
	}
}

// readGroups reads the groups of a namespace, and returns all that the cache has of them.
func (r *Reconciler) readGroups(ctx context.Context, found *resources) ([]client.Object, error) {
	var groups operatorsv1.OperatorGroupList
	if err := r.Cache.List(ctx, &groups, client.InNamespace(found.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %T: %w", &groups, err)
	}

	cached := make([]client.Object, 0, len(groups.Items))

	for i := range groups.Items {
		cached = append(cached, &groups.Items[i])

		if g := changes.Newest(&r.written, &groups.Items[i]); g.DeletionTimestamp == nil {
			found.groups = append(found.groups, g.DeepCopy())
		}
	}

	slices.SortFunc(found.groups, func(a, b *operatorsv1.OperatorGroup) int { return cmp.Compare(a.Name, b.Name) })

	return cached, r.fit(ctx, found.namespace, found.groups)
}

// readBeside reads what else the CSVs need. Where Ambit has rights in single namespaces only, it may not read definitions, and no
// Subscriptions are served.
func (r *Reconciler) readBeside(ctx context.Context, found *resources) (err error) {
	if r.Confined != nil {
		found.crds, err = r.Confined.definitions(found.csvs)

		return err
	}

	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := r.Client.List(ctx, &crds, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T: %w", &crds, err)
	}

	found.crds = make(map[string]install.CRD, len(crds.Items))
	for i := range crds.Items {
		found.crds[crds.Items[i].Name] = definition(&crds.Items[i])
	}

	found.configs, err = r.configs(ctx, found)

	return err
}

// isOf says whether a CSV is labelled as one of the package that a config is for, by whoever installed it: what a Subscription's
// status says could be somebody else's words. Of a Subscription that is left out, the package is not known.
func (f *resources) isOf(config *install.Config, csv string) bool {
	return config.LeftOut || slices.ContainsFunc(f.csvs, func(c *olm.ClusterServiceVersion) bool {
		is, _ := catalog.IsLabelled(c.Labels, config.Package, f.namespace)

		return c.Name == csv && is
	})
}

// isEmpty says whether there is nothing that could be served.
func (f *resources) isEmpty() bool { return len(f.groups)+len(f.csvs) == 0 }

func (f *resources) objects() []client.Object {
	return slices.Concat(collect.Map(f.groups, func(g *operatorsv1.OperatorGroup) client.Object { return g }),
		collect.Map(f.csvs, func(csv *olm.ClusterServiceVersion) client.Object { return csv }))
}

// interests are the namespaces that matter: those that groups name, and those that they select.
func (f *resources) interests() []scope.Scope {
	out := make([]scope.Scope, 0, len(f.groups))

	for _, g := range f.groups {
		in := scope.Scope{Members: scope.Members{Named: g.Spec.TargetNamespaces}}

		if len(g.Spec.TargetNamespaces) == 0 && g.Spec.Selector != nil {
			// One that cannot be read selects nothing, and is reported in status.
			in.Members.Selector, _ = compile.Selector(g.Spec.Selector.Raw)
		}

		out = append(out, in)
	}

	return out
}

func definition(crd *apiextensionsv1.CustomResourceDefinition) install.CRD {
	out := install.CRD{UID: crd.UID}
	out.Conversion, out.Converter = install.ConversionShape(crd.Spec.Conversion)

	if !discovered.IsEstablished(crd) {
		return out
	}

	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Served {
			out.Served = append(out.Served, crd.Spec.Versions[i].Name)
		}
	}

	return out
}
