package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// exchange is what both are asked for.
type exchange struct {
	words string
	obj   client.Object
	send  func(client.Client, client.Object, client.Object) error
	// isRough says that it may change in memory nothing but who applied what.
	isRough bool
}

func (a *agreement) pick(of ...string) string { return of[a.draws.IntN(len(of))] }

func (a *agreement) name() string { return a.pick("a", "b") }

// wide is the name of an object of the whole cluster.
func (a *agreement) wide(name string) string { return a.namespace + "-" + name }

func (a *agreement) value() string { return a.pick("1", "2", "3") }

func (a *agreement) chance(of int) bool { return a.draws.IntN(of) == 0 }

// kind is one of the kinds that Ambit writes, of which the last two have no namespace.
func (a *agreement) kind(of int) metav1.TypeMeta {
	return []metav1.TypeMeta{
		{APIVersion: "v1", Kind: "ConfigMap"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		{APIVersion: "operator.ibm.com/v1", Kind: "NamespaceScope"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
	}[a.draws.IntN(of)]
}

// place is the namespace, or rarely one that is not there, or one that is being deleted.
func (a *agreement) place() string {
	if !a.chance(10) {
		return a.namespace
	}

	return a.pick("missing-"+a.namespace, a.terminating)
}

// object is one of a few objects, with some content.
func (a *agreement) object() client.Object {
	kind := a.kind(6)
	m := metav1.ObjectMeta{Namespace: a.place(), Name: a.name()}

	if strings.HasPrefix(kind.Kind, "Cluster") {
		m.Namespace, m.Name = "", a.wide(m.Name)
	}

	if a.chance(2) {
		m.Labels = map[string]string{"l": a.value()}
	}

	if a.chance(4) {
		m.Finalizers = []string{"example.com/" + a.value()}
	}

	switch kind.Kind {
	case "ConfigMap":
		out := &corev1.ConfigMap{TypeMeta: kind, ObjectMeta: m}
		if !a.chance(4) {
			out.Data = map[string]string{a.pick("x", "y"): a.value()}
		}

		return out
	case "Role":
		out := &rbacv1.Role{TypeMeta: kind, ObjectMeta: m}
		for range a.draws.IntN(3) {
			out.Rules = append(out.Rules, a.rule())
		}

		return out
	case "ClusterRole":
		out := &rbacv1.ClusterRole{TypeMeta: kind, ObjectMeta: m}
		for range a.draws.IntN(3) {
			out.Rules = append(out.Rules, a.rule())
		}

		// It selects nothing, so that nobody fills it.
		if a.chance(4) {
			out.Rules, out.AggregationRule = nil, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{"never": a.value()}},
			}}
		}

		return out
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: kind, ObjectMeta: m,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.wide(a.pick("a", "a", "b", "missing"))},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: a.value(), Namespace: a.namespace}},
		}
	case "RoleBinding":
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.pick("a", "a", "b", "held", "missing")}
		if a.chance(5) {
			ref.Kind, ref.Name = "ClusterRole", a.pick("view", "admin", "missing", a.wide("a"))
		}

		return &rbacv1.RoleBinding{
			TypeMeta: kind, ObjectMeta: m, RoleRef: ref,
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: a.value(), Namespace: a.namespace}},
		}
	default:
		out := &operatorv1.NamespaceScope{TypeMeta: kind, ObjectMeta: m}
		// With its defaults: nobody here knows those of a definition, and Ambit makes nothing that has any.
		out.Spec.ConfigmapName, out.Spec.RestartLabels = "list", map[string]operatorv1.LabelValue{"r": ""}
		out.Spec.NamespaceMembers = []string{a.value(), a.value()}

		return out
	}
}

func (a *agreement) describe(verb string, obj client.Object, more ...any) string {
	return fmt.Sprintln(slices.Concat([]any{verb, a.normal(obj), obj.GetObjectKind().GroupVersionKind().Kind}, more)...)
}

func (a *agreement) create() exchange {
	obj, dry := a.object(), a.chance(5)

	options := []client.CreateOption{client.FieldOwner("ambit")}
	if dry {
		options = append(options, client.DryRunAll)
	}

	return exchange{words: a.describe("create", obj, "dry", dry), obj: obj, send: func(c client.Client, obj, _ client.Object) error {
		return c.Create(context.Background(), obj, options...)
	}}
}

// patchOptions are those of a patch, with words for them.
func (a *agreement) patchOptions(force bool) (out []client.PatchOption, words string) {
	manager := a.pick("ambit", "somebody")
	out = append(out, client.FieldOwner(manager))
	words = "as " + manager

	if force && a.chance(2) {
		out = append(out, client.ForceOwnership)
		words += " with force"
	}

	if a.chance(6) {
		out = append(out, client.DryRunAll)
		words += " dry"
	}

	return out, words
}

// merge is a merge patch of an object to another one's content, for the object that is there or for another one.
func (a *agreement) merge() exchange {
	obj := a.object()
	options, words := a.patchOptions(false)
	meant := a.pick("", "", "", "uid", "version", "other uid", "other version")

	content := a.content(obj)
	unstructured.RemoveNestedField(content, "metadata", "name")
	unstructured.RemoveNestedField(content, "metadata", "namespace")

	if a.chance(3) {
		_ = unstructured.SetNestedField(content, nil, "metadata", a.pick("labels", "finalizers"))
	}

	return exchange{
		words: a.describe("merge", obj, words, "for", meant, content), obj: obj,
		send: func(c client.Client, obj, live client.Object) error {
			body := runtime.DeepCopyJSON(content)
			metadata, _ := body["metadata"].(map[string]any)

			if live != nil {
				switch meant {
				case "uid":
					metadata["uid"] = string(live.GetUID())
				case "version":
					metadata["resourceVersion"] = live.GetResourceVersion()
				case "other uid":
					metadata["uid"] = "00000000-0000-0000-0000-000000000000"
				case "other version":
					metadata["resourceVersion"] = "1"
				}
			}

			return c.Patch(context.Background(), obj, client.RawPatch(types.MergePatchType, a.json(body)), options...)
		},
	}
}

func (a *agreement) content(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		a.t.Fatal(err)
	}

	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	delete(content, "status")

	return content
}

func (a *agreement) json(content any) []byte {
	out, err := json.Marshal(content)
	if err != nil {
		a.t.Fatal(err)
	}

	return out
}

// apply is a server-side apply of a whole object.
func (a *agreement) apply() exchange {
	obj := a.object()
	_, isCopy := projected.KindOf(obj)
	options, words := a.patchOptions(!isCopy)
	content := a.content(obj)

	// In memory, all finalizers are one value where a definition made the kind, and so are labels that others write beside it.
	if _, isConfigMap := obj.(*corev1.ConfigMap); !isConfigMap {
		unstructured.RemoveNestedField(content, "metadata", "finalizers")
		unstructured.RemoveNestedField(content, "metadata", "labels")
	}

	// Of a Role or a binding it is not known in memory which fields somebody applied before: who applies it decides all of them.
	if isCopy {
		options = append(options, client.ForceOwnership)
		unstructured.RemoveNestedField(content, "metadata", "finalizers")
		_ = unstructured.SetNestedField(content, a.value(), "metadata", "labels", "l")
	}

	send := func(c client.Client, obj, _ client.Object) error {
		return c.Patch(context.Background(), obj, client.RawPatch(types.ApplyPatchType, a.json(content)), options...)
	}

	return exchange{words: a.describe("apply", obj, words), obj: obj, isRough: isCopy, send: send}
}

// applyObject is a server-side apply of some fields.
func (a *agreement) applyObject() exchange {
	obj := a.object()
	for obj.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		obj = a.object() // Nobody applies a part of a Role or a binding, and a part of a scope gets defaults.
	}

	options, words := a.patchOptions(true)
	content := map[string]any{
		"apiVersion": a.content(obj)["apiVersion"], "kind": a.content(obj)["kind"],
		"metadata": map[string]any{
			"name": obj.GetName(), "namespace": obj.GetNamespace(), "annotations": map[string]any{"n": a.value()},
		},
	}

	send := func(c client.Client, obj, _ client.Object) error {
		return c.Patch(context.Background(), obj, client.RawPatch(types.ApplyPatchType, a.json(content)), options...)
	}

	return exchange{words: a.describe("apply", obj, words, content), obj: obj, send: send}
}

func (a *agreement) delete() exchange {
	obj, meant, dry := a.object(), a.pick("", "", "uid", "version", "other uid", "other version"), a.chance(6)

	send := func(c client.Client, obj, live client.Object) error {
		var options []client.DeleteOption

		if dry {
			options = append(options, client.DryRunAll)
		}

		p := client.Preconditions{}
		uid, version := types.UID("00000000-0000-0000-0000-000000000000"), "1"

		if strings.HasSuffix(meant, "uid") {
			p.UID = &uid
		}

		if strings.HasSuffix(meant, "version") {
			p.ResourceVersion = &version
		}

		if live != nil && meant == "uid" {
			uid = live.GetUID()
		}

		if live != nil && meant == "version" {
			version = live.GetResourceVersion()
		}

		return c.Delete(context.Background(), obj, append(options, p)...)
	}

	return exchange{words: a.describe("delete", obj, "for", meant, "dry", dry), obj: obj, send: send}
}

func (a *agreement) jsonPatch() exchange {
	obj := a.object()
	options, words := a.patchOptions(false)
	body := []map[string]any{{"op": "test", "path": "/metadata/labels/l", "value": a.value()}}

	switch a.draws.IntN(4) {
	case 0:
		body = append(body, map[string]any{"op": "remove", "path": "/metadata/labels/l"})
	case 1:
		body = append(body, map[string]any{"op": "replace", "path": "/metadata/labels", "value": map[string]any{"l": a.value()}})
	case 2:
		body[0] = map[string]any{"op": "add", "path": "/metadata/labels", "value": map[string]any{"m": a.value()}}
	default:
		body[0] = map[string]any{"op": "remove", "path": "/metadata/finalizers"}
	}

	return exchange{words: a.describe("patch", obj, words, body), obj: obj, send: func(c client.Client, obj, _ client.Object) error {
		return c.Patch(context.Background(), obj, client.RawPatch(types.JSONPatchType, a.json(body)), options...)
	}}
}

// status writes the status of a scope.
func (a *agreement) status() exchange {
	obj := &operatorv1.NamespaceScope{
		TypeMeta:   metav1.TypeMeta{APIVersion: "operator.ibm.com/v1", Kind: "NamespaceScope"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name()},
	}
	body := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"l": a.value()}},
		"spec":     map[string]any{"namespaceMembers": []any{a.value()}},
		"status":   map[string]any{"validatedMembers": []any{a.value()}},
	}

	if a.chance(4) {
		body["status"] = nil
	}

	return exchange{words: a.describe("status", obj, body), obj: obj, send: func(c client.Client, obj, _ client.Object) error {
		return c.Status().Patch(context.Background(), obj, client.RawPatch(types.MergePatchType, a.json(body)))
	}}
}

// rule gives something to do with what the requests are about.
func (a *agreement) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{
		APIGroups: []string{a.pick("", rbacv1.GroupName, rbacv1.GroupName, "operator.ibm.com", "apps", "*")},
		Resources: []string{a.pick(
			"configmaps", "roles", "rolebindings", "namespacescopes", "namespacescopes/status", "clusterroles", "clusterrolebindings",
			"pods", "*", "*/status",
		)},
	}

	for range 1 + a.draws.IntN(4) {
		r.Verbs = append(r.Verbs, a.pick("get", "list", "create", "create", "patch", "patch", "delete", "bind", "escalate", "*"))
	}

	if a.chance(4) {
		r.ResourceNames = []string{a.pick("a", "b", a.wide("a"), "")}
	}

	return r
}
