package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// The policies about what has no namespace.
const (
	clusterScoped = "ambit-cluster-scoped"
	clusterWide   = "ambit-cluster-wide"
)

var (
	templates = operatorsv1alpha1.GroupVersion.WithResource("scopetemplates")
	instances = operatorsv1alpha1.GroupVersion.WithResource("scopeinstances")
)

// hall is where resources without a namespace are written. Their names end in that of a house.
type hall struct {
	*house
}

// The resources that are there.
const (
	template = "template"
	// narrow has namespaces, chosen a selector, wide neither, and leave namespaces and the annotation.
	narrow = "narrow"
	chosen = "chosen"
	wide   = "wide"
	leave  = "leave"
)

const allowClusterWide = `"annotations":{"ambit.dev/allow-cluster-wide":"true"}`

func (h *hall) name(s string) string { return h.namespace + "-" + s }

// enter makes a hall, once its policies are in force.
func enter(t *testing.T) *hall {
	t.Helper()

	h := &hall{begin(t)}
	h.elsewhere = testcluster.Namespace(t, h.config, "guard-elsewhere")
	h.furnish()
	t.Cleanup(h.clear)

	nobody := h.admit(h.user("nobody"))

	for policy, try := range map[string]func() error{
		clusterScoped: func() error { return h.merge(nobody, templates, template, `{"spec":{"clusterRoles":[]}}`) },
		clusterWide:   func() error { return h.merge(nil, instances, narrow, `{"spec":{"namespaces":[]}}`) },
	} {
		h.eventually("waiting for "+policy, func(context.Context) error {
			return refusal(try(), policy)
		})
	}

	return h
}

// admit lets somebody write the kinds, as far as RBAC goes.
func (h *hall) admit(who *somebody) *somebody {
	h.Helper()

	who.grants = append(who.grants, everywhereAs("ambit-edit", rule(templates.Group, templates.Resource, "create")))

	return h.welcome(who)
}

func (h *hall) of(who *somebody, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	h.Helper()

	config := rest.CopyConfig(h.config)
	if who != nil {
		config.Impersonate = rest.ImpersonationConfig{UserName: who.user, Groups: who.groups}
	}

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		h.Fatal(err)
	}

	return client.Resource(resource)
}

// merge tries a merge patch, and json a JSON patch.
func (h *hall) merge(who *somebody, resource schema.GroupVersionResource, name, body string) error {
	h.Helper()

	return h.patch(who, resource, name, types.MergePatchType, body)
}

func (h *hall) json(who *somebody, resource schema.GroupVersionResource, name, body string) error {
	h.Helper()

	return h.patch(who, resource, name, types.JSONPatchType, body)
}

func (h *hall) patch(
	who *somebody, resource schema.GroupVersionResource, name string, kind types.PatchType, body string,
) error {
	h.Helper()

	_, err := h.of(who, resource).Patch(h.Context(), h.name(name), kind, []byte(body), metav1.PatchOptions{DryRun: dryRun})

	return err
}

func (h *hall) make(
	who *somebody, resource schema.GroupVersionResource, spec map[string]any, annotations map[string]string,
) error {
	h.Helper()

	obj := h.object(resource, fresh, spec)
	obj.SetAnnotations(annotations)
	_, err := h.of(who, resource).Create(h.Context(), obj, metav1.CreateOptions{DryRun: dryRun})

	return err
}

func (h *hall) apply(who *somebody, resource schema.GroupVersionResource, manager, name string, spec map[string]any) error {
	h.Helper()

	_, err := h.of(who, resource).Apply(h.Context(), h.name(name), h.object(resource, name, spec),
		metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: dryRun})

	return err
}

func (h *hall) object(resource schema.GroupVersionResource, name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(resource.GroupVersion().WithKind(
		map[schema.GroupVersionResource]string{templates: "ScopeTemplate", instances: "ScopeInstance"}[resource]))
	obj.SetName(h.name(name))

	return obj
}

// specOf is the spec of an instance of a template that nobody makes.
func specOf(namespaces ...any) map[string]any {
	spec := map[string]any{"scopeTemplateName": "guard-nowhere"}
	if len(namespaces) > 0 {
		spec["namespaces"] = namespaces
	}

	return spec
}

func (h *hall) furnish() {
	h.Helper()

	role := map[string]any{"generateName": "guard-", "rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}},
	}}
	selecting := specOf()
	selecting["namespaceSelector"] = map[string]any{"guard.test/none": "x"}

	allowed := h.object(instances, leave, specOf("guard-missing"))
	allowed.SetAnnotations(map[string]string{"ambit.dev/allow-cluster-wide": "true"})

	for _, obj := range []*unstructured.Unstructured{
		h.object(templates, template, map[string]any{"clusterRoles": []any{role}}),
		h.object(instances, narrow, specOf("guard-missing")), h.object(instances, chosen, selecting),
		h.object(instances, wide, specOf()), allowed,
	} {
		resource := instances
		if obj.GetKind() == "ScopeTemplate" {
			resource = templates
		}

		if _, err := h.of(nil, resource).Apply(h.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: tool}); err != nil {
			h.Fatalf("creating %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
}

func (h *hall) clear() {
	h.Helper()

	for name, resource := range map[string]schema.GroupVersionResource{
		template: templates, narrow: instances, chosen: instances, wide: instances, leave: instances,
	} {
		// The test's own context is cancelled by now.
		err := h.of(nil, resource).Delete(context.Background(), h.name(name), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			h.Errorf("deleting %s: %v", name, err)
		}
	}
}

// TestWhoMayWriteTemplates lets everybody try everything about both kinds, as a dry run.
func TestWhoMayWriteTemplates(t *testing.T) {
	h := enter(t)
	everybody := people(h.house)

	// These two get no rights on the kinds: RBAC refuses them, and the policies are not even asked.
	for _, name := range []string{"Viewer", "Ambit"} {
		p := everybody[name]
		p.lacks = []string{"create", "update", "patch", "delete"}
		everybody[name] = p
	}

	for name, p := range everybody {
		t.Run(name, func(t *testing.T) {
			room := &hall{&house{}}
			*room.house = *h.house
			room.T = t

			switch {
			case len(p.lacks) > 0:
				room.welcome(p.who)
			case p.who != nil:
				room.admit(p.who)
			}

			for name, o := range templateOperations() {
				room.rule(name, o.do(room, p.who), &p, &o)
			}
		})
	}
}

// rule compares the answer to a request with what the rights of somebody make of it.
func (h *hall) rule(what string, err error, p *person, o *templateOperation) {
	h.Helper()

	var policies []string
	if o.escalates && !slices.Contains(p.may, asAmbit) {
		policies = append(policies, clusterScoped)
	}

	if o.widens {
		policies = append(policies, clusterWide)
	}

	switch by := refusedBy(err); {
	case len(p.lacks) > 0:
		if !apierrors.IsForbidden(err) || by != "" {
			h.Errorf("%s\n%s: %s\nwant: refused by RBAC, got: %v", p.reason, what, o.reason, err)
		}
	case len(policies) == 0 && err != nil:
		h.Errorf("%s\n%s: %s\nwant: allowed, got: %v", p.reason, what, o.reason, err)
	case len(policies) > 0 && !slices.Contains(policies, by):
		h.Errorf("%s\n%s: %s\nwant: refused by %s, got: %v", p.reason, what, o.reason, strings.Join(policies, " or "), err)
	}
}

// TestRefusalsOfTemplates checks what people read.
func TestRefusalsOfTemplates(t *testing.T) {
	h := enter(t)
	nobody := h.admit(h.user("reader"))

	for name, tc := range map[string]struct {
		err  error
		says []string
	}{
		"Template": {
			err: h.make(nobody, templates, map[string]any{}, nil),
			says: []string{
				"Ambit writes ClusterRoles and bindings", "with its own rights", "only users who may escalate clusterroles",
				"Ask a cluster administrator",
			},
		},
		"Emptied": {
			err: h.merge(nil, instances, narrow, `{"spec":{"namespaces":[]}}`),
			says: []string{
				"this instance would reach the whole cluster", `set the annotation ambit.dev/allow-cluster-wide: "true"`,
				"to bind nowhere, delete the instance",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var status *apierrors.StatusError
			if !errors.As(tc.err, &status) || status.ErrStatus.Code != http.StatusForbidden {
				t.Fatalf("want it refused, got: %v", tc.err)
			}

			for _, words := range tc.says {
				if !strings.Contains(tc.err.Error(), words) {
					t.Errorf("want %q, got: %v", words, tc.err)
				}
			}
		})
	}
}

// TestStatusOfTemplatesDoesNotMatter: whoever may write the status may write it, and with it nothing else.
func TestStatusOfTemplatesDoesNotMatter(t *testing.T) {
	h := enter(t)
	who := h.welcome(h.user("reporter", everywhere(rule(instances.Group, "scopeinstances/status", "*"))))

	got, err := h.of(who, instances).Patch(t.Context(), h.name(narrow), types.MergePatchType, []byte(
		`{"metadata":{`+allowClusterWide+`},"status":{"observedGeneration":7},"spec":{"namespaces":null}}`),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}

	if spec := fmt.Sprint(got.Object["spec"]); !strings.Contains(spec, "guard-missing") || len(got.GetAnnotations()) > 0 {
		t.Errorf("writing the status changed more: %v", got.Object)
	}
}
