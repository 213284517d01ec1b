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
)

const olmGroup = "operators.coreos.com"

// olmKind is a kind by which somebody decides what is installed.
type olmKind struct {
	kind, resource string
	spec           map[string]any
	// another is a merge patch by which something else is installed.
	another string
	// annotated says that annotations do, too.
	annotated bool
}

var olmKinds = []olmKind{
	{
		kind: "ClusterServiceVersion", resource: "clusterserviceversions", annotated: true,
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
				})
			}
		})
	}
}

// untilOperatorsAreGuarded writes down the account of the namespace, as Ambit does, and waits until the policies know it.
func (h *house) untilOperatorsAreGuarded(listed bool) {
	h.Helper()

	writes := h.here(rule(olmGroup, "*", "*"))
	podCreator := h.welcome(h.user("operators-pod-creator", writes, h.here(rule(core, "pods", "create"))))
	escalator := h.welcome(h.user("operators-escalator", writes, everywhere(rule(rbacGroup, "clusterroles", "escalate"))))
	csv := &olmKinds[0]
	probe := csv.object("probe")

	// As long as no account is written down, each lacks what one of the policies asks for.
	h.untilRefused(ownOperators, podCreator, csv.of(), probe)
	h.untilRefused(delegateOperators, escalator, csv.of(), probe)

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

	if _, err := h.as(nil, k.of()).Apply(h.Context(), name, k.object(name), metav1.ApplyOptions{FieldManager: tool}); err != nil {
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

	annotated := merge(`{"metadata":{"annotations":{"note":"hello"}}}`)
	if k.annotated {
		guarded["annotate"] = annotated
	} else {
		free["annotate"] = annotated
	}

	if k.kind == "InstallPlan" {
		guarded["steps"] = merge(steps, "status")
		free["status"] = merge(`{"status":{"phase":"Installing"}}`, "status")
	}

	for what, err := range guarded {
		switch by := refusedBy(err); {
		case len(policies) == 0 && err != nil:
			h.Errorf("%s\n%s %s: want: allowed, got: %v", p.reason, what, k.kind, err)
		case len(policies) > 0 && !slices.Contains(policies, by):
			h.Errorf("%s\n%s %s: want: refused by %v, got: %v", p.reason, what, k.kind, policies, err)
		}
	}

	for what, err := range free {
		if err != nil {
			h.Errorf("%s\n%s %s: want: allowed, got: %v", p.reason, what, k.kind, err)
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
