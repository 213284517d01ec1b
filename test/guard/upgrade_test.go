package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// before is the schema of an early version of the API, after that of the next one: it has a field more, and a default
// for it and for the spec as a whole.
const (
	before = `
openAPIV3Schema:
  type: object
  properties:
    spec:
      type: object
      properties:
        namespaceMembers: {type: array, items: {type: string}}
        serviceAccountName: {type: string}`
	after = `
openAPIV3Schema:
  type: object
  properties:
    spec:
      type: object
      default: {}
      properties:
        namespaceMembers: {type: array, items: {type: string}}
        serviceAccountName: {type: string}
        mode: {type: string, default: careful}`
	// others is a schema like that of IBM's operator: it keeps fields that it does not know, and does not look at them.
	others = `
openAPIV3Schema:
  type: object
  properties:
    spec:
      type: object
      properties:
        namespaceMembers: {type: array, items: {type: string}}
        manualManagement: {type: boolean}
      x-kubernetes-preserve-unknown-fields: true`
)

// TestAnotherGroup: the policies guard one more API group, which no manager serves, by one more entry of apiGroups. Its
// scopes can be older than the policies, change their schema, and be as large as the API takes, without other tests
// noticing.
func TestAnotherGroup(t *testing.T) {
	h := begin(t)

	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}

	resource := schema.GroupVersionResource{Group: h.namespace + ".guard.test", Version: "v1", Resource: scopes.Resource}
	h.serve(client, resource, before)

	for name, spec := range map[string]map[string]any{
		"no-spec": nil, "empty-spec": {}, own: {"namespaceMembers": []any{"team-a"}}, delegated: {account: writer},
	} {
		h.eventually("creating "+name, func(ctx context.Context) error {
			_, err := h.as(nil, resource).Create(ctx, object(resource, name, spec), metav1.CreateOptions{})

			return err
		})
	}

	ownPolicy, delegatePolicy := h.guard(client, resource.Group)
	h.untilInForce(resource, ownPolicy, delegatePolicy)

	who := h.welcome(h.user("keeper", h.here(rule(resource.Group, resource.Resource, "*"))))

	t.Run("DefaultsThatCameLater", func(t *testing.T) {
		h.serve(client, resource, after)
		h.eventually("waiting for the default", func(ctx context.Context) error {
			scope, err := h.as(nil, resource).Get(ctx, "no-spec", metav1.GetOptions{})
			if err != nil {
				return err
			}

			if mode, _, _ := unstructured.NestedString(scope.Object, "spec", "mode"); mode != "careful" {
				return errNotYet
			}

			return nil
		})

		r := h.request(who, resource, nil)

		for name, policy := range map[string]string{
			"no-spec": ownPolicy, "empty-spec": ownPolicy, own: ownPolicy, delegated: delegatePolicy,
		} {
			for _, err := range []error{
				patch(name, types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`)(r),
				update(name, finalizer)(r),
				patch(name, types.MergePatchType, `{"metadata":{"finalizers":null}}`)(r),
			} {
				if err != nil {
					t.Errorf("%s: a default that the API server adds is nobody's change; want it let through, got: %v", name, err)
				}
			}

			if err := patch(name, types.MergePatchType, `{"spec":{"mode":"bold"}}`)(r); refusedBy(err) != policy {
				t.Errorf("%s: want the new field guarded by %s, got: %v", name, policy, err)
			}
		}
	})

	t.Run("LargestScope", func(t *testing.T) {
		names := make([]any, 20000)
		for i := range names {
			names[i] = fmt.Sprintf("team-%s-%05d", strings.Repeat("x", 52), i)
		}

		admin := h.request(nil, resource, dryRun)
		r := h.request(who, resource, dryRun)
		large := object(resource, "large", map[string]any{"namespaceMembers": names, account: writer})

		if _, err := admin.Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		if err := patch("large", types.MergePatchType, `{"metadata":{"labels":{"team":"a"}}}`)(r); err != nil {
			t.Errorf("want a label let through, as on a small scope, got: %v", err)
		}

		last := patch("large", types.JSONPatchType, `[{"op":"replace","path":"/spec/namespaceMembers/19999","value":"kube-system"}]`)
		if err := last(r); refusedBy(err) != delegatePolicy || !strings.Contains(err.Error(), "rights") {
			t.Errorf("want a change of the last member refused for lack of rights, got: %v", err)
		}

		if err := last(admin); err != nil {
			t.Errorf("want a cluster administrator let through, got: %v", err)
		}
	})
}

// TestDefinitionOfOthers: where the definition is that of IBM's operator, which Helm leaves as it is, the account of a scope can
// be anything. Null names none to Ambit, so it must name none to the policies. What is no text is refused.
func TestDefinitionOfOthers(t *testing.T) {
	h := begin(t)

	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}

	resource := schema.GroupVersionResource{Group: h.namespace + ".guard.test", Version: "v1", Resource: scopes.Resource}
	h.serve(client, resource, others)
	h.eventually("creating a scope with null", func(ctx context.Context) error {
		_, err := h.as(nil, resource).Create(ctx, object(resource, "was", map[string]any{account: nil}), metav1.CreateOptions{})

		return err
	})

	ownPolicy, delegatePolicy := h.guard(client, resource.Group)
	h.untilInForce(resource, ownPolicy, delegatePolicy)

	who := h.welcome(h.user("tenant", h.here(rule(resource.Group, resource.Resource, "*")), h.here(rule(core, "pods", "create")),
		h.here(rule(core, "serviceaccounts", "impersonate"))))

	for name, tc := range map[string]struct {
		reason string
		value  any
		author *somebody
		want   []string
	}{
		"null":         {"names nobody, so Ambit itself writes", nil, who, []string{ownPolicy}},
		"number":       {"names nobody, and cannot be read", int64(5), who, []string{ownPolicy, delegatePolicy}},
		"list":         {"the same", []any{writer}, who, []string{ownPolicy, delegatePolicy}},
		"map":          {"the same", map[string]any{"name": writer}, who, []string{ownPolicy, delegatePolicy}},
		"boolean":      {"the same", true, who, []string{ownPolicy, delegatePolicy}},
		"text":         {"the author may use the account", writer, who, []string{""}},
		"admin's null": {"who may escalate may have Ambit itself write", nil, nil, []string{""}},
		"admin's list": {"nobody may write what cannot be read", []any{writer}, nil, []string{delegatePolicy}},
	} {
		scope := object(resource, "new", map[string]any{"namespaceMembers": []any{"kube-system"}, account: tc.value})

		_, err := h.as(tc.author, resource).Create(t.Context(), scope, metav1.CreateOptions{DryRun: dryRun})
		if got := refusedBy(err); !slices.Contains(tc.want, got) || got == "" && err != nil {
			t.Errorf("%s: %s: want it refused by %q, got: %v", name, tc.reason, tc.want, err)
		}
	}

	err = patch("was", types.MergePatchType, `{"spec":{"serviceAccountName":"`+writer+`"}}`)(h.request(who, resource, dryRun))
	if refusedBy(err) != ownPolicy {
		t.Errorf("Ambit itself wrote for the scope so far: want it refused to name an account, got: %v", err)
	}
}

// TestOldDefinitionOfTheLegacyGroup: the legacy group has no field for an account, and Ambit reads none, also where its
// definition keeps what it does not know, as those did that had no schema.
func TestOldDefinitionOfTheLegacyGroup(t *testing.T) {
	h := begin(t)

	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}

	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})

	before, err := definitions.Get(t.Context(), legacyScopes.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		patch, err := json.Marshal(map[string]any{"spec": before.Object["spec"]})
		if err == nil {
			_, err = definitions.Patch(context.Background(), before.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		}

		if err != nil {
			t.Errorf("putting the definition back: %v", err)
		}
	})
	h.define(client, legacyScopes, others)

	spec := map[string]any{account: writer}
	h.eventually("waiting for the definition", func(ctx context.Context) error {
		scope, err := h.as(nil, legacyScopes).Create(ctx, object(legacyScopes, "new", spec), metav1.CreateOptions{DryRun: dryRun})
		if err != nil {
			return err
		}

		if kept, _, _ := unstructured.NestedString(scope.Object, "spec", account); kept != writer {
			return errNotYet
		}

		return nil
	})

	who := h.welcome(h.user("tenant", h.here(rule(legacyScopes.Group, legacyScopes.Resource, "*")),
		h.here(rule(core, "pods", "create")), h.here(rule(core, "serviceaccounts", "impersonate"))))

	_, err = h.as(who, legacyScopes).Create(t.Context(), object(legacyScopes, "new", spec), metav1.CreateOptions{DryRun: dryRun})
	if refusedBy(err) != ownIdentity {
		t.Errorf("want it refused by %s, got: %v", ownIdentity, err)
	}
}

// serve applies the CustomResourceDefinition of a resource with a schema, and waits until it is served.
func (h *house) serve(client dynamic.Interface, resource schema.GroupVersionResource, schemaYAML string) {
	h.Helper()

	crds, name := h.define(client, resource, schemaYAML)

	h.Cleanup(func() { h.discard(crds, name) })
	h.eventually("waiting until "+name+" is served", func(ctx context.Context) error {
		_, err := h.as(nil, resource).List(ctx, metav1.ListOptions{})

		return err
	})
}

// define applies the CustomResourceDefinition of a resource with a schema, and returns where it is.
func (h *house) define(
	client dynamic.Interface, resource schema.GroupVersionResource, schemaYAML string,
) (crds dynamic.ResourceInterface, name string) {
	h.Helper()

	version := map[string]any{}
	if err := yaml.Unmarshal([]byte(schemaYAML), &version); err != nil {
		h.Fatal(err)
	}

	name = resource.GroupResource().String()
	crds = client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": resource.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": resource.Resource, "kind": "NamespaceScope"},
			"versions": []any{map[string]any{
				"name": resource.Version, "served": true, "storage": true, "schema": version,
			}},
		},
	}}

	if _, err := crds.Apply(h.Context(), name, crd, metav1.ApplyOptions{FieldManager: tool, Force: true}); err != nil {
		h.Fatalf("applying the CustomResourceDefinition: %v", err)
	}

	return crds, name
}

// guard applies the policies about scopes once more, for another group, and returns their names. For that group alone: they would
// be in force for everybody's scopes otherwise, and for a moment after the test as well.
func (h *house) guard(client dynamic.Interface, group string) (ownPolicy, delegatePolicy string) {
	h.Helper()

	prefix := h.namespace + "-"

	for _, policy := range []string{ownIdentity, delegateIdentity} {
		dir := filepath.Join(testcluster.Root(), "config", "guard", strings.TrimPrefix(policy, "ambit-"))

		for file, plural := range map[string]string{
			"policy.yaml": "validatingadmissionpolicies", "binding.yaml": "validatingadmissionpolicybindings",
		} {
			raw, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				h.Fatal(err)
			}

			manifest := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(raw, &manifest.Object); err != nil {
				h.Fatalf("reading %s: %v", file, err)
			}

			manifest.SetName(prefix + policy)
			h.redirect(manifest, prefix+policy, group)

			resources := client.Resource(manifest.GroupVersionKind().GroupVersion().WithResource(plural))
			if _, err := resources.Create(h.Context(), manifest, metav1.CreateOptions{}); err != nil {
				h.Fatalf("creating %s: %v", manifest.GetName(), err)
			}

			h.Cleanup(func() { h.discard(resources, manifest.GetName()) })
		}
	}

	return prefix + ownIdentity, prefix + delegateIdentity
}

// redirect makes a policy be about another group, or a binding about another policy.
func (h *house) redirect(manifest *unstructured.Unstructured, policy, group string) {
	h.Helper()

	if manifest.GetKind() == "ValidatingAdmissionPolicyBinding" {
		if err := unstructured.SetNestedField(manifest.Object, policy, "spec", "policyName"); err != nil {
			h.Fatal(err)
		}

		return
	}

	rules, _, err := unstructured.NestedSlice(manifest.Object, "spec", "matchConstraints", "resourceRules")
	if err != nil || len(rules) != 1 {
		h.Fatalf("%s has %d resource rules (%v), want one, about scopes", policy, len(rules), err)
	}

	rules[0].(map[string]any)["apiGroups"] = []any{group}

	if err := unstructured.SetNestedSlice(manifest.Object, rules, "spec", "matchConstraints", "resourceRules"); err != nil {
		h.Fatal(err)
	}
}

// discard deletes what may be gone already. The test's own context is cancelled by now.
func (h *house) discard(resources dynamic.ResourceInterface, name string) {
	h.Helper()

	err := resources.Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.Errorf("deleting %s: %v", name, err)
	}
}
