package guard_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
)

// The policies about OperatorGroups and what they install.
const (
	ownGroups         = "ambit-own-identity-groups"
	delegateGroups    = "ambit-delegate-identity-groups"
	ownOperators      = "ambit-own-identity-operators"
	delegateOperators = "ambit-delegate-identity-operators"
	ownCatalogs       = "ambit-own-identity-catalogs"
	delegateCatalogs  = "ambit-delegate-identity-catalogs"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const olmGroup = "operators.coreos.com"

// packageLabel says of which package a ClusterServiceVersion is.
const packageLabel = olmGroup + "/etcd.ns"

// olmKind is a kind by which somebody decides what is installed.
type olmKind struct {
	kind, resource string
	spec           map[string]any
	// another is a merge patch by which something else is installed.
	another string
	// marked says that annotations, and labels of OLM, do, too.
	marked bool
}

var olmKinds = []olmKind{
	{
		kind: "ClusterServiceVersion", resource: "clusterserviceversions", marked: true,
		spec:    map[string]any{"displayName": "x", "install": map[string]any{"strategy": "deployment"}},
		another: `{"spec":{"install":{"spec":{"deployments":[]}}}}`,
	},
	{
		kind: "Subscription", resource: "subscriptions",
		spec:    map[string]any{"name": "etcd", "source": "catalog"},
		another: `{"spec":{"source":"another"}}`,
	},
	{
		kind: "InstallPlan", resource: "installplans",
		spec: map[string]any{
			"approval": "Manual", "approved": false, "clusterServiceVersionNames": []any{"etcd.v1"},
		},
		another: `{"spec":{"approved":true}}`,
	},
	{
		kind: "CatalogSource", resource: "catalogsources",
		spec:    map[string]any{"sourceType": "internal", "configMap": "catalog"},
		another: `{"spec":{"configMap":"another"}}`,
	},
}

// steps is a status with what a plan creates.
const steps = `{"status":{"phase":"Installing","plan":[{"resolving":"etcd.v1","status":"Unknown","resource":{"group":"","kind":` +
	`"ServiceAccount","name":"etcd","sourceName":"catalog","sourceNamespace":"x","version":"v1","manifest":"{}"}}]}}`

// TestWhoMayInstall: who may write what is installed, where all groups name the account writer and where none does.
func TestWhoMayInstall(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(map[bool]string{true: "WithAccount", false: "WithoutAccount"}[listed], func(t *testing.T) {
			h := begin(t)
			h.untilOperatorsAreGuarded(listed)

			for name, p := range tenants(h) {
				t.Run(name, func(t *testing.T) {
					room := *h
					room.T = t

					if p.who != nil {
						room.welcome(p.who)
					}

					for i := range olmKinds {
						room.tryToInstall(&p, &olmKinds[i], listed)
					}

					room.tryToOffer(&p, listed)
				})
			}
		})
	}
}

// untilOperatorsAreGuarded writes down the account of the namespace, as Ambit does, and waits until the policies know it.
func (h *house) untilOperatorsAreGuarded(listed bool) {
	h.Helper()

	writes, offers := h.here(rule(olmGroup, "*", "*")), h.here(rule(core, "configmaps", "*"))
	podCreator := h.welcome(h.user("operators-pod-creator", writes, offers, h.here(rule(core, "pods", "create"))))
	escalator := h.welcome(h.user("operators-escalator", writes, offers, everywhere(rule(rbacGroup, "clusterroles", "escalate"))))
	csv := &olmKinds[0]
	probe := csv.object("probe")
	catalog := configMap("probe", map[string]any{"clusterServiceVersions": ""})

	// As long as no account is written down, each lacks what one of the policies asks for.
	h.untilRefused(ownOperators, podCreator, csv.of(), probe)
	h.untilRefused(delegateOperators, escalator, csv.of(), probe)
	h.untilRefused(ownCatalogs, podCreator, configMaps, catalog)
	h.untilRefused(delegateCatalogs, escalator, configMaps, catalog)

	if !listed {
		return
	}

	h.list(writer)
	h.eventually("waiting until "+ownOperators+" knows the account", func(ctx context.Context) error {
		_, err := h.as(podCreator, csv.of()).Create(ctx, probe, metav1.CreateOptions{DryRun: dryRun})

		return err
	})
	h.eventually("waiting until "+delegateOperators+" knows the account", func(ctx context.Context) error {
		_, err := h.as(escalator, csv.of()).Create(ctx, probe, metav1.CreateOptions{DryRun: dryRun})

		return refusal(err, delegateOperators, "names the service account "+writer)
	})
}

// list writes down the account that the groups of the namespace name; "" that they do not name one.
func (h *house) list(account string) {
	h.Helper()

	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		h.Fatal(err)
	}

	value := "null"
	if account != "" {
		value = `"` + account + `"`
	}

	index := client.Resource(schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "clusterroles"})
	body := fmt.Sprintf(`{"metadata":{"annotations":{"account.ambit.dev/%s":%s}}}`, h.namespace, value)

	if _, err := index.Patch(context.Background(), "ambit-operator-groups", types.MergePatchType, []byte(body),
		metav1.PatchOptions{}); err != nil {
		h.Fatalf("writing down the account: %v", err)
	}

	if account != "" {
		h.Cleanup(func() { h.list("") })
	}
}

func (k *olmKind) of() schema.GroupVersionResource {
	return operatorsv1alpha1.GroupVersion.WithResource(k.resource)
}

func (k *olmKind) object(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(k.spec)}}
	u.SetGroupVersionKind(operatorsv1alpha1.GroupVersion.WithKind(k.kind))
	u.SetName(name)

	return u
}

// tryToInstall lets somebody write a kind in every way.
func (h *house) tryToInstall(p *tenant, k *olmKind, listed bool) {
	h.Helper()

	var policies []string

	switch {
	case listed && !p.usesWriter && !p.isWriter:
		policies = []string{delegateOperators}
	case !listed:
		if !p.escalates {
			policies = append(policies, ownOperators)
		}

		if !p.usesAny {
			policies = append(policies, delegateOperators)
		}
	}

	const name = "there"

	there := k.object(name)
	there.SetLabels(map[string]string{packageLabel: ""})

	if _, err := h.as(nil, k.of()).Apply(h.Context(), name, there, metav1.ApplyOptions{FieldManager: tool}); err != nil {
		h.Fatalf("making the %s: %v", k.kind, err)
	}

	r := h.as(p.who, k.of())
	merge := func(body string, subresources ...string) error {
		_, err := r.Patch(h.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun}, subresources...)

		return err
	}
	_, created := r.Create(h.Context(), k.object(fresh), metav1.CreateOptions{DryRun: dryRun})
	_, applied := r.Apply(h.Context(), fresh, k.object(fresh), metav1.ApplyOptions{FieldManager: tool, DryRun: dryRun})

	guarded := map[string]error{"create": created, "apply": applied, "change": merge(k.another)}
	free := map[string]error{
		"label":  merge(`{"metadata":{"labels":{"team":"a"}}}`),
		"hold":   merge(`{"metadata":{"finalizers":["guard.test/hold"]}}`),
		"delete": r.Delete(h.Context(), name, metav1.DeleteOptions{DryRun: dryRun}),
	}

	marks := free
	if k.marked {
		marks = guarded
	}

	marks["annotate"] = merge(`{"metadata":{"annotations":{"note":"hello"}}}`)
	marks["make it of another package"] = merge(`{"metadata":{"labels":{"operators.coreos.com/other.ns":""}}}`)
	marks["make it of no package"] = merge(`{"metadata":{"labels":{"` + packageLabel + `":null}}}`)
	marks["make it a copy"] = merge(`{"metadata":{"labels":{"olm.copiedFrom":""}}}`)

	if k.kind == "InstallPlan" {
		guarded["steps"] = merge(steps, "status")
		guarded["carry it out again"] = merge(`{"status":{"phase":"Installing"}}`, "status")
		guarded["say that another version came after it"] = merge(
			`{"status":{"phase":"Complete","conditions":[{"type":"Replaced","status":"True"}]}}`, "status")
	}

	h.outcomes(p.reason+": "+k.kind, policies, guarded, free)
}

// tryToOffer lets somebody write the content of a catalog in every way.
func (h *house) tryToOffer(p *tenant, listed bool) {
	h.Helper()

	var policies []string

	switch {
	case listed && !p.usesWriter && !p.isWriter:
		policies = []string{delegateCatalogs}
	case !listed:
		if !p.escalates {
			policies = append(policies, ownCatalogs)
		}

		if !p.usesAny {
			policies = append(policies, delegateCatalogs)
		}
	}

	root := h.as(nil, configMaps)
	for name, data := range map[string]map[string]any{"catalog": {"clusterServiceVersions": "[]"}, "notes": {"a": "b"}} {
		options := metav1.ApplyOptions{FieldManager: tool, Force: true}
		if _, err := root.Apply(h.Context(), name, configMap(name, data), options); err != nil {
			h.Fatal(err)
		}
	}

	r := h.as(p.who, configMaps)
	merge := func(name, body string) error {
		_, err := r.Patch(h.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun})

		return err
	}
	apply := func(name string, data map[string]any) error {
		_, err := r.Apply(h.Context(), name, configMap(name, data), metav1.ApplyOptions{
			FieldManager: "another", Force: true, DryRun: dryRun,
		})

		return err
	}
	create := func(data map[string]any) error {
		_, err := r.Create(h.Context(), configMap(fresh, data), metav1.CreateOptions{DryRun: dryRun})

		return err
	}
	update := func(name string, data map[string]any) error {
		_, err := r.Update(h.Context(), configMap(name, data), metav1.UpdateOptions{DryRun: dryRun})

		return err
	}
	bad := map[string]any{"clusterServiceVersions": "[{kind: ClusterServiceVersion}]"}

	h.outcomes(p.reason+": the content of a catalog", policies, map[string]error{
		"create": create(bad), "create none": create(map[string]any{"clusterServiceVersions": ""}), "apply": apply(fresh, bad),
		"update": update("catalog", bad), "change": merge("catalog", `{"data":{"clusterServiceVersions":"- a"}}`),
		"apply to": apply("catalog", bad), "add packages": merge("catalog", `{"data":{"packages":"[]"}}`),
		"make one": merge("notes", `{"data":{"clusterServiceVersions":"[]"}}`), "make one anew": update("notes", bad),
	}, map[string]error{
		"label":       merge("catalog", `{"metadata":{"labels":{"team":"a"},"annotations":{"a":"b"}}}`),
		"freeze":      merge("catalog", `{"immutable":true}`),
		"no catalog":  create(map[string]any{"packages": "[]"}),
		"binary data": merge("notes", `{"binaryData":{"clusterServiceVersions":"W10="}}`),
		"notes":       merge("notes", `{"data":{"a":"c"}}`),
		"delete":      r.Delete(h.Context(), "catalog", metav1.DeleteOptions{DryRun: dryRun}),
	})
}

func configMap(name string, data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": maps.Clone(data)}}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetName(name)

	return u
}

// outcomes complains of whatever was refused or let through, and should not have been.
func (h *house) outcomes(reason string, policies []string, guarded, free map[string]error) {
	h.Helper()

	for what, err := range guarded {
		switch by := refusedBy(err); {
		case len(policies) == 0 && err != nil:
			h.Errorf("%s\n%s: want: allowed, got: %v", reason, what, err)
		case len(policies) > 0 && !slices.Contains(policies, by):
			h.Errorf("%s\n%s: want: refused by %v, got: %v", reason, what, policies, err)
		}
	}

	for what, err := range free {
		if err != nil {
			h.Errorf("%s\n%s: want: allowed, got: %v", reason, what, err)
		}
	}
}

// TestRefusalsOfOperators checks what somebody reads who may write these kinds and nothing else.
func TestRefusalsOfOperators(t *testing.T) {
	h := begin(t)
	h.untilGroupsAreGuarded()
	h.untilOperatorsAreGuarded(false)

	subscription := &olmKinds[1]
	admin := h.welcome(h.user("olm-admin", h.here(rule(olmGroup, "*", "*")), h.hereAs("admin", rule(core, "pods", "create"))))
	nobody := h.welcome(h.user("olm-reader", h.here(rule(olmGroup, "*", "*"))))
	subscribe := func(who *somebody) error {
		_, err := h.as(who, subscription.of()).Create(t.Context(), subscription.object(fresh), metav1.CreateOptions{DryRun: dryRun})

		return err
	}
	begins := func(who *somebody, spec map[string]any) error {
		_, err := h.as(who, groups).Create(t.Context(), group("v1", fresh, spec), metav1.CreateOptions{DryRun: dryRun})

		return err
	}
	says := func(err error, words ...string) {
		t.Helper()

		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("want: %q, got: %v", w, err)
			}
		}
	}

	says(begins(nobody, nil), "this OperatorGroup names no serviceAccountName",
		"Give it a service account in spec.serviceAccountName")
	says(begins(nobody, map[string]any{account: writer}), "names the service account writer", "neither impersonate it")
	says(subscribe(admin), "in namespace "+h.namespace+" no OperatorGroup names a serviceAccountName",
		"Create an OperatorGroup with a service account in spec.serviceAccountName first", "ask a cluster administrator")

	h.list(writer)
	h.eventually("the account is known", func(context.Context) error { return subscribe(admin) })
	says(subscribe(nobody), "the OperatorGroup of namespace "+h.namespace+" names the service account writer",
		"for the right to impersonate it")
}

// TestLargeCSV: what the policies compare may be as large as the API takes.
func TestLargeCSV(t *testing.T) {
	h := begin(t)
	h.untilOperatorsAreGuarded(true)

	who := h.welcome(h.user("olm-large", h.here(rule(olmGroup, "*", "*")), h.here(rule(core, "pods", "create"))))
	large := olmKinds[0].object("large")
	large.Object["spec"].(map[string]any)["description"] = strings.Repeat("x", 900_000)
	large.SetAnnotations(map[string]string{"alm-examples": strings.Repeat("y", 200_000)})

	csvs := h.as(who, olmKinds[0].of())
	if _, err := csvs.Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating it: %v", err)
	}

	if _, err := csvs.Patch(t.Context(), "large", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("labelling it: %v", err)
	}
}

// TestManyLabels: a ClusterServiceVersion can be released, and its namespace with it, however many labels it has.
func TestManyLabels(t *testing.T) {
	h := begin(t)
	h.untilOperatorsAreGuarded(true)

	const count = 30_000

	labels := make(map[string]string, count)
	for i := range count {
		labels[fmt.Sprintf("l%05d", i)] = ""
	}

	many := olmKinds[0].object("many")
	many.SetLabels(labels)
	many.SetFinalizers([]string{"guard.test/hold"})

	tenant := h.welcome(h.user("olm-labels", h.here(rule(olmGroup, "*", "*")), h.here(rule(core, "pods", "create"))))
	if _, err := h.as(tenant, olmKinds[0].of()).Create(t.Context(), many, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating it: %v", err)
	}

	for what, body := range map[string]string{
		"labelling": `{"metadata":{"labels":{"team":"a"}}}`, "releasing": `{"metadata":{"finalizers":null}}`,
	} {
		if _, err := h.as(nil, olmKinds[0].of()).Patch(t.Context(), "many", types.MergePatchType, []byte(body),
			metav1.PatchOptions{}); err != nil {
			t.Errorf("%s it: %v", what, err)
		}
	}
}

// TestLargeCatalog: the same goes for the content of a catalog, for whoever may write all of it and for whoever may write what
// Ambit does not read.
func TestLargeCatalog(t *testing.T) {
	h := begin(t)
	h.untilOperatorsAreGuarded(true)

	writes := []grant{
		h.here(rule(core, "configmaps", "*")), h.here(rule(core, "pods", "create")), h.here(rule(olmGroup, "catalogsources", "create")),
	}
	catalogs := h.as(h.welcome(h.user("large-catalog", writes...)), configMaps)
	content := func(letter string) map[string]any {
		return map[string]any{
			"clusterServiceVersions": strings.Repeat(letter, 500_000), "packages": strings.Repeat(letter, 500_000), "note": letter,
		}
	}

	if _, err := catalogs.Create(t.Context(), configMap("large", content("x")), metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating it: %v", err)
	}

	if _, err := catalogs.Update(t.Context(), configMap("large", content("y")), metav1.UpdateOptions{}); err != nil {
		t.Errorf("changing it: %v", err)
	}

	h.list("")
	h.eventually("no account is named any more", func(ctx context.Context) error {
		_, err := catalogs.Update(ctx, configMap("large", content("z")), metav1.UpdateOptions{DryRun: dryRun})

		return refusal(err, ownCatalogs)
	})

	if _, err := catalogs.Patch(t.Context(), "large", types.MergePatchType, []byte(`{"data":{"note":"z"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("changing what Ambit does not read: %v", err)
	}
}
