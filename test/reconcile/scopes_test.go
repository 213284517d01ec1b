package reconcile_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const ops = "ops"

// most is how many calls may follow one another until one of them writes nothing.
const most = 8

// reconcile calls the reconciler of NamespaceScopes once.
func (w *world) reconcile() call {
	w.Helper()

	return w.answered(w.scopes, scope.NamespaceScopes.In(w.ns(ops)), func() {
		w.catchUp(w.scopes.Client, w.ns(ops), scopeKinds()...)
	})
}

// settle calls the reconciler until a call writes nothing, and returns that call, and all that the others wrote.
func (w *world) settle() (last call, wrote []string) {
	w.Helper()

	for range most {
		last = w.reconcile()
		if len(last.writes) == 0 {
			return last, wrote
		}

		wrote = append(wrote, last.writes...)
	}

	w.Fatalf("it does not come to rest: %q", wrote)

	return last, nil
}

// served begins a case beside the operator of most cases, in which a scope called scope is served.
func served(t *testing.T, spec string) *world {
	t.Helper()

	w := begin(t)
	w.common()
	w.scope(spec)
	w.settle()

	return w
}

// asks does something that a running manager has to hear of: it asks for a plan of the operator namespace.
func (w *world) asks(change func(w *world)) {
	w.Helper()
	w.asksFor(scope.NamespaceScopes.In(w.ns(ops)), change)
}

func (w *world) asksFor(key scope.Key, change func(w *world)) {
	w.Helper()
	w.asked.takeChange(key)
	change(w)

	if err := until(w.Context(), func() bool { return w.asked.takeChange(key) }); err != nil {
		w.Fatal("a running manager would not hear of it")
	}
}

// copies are what Ambit projected into a namespace for the operator namespace, in words, sorted: Roles by their source with their
// rules, and bindings by their source with what they bind to whom.
func (w *world) copies(short string) []string {
	w.Helper()

	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
		out      []string
	)

	ours := []client.ListOption{client.InNamespace(w.ns(short)), client.HasLabels{scope.LabelScope}}
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := w.client.List(w.Context(), list, ours...); err != nil {
			w.Fatal(err)
		}
	}

	named := map[string]string{}

	for i := range roles.Items {
		r := &roles.Items[i]
		named[r.Name] = sourceOf(r)
		out = append(out, fmt.Sprintf("Role %s: %s", sourceOf(r), words(r.Rules)))
	}

	for i := range bindings.Items {
		b := &bindings.Items[i]
		out = append(out, fmt.Sprintf("%s: %s %s to %s", sourceOf(b), b.RoleRef.Kind, cmp.Or(named[b.RoleRef.Name], b.RoleRef.Name),
			w.called(subjects(b.Subjects))))
	}

	slices.Sort(out)

	return w.short(out)
}

// sourceOf is the name of the object that a copy mirrors.
func sourceOf(obj client.Object) string {
	source := obj.GetAnnotations()[scope.AnnotationSource]

	return source[strings.LastIndex(source, "/")+1:]
}

func words(rules []rbacv1.PolicyRule) string {
	out := make([]string, 0, len(rules))

	for _, r := range rules {
		what := strings.Join(r.Verbs, ",") + " " + strings.Join(r.Resources, ",")
		if len(r.ResourceNames) > 0 {
			what += "/" + strings.Join(r.ResourceNames, ",")
		}

		out = append(out, what)
	}

	return strings.Join(out, "; ")
}

func subjects(all []rbacv1.Subject) string {
	out := make([]string, 0, len(all))
	for _, s := range all {
		out = append(out, strings.Trim(s.Namespace+"/"+s.Name, "/"))
	}

	slices.Sort(out)

	return strings.Join(out, " ")
}

// list is the watch list, with short names; "-" when there is none.
func (w *world) list() string {
	w.Helper()

	return w.listIn(operatorv1.DefaultConfigmapName)
}

func (w *world) listIn(name string) string {
	w.Helper()

	cm := &corev1.ConfigMap{}

	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, cm)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	list, found := cm.Data[scope.ListKey]
	if !found {
		return "-"
	}

	return w.called(list)
}

// scope makes a scope from JSON, in which namespaces have their short names in angle brackets.
func (w *world) scope(spec string) *operatorv1.NamespaceScope {
	w.Helper()

	return w.scopeCalled("scope", spec)
}

func (w *world) scopeCalled(name, spec string) *operatorv1.NamespaceScope {
	w.Helper()

	return w.ScopeCalled(w.ns(ops), name, w.spec(spec))
}

func (w *world) spec(text string) operatorv1.NamespaceScopeSpec {
	w.Helper()

	return decoded[operatorv1.NamespaceScopeSpec](w, text)
}

// decoded is a spec from JSON, in which namespaces have their short names in angle brackets.
func decoded[S any](w *world, text string) S {
	w.Helper()

	var out S
	if err := json.Unmarshal([]byte(w.long(text)), &out); err != nil {
		w.Fatalf("%s: %v", text, err)
	}

	return out
}

// long puts the names of namespaces where their short names are in angle brackets.
func (w *world) long(text string) string { return strings.ReplaceAll(text, ">", "-"+w.suffix) }

// status is that of a scope as it is now.
func (w *world) status(name string) *operatorv1.NamespaceScopeStatus {
	w.Helper()

	nss := &operatorv1.NamespaceScope{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, nss); err != nil {
		w.Fatal(err)
	}

	return &nss.Status
}

// condition shows a condition of a scope as "True Reconciled"; "-" when there is none.
func (w *world) condition(name, kind string) string {
	w.Helper()

	c := meta.FindStatusCondition(w.status(name).Conditions, kind)
	if c == nil {
		return "-"
	}

	return string(c.Status) + " " + c.Reason
}

// messageOn is what a condition of a scope says, and readyMessage what Ready of the scope called scope does.
func (w *world) messageOn(name, kind string) string {
	w.Helper()

	c := meta.FindStatusCondition(w.status(name).Conditions, kind)
	if c == nil {
		w.Fatalf("there is no condition %s", kind)
	}

	return w.called(c.Message)
}

func (w *world) readyMessage() string {
	w.Helper()

	return w.messageOn("scope", "Ready")
}

func (w *world) failed(name string) []string {
	w.Helper()

	out := []string{}
	for _, f := range w.status(name).FailedMembers {
		out = append(out, w.called(f.Namespace+" "+f.Reason))
	}

	return out
}

// object is a namespace, to change or remove.
func (w *world) object(short string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns(short)}}
}

// respec changes what the scope called scope asks for.
func (w *world) respec(spec string) {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "scope"}}
	w.Change(nss, func() { nss.Spec = w.spec(spec) })
}

// scopeThen makes a scope, which becomes another one where there is one; after each, settle is called.
func (w *world) scopeThen(spec, then string, settle func()) {
	w.Helper()
	w.scope(spec)
	settle()

	if then != "" {
		w.respec(then)
		settle()
	}
}
