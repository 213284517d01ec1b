package cli_test

import (
	"slices"

	"sigs.k8s.io/yaml"
)

// catalogMoves are those of catalogs, and of what comes from them.
func catalogMoves() []weighted {
	return []weighted{
		{3, (*drawn).drawSubscription},
		{2, (*drawn).approve},
		{1, (*drawn).removeCatalogInstall},
	}
}

// drawSubscription makes a catalog with its Subscription.
func (w *drawn) drawSubscription() *move {
	namespace := w.own
	catalog := w.catalog(namespace)
	sourceType := one(w, "internal", "configmap", "internal", "configmap", "grpc")
	source := object("operators.coreos.com/v1alpha1", "CatalogSource", namespace, "catalog", manifest{"spec": map[string]any{
		"sourceType": sourceType, "configMap": "content",
	}})

	spec := map[string]any{
		"channel": one(w, "stable", "stable", "beta"), "name": one(w, "pan", "pan", "pan", "nosuch"), "source": "catalog",
		"installPlanApproval": one(w, "Automatic", "Automatic", "Manual"),
	}
	w.choose(2, spec, "sourceNamespace", namespace)
	w.choose(4, spec, "startingCSV", one(w, "pan.v1", "pan.v2"))

	if w.oneIn(3) {
		spec["config"] = w.subscribed()
	}

	subscription := object("operators.coreos.com/v1alpha1", "Subscription", namespace, one(w, "pan", "pan", "pan", "more"),
		manifest{"spec": spec})

	// What is in a file is written one by one, and a Subscription that is there goes by the first of it at once.
	there := len(w.of("Subscription")) > 0

	switch n := w.random.IntN(4); {
	case n == 0:
		return &move{name: "a Subscription", objects: []manifest{subscription}}
	case sourceType == "grpc" && there:
		// Nobody reads what it holds from then on, nor may in between.
		return &move{name: "a catalog", objects: []manifest{source, catalog}}
	case n == 1 || there:
		return &move{name: "a catalog", objects: []manifest{catalog, source}}
	default:
		return &move{name: "a catalog and a Subscription", objects: []manifest{catalog, source, subscription}}
	}
}

// catalog is the ConfigMap that holds one.
func (w *drawn) catalog(namespace string) manifest {
	versions := one(w, []string{"pan.v1"}, []string{"pan.v1", "pan.v2"}, []string{"pan.v1", "pan.v2"})
	stable, beta := versions[len(versions)-1], one(w, versions...)

	var all []any

	for _, name := range versions {
		all = append(all, object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "", name, manifest{"spec": w.plain(name)}))
	}

	definitions := []any{}
	if w.oneIn(2) {
		definitions = append(definitions, w.definition("pans", "Pan"))
		for _, csv := range all {
			csv.(manifest)["spec"].(map[string]any)["customresourcedefinitions"] = map[string]any{"owned": []any{w.described("pans")}}
		}
	}

	contents, err := yaml.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}

	crds, err := yaml.Marshal(definitions)
	if err != nil {
		w.Fatal(err)
	}

	return object("v1", "ConfigMap", namespace, "content", manifest{"data": map[string]any{
		"clusterServiceVersions": string(contents),
		"packages": "- packageName: pan\n  defaultChannel: stable\n  channels: [{name: stable, currentCSV: " + stable +
			"}, {name: beta, currentCSV: " + beta + "}]\n",
		"customResourceDefinitions": string(crds),
	}})
}

// subscribed draws what a Subscription adds to Deployments.
func (w *drawn) subscribed() map[string]any {
	return one(w,
		map[string]any{"env": []any{map[string]any{"name": "A", "value": one(w, "0", "1")}}},
		map[string]any{"nodeSelector": map[string]any{"kubernetes.io/os": "linux"}},
		map[string]any{"annotations": map[string]any{"example.com/note": one(w, "0", "1")}},
		map[string]any{"tolerations": []any{map[string]any{"key": "a", "operator": "Exists"}}},
		map[string]any{
			"volumes":      []any{map[string]any{"name": "more", "emptyDir": map[string]any{}}},
			"volumeMounts": []any{map[string]any{"name": "more", "mountPath": "/more"}},
		})
}

// plain is the spec of a version in a catalog, which fits every group.
func (w *drawn) plain(name string) map[string]any {
	random := *w.random
	spec := w.csv(name)
	*w.random = random

	var modes []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": true})
	}

	spec["installModes"] = modes
	for _, field := range []string{"webhookdefinitions", "customresourcedefinitions", "minKubeVersion", "apiservicedefinitions"} {
		delete(spec, field)
	}

	return spec
}

// existing are the objects of some kinds, whoever made them, in an order that is the same in every run as far as it can be.
func (w *drawn) existing(kinds ...string) []manifest {
	var out []manifest

	for of, f := range w.look().objects {
		if slices.Contains(kinds, of.kind) && !w.isEnding(of.namespace) && f.raw.GetDeletionTimestamp() == nil {
			out = append(out, f.raw.Object)
		}
	}

	w.sort(out)

	return out
}

// approve lets an InstallPlan go on.
func (w *drawn) approve() *move {
	all := slices.DeleteFunc(w.existing("InstallPlan"), func(m manifest) bool {
		spec, _ := m["spec"].(map[string]any)

		return spec["approved"] == true
	})
	if len(all) == 0 {
		return nil
	}

	of := idOf(one(w, all...))

	return &move{name: "an approval", objects: []manifest{
		object("operators.coreos.com/v1alpha1", of.kind, of.namespace, of.name, manifest{"spec": map[string]any{"approved": true}}),
	}}
}

// removeCatalogInstall deletes what came from a catalog.
func (w *drawn) removeCatalogInstall() *move {
	all := slices.DeleteFunc(w.existing("InstallPlan", "ClusterServiceVersion"), func(m manifest) bool {
		return w.there[idOf(m)] != nil
	})
	if len(all) == 0 {
		return nil
	}

	of := idOf(one(w, all...))

	return &move{name: "what came from a catalog", delete: true, objects: []manifest{
		object("operators.coreos.com/v1alpha1", of.kind, of.namespace, of.name, nil),
	}}
}
