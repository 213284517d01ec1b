package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/testcluster"
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

// serve applies the CustomResourceDefinition of a resource with a schema, and waits until it is served.
func (h *house) serve(client dynamic.Interface, resource schema.GroupVersionResource, schemaYAML string) {
	h.Helper()

	version := map[string]any{}
	if err := yaml.Unmarshal([]byte(schemaYAML), &version); err != nil {
		h.Fatal(err)
	}

	name := resource.GroupResource().String()
	crds := client.Resource(schema.GroupVersionResource{
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

	h.Cleanup(func() { h.discard(crds, name) })
	h.eventually("waiting until "+name+" is served", func(ctx context.Context) error {
		_, err := h.as(nil, resource).List(ctx, metav1.ListOptions{})

		return err
	})
}

// guard applies the policies once more, for another group as well, and returns their names.
func (h *house) guard(client dynamic.Interface, group string) (ownPolicy, delegatePolicy string) {
	h.Helper()

	paths, err := filepath.Glob(filepath.Join(testcluster.Root(), "config", "guard", "*", "*.yaml"))
	if err != nil {
		h.Fatal(err)
	}

	prefix := h.namespace + "-"

	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			h.Fatal(err)
		}

		text := strings.ReplaceAll(string(raw), "apiGroups: ["+scopes.Group, "apiGroups: ["+group+", "+scopes.Group)
		text = strings.ReplaceAll(text, "ame: ambit-", "ame: "+prefix+"ambit-") // name and policyName

		manifest := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &manifest.Object); err != nil {
			h.Fatalf("reading %s: %v", path, err)
		}

		plural, found := map[string]string{
			"ValidatingAdmissionPolicy":        "validatingadmissionpolicies",
			"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
		}[manifest.GetKind()]
		if !found {
			continue // what kustomize reads
		}

		resources := client.Resource(manifest.GroupVersionKind().GroupVersion().WithResource(plural))
		if _, err := resources.Create(h.Context(), manifest, metav1.CreateOptions{}); err != nil {
			h.Fatalf("creating %s: %v", manifest.GetName(), err)
		}

		h.Cleanup(func() { h.discard(resources, manifest.GetName()) })
	}

	return prefix + ownIdentity, prefix + delegateIdentity
}

// discard deletes what may be gone already. The test's own context is cancelled by now.
func (h *house) discard(resources dynamic.ResourceInterface, name string) {
	h.Helper()

	err := resources.Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.Errorf("deleting %s: %v", name, err)
	}
}
