package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// templated begins a case about templates and instances, which are reconciled all together, and so come one after the other.
func templated(t *testing.T) *world {
	t.Helper()

	w := begin(t)
	w.single.Lock()
	t.Cleanup(w.single.Unlock)
	w.namespaces("a:team=red>", "b:team=red>,tier=gold>", "c:team=blue>")

	return w
}

// clockSays has the reconciler of templates go by a time, at which it stands still until the case ends.
func (w *world) clockSays(at time.Time) {
	w.templates.Now = func() time.Time { return at }
	w.Cleanup(func() { w.templates.Now = nil })
}

// reconcileTemplates calls the reconciler of ScopeTemplates and ScopeInstances until a call writes nothing, and once more after
// what was put off for a moment.
func (w *world) reconcileTemplates() []string {
	w.Helper()

	var wrote []string

	for range most {
		c := w.answered(w.templates, scope.TemplatesKey(), func() {
			w.catchUp(w.templates.Client, "", &operatorsv1alpha1.ScopeTemplateList{}, &operatorsv1alpha1.ScopeInstanceList{})
		})

		if len(c.writes) == 0 {
			return wrote
		}

		wrote = append(wrote, c.writes...)
	}

	w.Fatalf("it does not come to rest: %q", wrote)

	return nil
}

// makes creates a template or an instance from JSON, and has it go, with what was made for it, after the case.
func (w *world) makes(obj client.Object, name, spec string) {
	w.Helper()

	raw := fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s}`, w.ns(name), w.long(spec))
	if err := json.Unmarshal([]byte(raw), obj); err != nil {
		w.Fatalf("%s: %v", raw, err)
	}

	w.Make(obj)
	w.Cleanup(func() { w.clear(obj) })
}

// clear deletes an object, and lets the reconciler take away what was made for it: nobody collects garbage here.
func (w *world) clear(obj client.Object) {
	// The case's own context has ended.
	ctx := context.WithoutCancel(w.Context())

	if err := w.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		w.Errorf("deleting %s: %v", obj.GetName(), err)
	}

	if err := until(ctx, func() bool {
		return w.templates.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj) != nil
	}); err != nil {
		w.Error(err)
	}
}

func (w *world) template(spec string) {
	w.Helper()
	w.makes(&operatorsv1alpha1.ScopeTemplate{}, "t", spec)
}

func (w *world) instance(name, spec string) {
	w.Helper()
	w.makes(&operatorsv1alpha1.ScopeInstance{}, name, spec)
}

// scoped shows a condition of the instance, templatedAs that of the template.
func (w *world) scoped(name, kind string) string {
	w.Helper()

	in := &operatorsv1alpha1.ScopeInstance{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: w.ns(name)}, in); err != nil {
		w.Fatal(err)
	}

	return shown(meta.FindStatusCondition(in.Status.Conditions, kind))
}

func (w *world) templatedAs() string {
	w.Helper()

	in := &operatorsv1alpha1.ScopeTemplate{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: w.ns("t")}, in); err != nil {
		w.Fatal(err)
	}

	return shown(meta.FindStatusCondition(in.Status.Conditions, "Templated"))
}

func shown(c *metav1.Condition) string {
	if c == nil {
		return "-"
	}

	return string(c.Status) + " " + c.Reason
}

// bound are the bindings that were made for an instance, sorted: "a: to ops/op", and "*: " for the whole cluster; and roles the
// rules of the ClusterRoles that were made for the template.
func (w *world) bound(instance string) []string {
	w.Helper()

	var (
		bindings rbacv1.RoleBindingList
		whole    rbacv1.ClusterRoleBindingList
	)

	for _, list := range []client.ObjectList{&bindings, &whole} {
		if err := w.client.List(w.Context(), list, client.HasLabels{scope.LabelScope}); err != nil {
			w.Fatal(err)
		}
	}

	out, owner := []string{}, "ScopeInstance//"+w.ns(instance)
	note := func(obj client.Object, where, role string, to []rbacv1.Subject) {
		if !strings.HasSuffix(obj.GetAnnotations()[scope.AnnotationOwner], w.ns(instance)) {
			return
		}

		if len(obj.GetOwnerReferences()) != 1 || obj.GetOwnerReferences()[0].Name != w.ns(instance) {
			w.Errorf("%s has the owners %v, not %s", obj.GetName(), obj.GetOwnerReferences(), owner)
		}

		if !strings.HasPrefix(role, "r-") {
			w.Errorf("%s binds %s", obj.GetName(), role)
		}

		out = append(out, w.called(where+": "+subjects(to)))
	}

	for i := range bindings.Items {
		note(&bindings.Items[i], bindings.Items[i].Namespace, bindings.Items[i].RoleRef.Name, bindings.Items[i].Subjects)
	}

	for i := range whole.Items {
		note(&whole.Items[i], "*", whole.Items[i].RoleRef.Name, whole.Items[i].Subjects)
	}

	slices.Sort(out)

	return out
}

func (w *world) roles() []string {
	w.Helper()

	out := []string{}

	for _, r := range w.rolesOf("t") {
		// The first rule grants nothing, and keeps others from binding the role (N13).
		granted := slices.DeleteFunc(slices.Clone(r.Rules), func(rule rbacv1.PolicyRule) bool {
			return !slices.Contains(rule.Resources, "secrets") && !slices.Contains(rule.Resources, "nodes")
		})
		out = append(out, words(granted))
	}

	slices.Sort(out)

	return out
}

// rolesOf are the ClusterRoles that were made for a template.
func (w *world) rolesOf(template string) []rbacv1.ClusterRole {
	w.Helper()

	var all rbacv1.ClusterRoleList
	if err := w.client.List(w.Context(), &all, client.HasLabels{scope.LabelScope}); err != nil {
		w.Fatal(err)
	}

	return slices.DeleteFunc(all.Items, func(r rbacv1.ClusterRole) bool {
		return !strings.HasSuffix(r.Annotations[scope.AnnotationOwner], w.ns(template))
	})
}

const (
	reader = `{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}],` +
		`"subjects":[{"kind":"ServiceAccount","namespace":"ops","name":"op"}]}]}`
	successful = "True ScopingSuccessful"
)

// TestTemplates: what instances bind where, and what their conditions say.
func TestTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		template, instance string
		given              func(w *world)
		roles, bound       []string
		templated, scoped  string
	}{
		"without an instance there are no ClusterRoles": {template: reader, templated: "True TemplatingSuccessful"},
		"one binding for each namespace": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaces":["a>","c>"]}`,
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "c: ops/op"}, scoped: successful,
		},
		"a namespace that is named twice counts once": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaces":["a>","a>"]}`,
			roles: []string{"get secrets"}, bound: []string{"a: ops/op"}, scoped: successful,
		},
		"with no namespaces the whole cluster": {
			template: reader, instance: `{"scopeTemplateName":"t>"}`,
			roles: []string{"get secrets"}, bound: []string{"*: ops/op"}, scoped: successful,
		},
		"a selector": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaceSelector":{"matchLabels":{"team":"red>"}}}`,
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"}, scoped: successful,
		},
		"plain labels are a shorthand": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaceSelector":{"tier":"gold>"}}`,
			roles: []string{"get secrets"}, bound: []string{"b: ops/op"}, scoped: successful,
		},
		"names and a selector are a union": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaces":["c>"],"namespaceSelector":{"tier":"gold>"}}`,
			roles: []string{"get secrets"}, bound: []string{"b: ops/op", "c: ops/op"}, scoped: successful,
		},
		"an empty selector binds nothing and says so": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaceSelector":{}}`,
			roles: []string{"get secrets"}, scoped: "False ScopingFailed",
		},
		"a selector of both forms binds nothing, and names are served": {
			template: reader,
			instance: `{"scopeTemplateName":"t>","namespaces":["c>"],"namespaceSelector":{"x":"y","matchLabels":{"team":"red>"}}}`,
			roles:    []string{"get secrets"}, bound: []string{"c: ops/op"}, scoped: "False ScopingFailed",
		},
		"a selector that matches nothing binds nothing and says so": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaceSelector":{"team":"green>"}}`,
			roles: []string{"get secrets"}, scoped: "False ScopingFailed",
		},
		"labels never select system namespaces": {
			given:    func(w *world) { w.namespaces("kube:team=red>", "openshift:team=red>") },
			template: reader, instance: `{"scopeTemplateName":"t>","namespaceSelector":{"team":"red>"}}`,
			roles: []string{"get secrets"}, bound: []string{"a: ops/op", "b: ops/op"}, scoped: successful,
		},
		"a missing namespace is named, and the others are served": {
			template: reader, instance: `{"scopeTemplateName":"t>","namespaces":["a>","gone>"]}`,
			roles: []string{"get secrets"}, bound: []string{"a: ops/op"}, scoped: "False ScopingFailed",
		},
		"a template that is missing is named": {
			instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`, scoped: "False ScopeTemplateNotFound",
		},
		"a service account without a namespace is an error, and the others are served": {
			template: strings.Replace(reader, `"subjects":[`, `"subjects":[{"kind":"ServiceAccount","name":"lost"},`, 1),
			instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`,
			roles:    []string{"get secrets"}, bound: []string{"a: ops/op"},
			templated: "False TemplatingFailed", scoped: "False ScopingFailed",
		},
		"subjects of bindingTemplate are subjects too": {
			template: `{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}],` +
				`"bindingTemplate":{"subjects":[{"kind":"User","name":"jane"}]}}],` +
				`"bindingTemplate":{"subjects":[{"kind":"Group","name":"people"}]}}`,
			instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`,
			roles:    []string{"get secrets"}, bound: []string{"a: jane people"}, scoped: successful,
		},
		"two entries of one name are two ClusterRoles": {
			template: `{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}],` +
				`"subjects":[{"kind":"User","name":"jane"}]},{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["nodes"],` +
				`"verbs":["list"]}],"subjects":[{"kind":"User","name":"joe"}]}]}`,
			instance: `{"scopeTemplateName":"t>"}`,
			roles:    []string{"get secrets", "list nodes"}, bound: []string{"*: jane", "*: joe"}, scoped: successful,
		},
		"an entry without subjects has a ClusterRole and no binding": {
			template: `{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}]}`,
			instance: `{"scopeTemplateName":"t>","namespaces":["a>"]}`, roles: []string{"get secrets"}, scoped: successful,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := templated(t)

			if tc.given != nil {
				tc.given(w)
			}

			if tc.template != "" {
				w.template(tc.template)
			}

			if tc.instance != "" {
				w.instance("i", tc.instance)
			}

			w.reconcileTemplates()

			is(w, "ClusterRoles", w.roles(), slices.Concat([]string{}, tc.roles))
			is(w, "bindings", w.bound("i"), slices.Concat([]string{}, tc.bound))

			if tc.templated != "" {
				is(w, "Templated", w.templatedAs(), tc.templated)
			}

			if tc.scoped != "" {
				is(w, "Scoped", w.scoped("i", "Scoped"), tc.scoped)
			}
		})
	}
}

// TestTemplateWithoutSubjects: where nobody gets anything, the status does not count that as bound.
func TestTemplateWithoutSubjects(t *testing.T) {
	w := templated(t)
	w.template(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}]}`)
	w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>"]}`)
	w.reconcileTemplates()

	in := &operatorsv1alpha1.ScopeInstance{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.ns("i")}, in); err != nil {
		t.Fatal(err)
	}

	c := meta.FindStatusCondition(in.Status.Conditions, "Scoped")
	if in.Status.BoundNamespaces != 0 || c == nil || !strings.Contains(c.Message, "nothing is bound, because ScopeTemplate") {
		t.Errorf("%d namespaces are bound, and it says %+v", in.Status.BoundNamespaces, c)
	}
}
