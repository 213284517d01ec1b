package reconcile_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// retemplate changes what the template asks for, and reinstance what the instance does.
func (w *world) retemplate(spec string) {
	w.Helper()

	t := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: w.ns("t")}}
	w.Change(t, func() { t.Spec = decoded[operatorsv1alpha1.ScopeTemplateSpec](w, spec) })
}

func (w *world) reinstance(spec string) {
	w.Helper()

	i := &operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: w.ns("i")}}
	w.Change(i, func() { i.Spec = decoded[operatorsv1alpha1.ScopeInstanceSpec](w, spec) })
}

// kindsOf are the writes of RBAC in words without names: "patch clusterroles".
func kindsOf(writes []string) []string {
	out := []string{}

	for _, what := range writes {
		verb, rest, _ := strings.Cut(what, " ")
		if kind, _, _ := strings.Cut(rest, " "); strings.Contains(kind, "role") {
			out = append(out, verb+" "+kind)
		}
	}

	return out
}

// TestTemplatesFollow: what a change of a template or of an instance writes, in which order, and what is there afterwards.
func TestTemplatesFollow(t *testing.T) {
	const (
		both = `{"scopeTemplateName":"t>","namespaces":["a>","b>"]}`
		op   = `{"kind":"ServiceAccount","namespace":"ops","name":"op"}`
		jane = `{"kind":"User","name":"jane"}`
		joe  = `{"kind":"User","name":"joe"}`
	)

	entry := func(verbs, resource, to string) string {
		return `{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["` + resource + `"],"verbs":["` +
			strings.ReplaceAll(verbs, ",", `","`) + `"]}],` +
			`"subjects":[` + to + `]}`
	}
	entries := func(all ...string) string { return `{"clusterRoles":[` + strings.Join(all, ",") + `]}` }
	wider := entries(entry("get,list", "secrets", op))
	two := entries(entry("get", "secrets", op), entry("list", "nodes", op))
	janes, joes := entry("get", "secrets", jane), entry("list", "nodes", joe)

	for name, tc := range map[string]struct {
		before, after string
		// first is the instance before, and instance the one after; both namespaces where they are left out.
		first, instance string
		// wrote are the writes of RBAC in their order, which of one kind are in any.
		wrote, roles, bound []string
	}{
		"rules that are added are one write, whatever the number of namespaces": {
			before: reader, after: wider, wrote: []string{"patch clusterroles"},
			roles: []string{"get,list secrets"}, bound: []string{"a: ops/op", "b: ops/op"},
		},
		"so are rules that are taken away": {
			before: wider, after: reader, wrote: []string{"patch clusterroles"},
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"},
		},
		"a role that is taken away loses its bindings first": {
			before: two, after: reader, wrote: []string{"delete rolebindings", "delete rolebindings", "delete clusterroles"},
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"},
		},
		"a role that is added is there before its bindings": {
			before: reader, after: two, wrote: []string{"create clusterroles", "create rolebindings", "create rolebindings"},
			roles: []string{"get secrets", "list nodes"}, bound: []string{"a: ops/op", "a: ops/op", "b: ops/op", "b: ops/op"},
		},
		"entries that change places: bindings let go of people before roles change, and take them up after": {
			before: entries(janes, joes), after: entries(joes, janes), wrote: slices.Concat(
				slices.Repeat([]string{"patch rolebindings"}, 4), slices.Repeat([]string{"patch clusterroles"}, 2),
				slices.Repeat([]string{"patch rolebindings"}, 4)),
			roles: []string{"get secrets", "list nodes"}, bound: []string{"a: jane", "a: joe", "b: jane", "b: joe"},
		},
		"other subjects change bindings and no role": {
			before: reader, after: strings.Replace(reader, `"name":"op"`, `"name":"other"`, 1),
			wrote: []string{"patch rolebindings", "patch rolebindings"},
			roles: []string{"get secrets"}, bound: []string{"a: ops/other", "b: ops/other"},
		},
		"a namespace that leaves loses its binding only": {
			before: reader, after: reader, instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`,
			wrote: []string{"delete rolebindings"}, roles: []string{"get secrets"}, bound: []string{"a: ops/op"},
		},
		"a namespace that leaves loses its binding before the role gains rules": {
			before: reader, after: wider, instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`,
			wrote: []string{"delete rolebindings", "patch clusterroles"},
			roles: []string{"get,list secrets"}, bound: []string{"a: ops/op"},
		},
		"and so does the whole cluster": {
			first: `{"scopeTemplateName":"t>"}`, before: reader, after: wider, instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`,
			wrote: []string{"delete clusterrolebindings", "patch clusterroles", "create rolebindings"},
			roles: []string{"get,list secrets"}, bound: []string{"a: ops/op"},
		},
		"a namespace that joins gets a binding only": {
			before: reader, after: reader, instance: `{"scopeTemplateName":"t>","namespaces":["a>","b>","c>"]}`,
			wrote: []string{"create rolebindings"}, roles: []string{"get secrets"},
			bound: []string{"a: ops/op", "b: ops/op", "c: ops/op"},
		},
		"an emptied list is not the whole cluster, and the old namespaces stay served": {
			before: reader, after: reader, instance: `{"scopeTemplateName":"t>"}`,
			wrote: []string{}, roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"},
		},
		"a template that is no longer meant takes all away": {
			before: reader, after: reader, instance: `{"scopeTemplateName":"another>","namespaces":["a>"]}`,
			wrote: []string{"delete rolebindings", "delete rolebindings", "delete clusterroles"}, roles: []string{}, bound: []string{},
		},
		"what is as it was writes nothing": {
			before: reader, after: reader, instance: both, wrote: []string{},
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := templated(t)
			w.template(tc.before)
			w.instance("i", cmp.Or(tc.first, both))
			w.reconcileTemplates()

			w.retemplate(tc.after)

			if tc.instance != "" {
				w.reinstance(tc.instance)
			}

			is(w, "what is written", kindsOf(w.reconcileTemplates()), slices.Concat([]string{}, tc.wrote))
			is(w, "ClusterRoles", w.roles(), tc.roles)
			is(w, "bindings", w.bound("i"), tc.bound)
		})
	}
}

// TestInstanceGoesBeforeItsTemplateGrows: whoever held a role by an instance that was deleted never holds what the role gains.
func TestInstanceGoesBeforeItsTemplateGrows(t *testing.T) {
	w := templated(t)
	w.template(reader)
	w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>","b>"]}`)
	w.instance("j", `{"scopeTemplateName":"t>","namespaces":["c>"]}`)
	w.reconcileTemplates()

	w.Remove(&operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: w.ns("i")}})
	w.retemplate(strings.Replace(reader, `["get"]`, `["get","list"]`, 1))

	is(w, "what is written", kindsOf(w.reconcileTemplates()),
		[]string{"delete rolebindings", "delete rolebindings", "patch clusterroles"})
	is(w, "bindings", w.bound("i"), []string{})
	is(w, "bindings", w.bound("j"), []string{"c: ops/op"})
}

// TestNamespaceThatEndsGivesNobodyMore: what is bound in a namespace that is being deleted stays there, as long as the template
// binds the same. A tenant may keep such a namespace, and the binding in it, for as long as they like.
func TestNamespaceThatEndsGivesNobodyMore(t *testing.T) {
	w := templated(t)
	to := func(name, verbs string) string {
		return fmt.Sprintf(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":[%s]}],`+
			`"subjects":[{"kind":"User","name":%q}]}]}`, verbs, name)
	}

	w.template(to("jane", `"get"`))
	w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>","b>"]}`)
	w.reconcileTemplates()

	w.Remove(w.object("b"))
	w.retemplate(to("jane", `"get","list"`))
	is(w, "what is written", kindsOf(w.reconcileTemplates()), []string{"patch clusterroles"})
	is(w, "bindings", w.bound("i"), []string{"a: jane", "b: jane"})

	w.retemplate(to("joe", `"get","list","delete"`))
	is(w, "what is written", kindsOf(w.reconcileTemplates()),
		[]string{"delete rolebindings", "patch rolebindings", "patch clusterroles", "patch rolebindings"})
	is(w, "bindings", w.bound("i"), []string{"a: joe"})
}

// TestLargeTemplatesFollow: a change of a template is one write also where its rules are more than Ambit remembers: all that it
// has to know of them is that they keep everybody from binding the ClusterRole. One that somebody took that from is replaced, and
// its bindings are.
func TestLargeTemplatesFollow(t *testing.T) {
	names := make([]string, 1500)
	for i := range names {
		names[i] = fmt.Sprintf(`"s%d-%s"`, i, strings.Repeat("x", 50))
	}

	spec := func(verb string) string {
		return fmt.Sprintf(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":[%q],`+
			`"resourceNames":[%s]}],"subjects":[{"kind":"User","name":"jane"}]}]}`, verb, strings.Join(names, ","))
	}

	for name, tc := range map[string]struct {
		// taken is what somebody does to the ClusterRole before the template changes.
		taken func(*rbacv1.ClusterRole)
		// wrote is what is written at once, and goes what is once the authorizer knows of that.
		wrote, goes []string
	}{
		"as Ambit made it": {taken: func(*rbacv1.ClusterRole) {}, wrote: []string{"patch clusterroles"}},
		"without what keeps everybody from binding it": {
			taken: func(r *rbacv1.ClusterRole) { r.Rules = scope.WithoutGuard(r.Rules) },
			wrote: []string{"create clusterroles", "create rolebindings", "create rolebindings", "patch clusterroles"},
			goes:  []string{"delete rolebindings", "delete rolebindings", "delete clusterroles"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := templated(t)
			w.template(spec("get"))
			w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>","b>"]}`)
			w.reconcileTemplates()

			role := w.rolesOf("t")[0]
			w.Change(&role, func() { tc.taken(&role) })
			w.retemplate(spec("list"))
			w.clockSays(time.Now())
			is(w, "what is written", kindsOf(w.reconcileTemplates()), tc.wrote)
			w.clockSays(time.Now().Add(plan.Propagation))
			is(w, "what goes", kindsOf(w.reconcileTemplates()), tc.goes)
		})
	}
}
