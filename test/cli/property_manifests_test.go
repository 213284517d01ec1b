package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// manifest is an object as somebody writes it.
type manifest map[string]any

// id names an object among all.
type id struct{ group, kind, namespace, name string }

func (i id) String() string { return i.kind + " " + i.namespace + "/" + i.name }

func idOf(m map[string]any) id {
	u := &unstructured.Unstructured{Object: m}

	return id{u.GroupVersionKind().Group, u.GetKind(), u.GetNamespace(), u.GetName()}
}

// object is an object with further fields.
func object(apiVersion, kind, namespace, name string, fields manifest) manifest {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}

	out := manifest{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	maps.Copy(out, fields)

	return out
}

func (m manifest) annotate(key, value string) manifest {
	u := &unstructured.Unstructured{Object: m}
	a := u.GetAnnotations()

	if a == nil {
		a = map[string]string{}
	}

	a[key] = value
	u.SetAnnotations(a)

	return m
}

// move is what somebody does: writes some objects, or deletes them.
type move struct {
	name    string
	objects []manifest
	delete  bool
}

func (m *move) what() string {
	if m.delete {
		return "delete, " + m.name
	}

	return "apply, " + m.name
}

// text is the file of a move.
func (m *move) text(t *testing.T) string {
	t.Helper()

	var out strings.Builder

	for _, obj := range m.objects {
		raw, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&out, "---\n%s", raw)
	}

	return out.String()
}

func serviceAccount(namespace, name string) manifest {
	return object("v1", "ServiceAccount", namespace, name, nil)
}

const rbacAPI = "rbac.authorization.k8s.io/v1"

func role(namespace, name string, words ...string) manifest {
	rules := []any{}

	for _, one := range words {
		rules = append(rules, ruleOf(one))
	}

	return object(rbacAPI, "Role", namespace, name, manifest{"rules": rules})
}

func ruleOf(words string) map[string]any {
	r := testbed.Rule(words)
	rule := map[string]any{"apiGroups": list(r.APIGroups), "resources": list(r.Resources), "verbs": list(r.Verbs)}

	if len(r.ResourceNames) > 0 {
		rule["resourceNames"] = list(r.ResourceNames)
	}

	return rule
}

func list(names []string) []any {
	out := make([]any, len(names))
	for i := range names {
		out[i] = names[i]
	}

	return out
}

func bind(namespace, name, kind, to, ops, account string) manifest {
	return object(rbacAPI, "RoleBinding", namespace, name, manifest{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": ops, "name": account}},
	})
}

// parsed are the objects that kubectl printed.
func parsed(t *testing.T, text string) []map[string]any {
	t.Helper()

	var one map[string]any

	text = text[max(0, strings.Index(text, "{")):]
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		t.Fatalf("%v: %s", err, text)
	}

	if one["kind"] != "List" {
		return []map[string]any{one}
	}

	var out []map[string]any

	for _, item := range one["items"].([]any) {
		out = append(out, item.(map[string]any))
	}

	return out
}
