package reconcile_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// seen is what a case looks at after Reconcile came to rest.
type seen struct {
	// list is the watch list, ready the condition Ready of the scope called scope, and failed its failed members.
	list, ready string
	failed      []string
	// selected is the condition NamespacesSelected, where the case is about it.
	selected string
	// copies are those in the namespaces that matter to the case; nil where it is not about them.
	copies map[string][]string
}

func (w *world) sees(want seen) {
	w.Helper()
	is(w, "watch list", w.list(), want.list)
	is(w, "Ready", w.condition("scope", "Ready"), want.ready)
	is(w, "failed members", w.failed("scope"), want.failed)
	w.speaksOfNow("scope")

	if want.selected != "" {
		is(w, "NamespacesSelected", w.condition("scope", "NamespacesSelected"), want.selected)
	}

	for namespace, copies := range want.copies {
		is(w, "copies in "+namespace, w.copies(namespace), copies)
	}
}

// speaksOfNow fails the case where the status of a scope is about another generation, or its lists are not sorted.
func (w *world) speaksOfNow(name string) {
	w.Helper()

	nss := &operatorv1.NamespaceScope{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, nss); err != nil {
		w.Fatal(err)
	}

	is(w, "observedGeneration", nss.Status.ObservedGeneration, nss.Generation)

	var conditions, failed []string

	for _, c := range nss.Status.Conditions {
		conditions = append(conditions, c.Type)
		is(w, "observedGeneration of "+c.Type, c.ObservedGeneration, nss.Generation)
	}

	for _, f := range nss.Status.FailedMembers {
		failed = append(failed, f.Namespace)
	}

	for what, list := range map[string][]string{
		"conditions": conditions, "failedMembers": failed, "validatedMembers": nss.Status.ValidatedMembers,
		"unprojectedRoles": nss.Status.UnprojectedRoles,
	} {
		if !slices.IsSorted(list) {
			w.Errorf("%s are not sorted: %q", what, list)
		}
	}
}

// one is what the operator of most cases has in a member.
var one = []string{"Role op-role: get secrets", "op-role: Role op-role to ops/op"}

// common makes the operator namespace with an operator that may read Secrets, and three namespaces.
func (w *world) common() {
	w.Helper()
	w.namespaces("ops", "a:team=red>", "b:team=red>,tier=gold>", "c:team=blue>")
	w.watch(w.ns(ops))
	w.operator("op", "get secrets")
}

const reconciled = "True Reconciled"

// TestMembers: own namespace ∪ namespaceMembers ∪ selected namespaces.
func TestMembers(t *testing.T) {
	t.Parallel()

	none := []string{}

	for name, tc := range map[string]struct {
		spec  string
		given func(w *world)
		want  seen
	}{
		"the scope's own namespace is always a member": {
			spec: `{}`, want: seen{list: "ops", ready: reconciled, copies: map[string][]string{"ops": none, "a": none}},
		},
		"a named namespace is a member": {
			spec: `{"namespaceMembers":["a>"]}`,
			want: seen{list: "a,ops", ready: reconciled, copies: map[string][]string{"a": one, "b": none, "ops": none}},
		},
		"the own namespace may be named and counts once": {
			spec: `{"namespaceMembers":["ops>","a>"]}`,
			want: seen{list: "a,ops", ready: reconciled, copies: map[string][]string{"ops": none}},
		},
		"duplicates count once": {
			spec: `{"namespaceMembers":["b>","a>","b>","a>"]}`, want: seen{list: "a,b,ops", ready: reconciled},
		},
		"a missing namespace is left out and reported": {
			spec: `{"namespaceMembers":["a>","gone>"]}`,
			want: seen{list: "a,ops", ready: "False MembersFailed", failed: []string{"gone NamespaceNotFound"},
				copies: map[string][]string{"a": one}},
		},
		"a terminating namespace is left out and reported": {
			given: func(w *world) { w.Remove(w.object("b")) },
			spec:  `{"namespaceMembers":["a>","b>"]}`,
			want: seen{list: "a,ops", ready: "False MembersFailed", failed: []string{"b NamespaceTerminating"},
				copies: map[string][]string{"b": none}},
		},
		"a selector adds the namespaces whose labels match": {
			spec: `{"namespaceSelector":{"matchLabels":{"team":"red>"}}}`,
			want: seen{list: "a,b,ops", ready: reconciled, selected: "True Selected", copies: map[string][]string{"a": one, "c": none}},
		},
		"plain labels are a shorthand for matchLabels": {
			spec: `{"namespaceSelector":{"team":"red>","tier":"gold>"}}`,
			want: seen{list: "b,ops", ready: reconciled, selected: "True Selected"},
		},
		"matchExpressions select": {
			spec: `{"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"In","values":["red>","blue>"]},` +
				`{"key":"tier","operator":"DoesNotExist"}]}}`,
			want: seen{list: "a,c,ops", ready: reconciled, selected: "True Selected"},
		},
		"named and selected namespaces are a union": {
			spec: `{"namespaceMembers":["c>","a>"],"namespaceSelector":{"tier":"gold>"}}`,
			want: seen{list: "a,b,c,ops", ready: reconciled},
		},
		"an empty selector selects nothing and says so": {
			spec: `{"namespaceMembers":["c>"],"namespaceSelector":{}}`,
			want: seen{list: "c,ops", ready: "False InvalidSpec", selected: "False InvalidSelector"},
		},
		"empty matchLabels select nothing and say so": {
			spec: `{"namespaceMembers":["c>"],"namespaceSelector":{"matchLabels":{}}}`,
			want: seen{list: "c,ops", ready: "False InvalidSpec", selected: "False InvalidSelector"},
		},
		"a label that is no string selects nothing and says so": {
			spec: `{"namespaceMembers":["c>"],"namespaceSelector":{"cool.io/prod":1}}`,
			want: seen{list: "c,ops", ready: "False InvalidSpec", selected: "False InvalidSelector"},
		},
		"a selector of both forms selects nothing, and named members are served": {
			spec: `{"namespaceMembers":["c>"],"namespaceSelector":{"team":"red>","matchLabels":{"tier":"gold>"}}}`,
			want: seen{list: "c,ops", ready: "False InvalidSpec", selected: "False InvalidSelector",
				copies: map[string][]string{"c": one, "a": none}},
		},
		"an operator that is none selects nothing and says so": {
			spec: `{"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Like","values":["red"]}]}}`,
			want: seen{list: "ops", ready: "False InvalidSpec", selected: "False InvalidSelector"},
		},
		"a selector that matches nothing says so": {
			spec: `{"namespaceSelector":{"team":"green>"}}`,
			want: seen{list: "ops", ready: reconciled, selected: "False NothingSelected"},
		},
		"labels never select kube-* and openshift-*": {
			given: func(w *world) { w.namespaces("kube:team=red>", "openshift:team=red>") },
			spec:  `{"namespaceSelector":{"team":"red>"}}`,
			want:  seen{list: "a,b,ops", ready: reconciled, copies: map[string][]string{"kube": none, "openshift": none}},
		},
		"a system namespace that is named is a member": {
			given: func(w *world) { w.namespaces("kube:team=red>", "openshift:team=red>") },
			spec:  `{"namespaceMembers":["kube>","openshift>"],"namespaceSelector":{"team":"red>"}}`,
			want: seen{list: "a,b,kube,openshift,ops", ready: reconciled,
				copies: map[string][]string{"kube": one, "openshift": one}},
		},
		"labels never select Ambit's own namespace": {
			given: func(w *world) {
				own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ambitNamespace}}
				w.Change(own, func() { own.Labels[w.ns("team")] = "red" })
				w.namespaces("d:team>=red")
			},
			spec: `{"namespaceSelector":{"team>":"red"}}`,
			want: seen{list: "d,ops", ready: reconciled, selected: "True Selected"},
		},
		"what fails is sorted": {
			spec: `{"namespaceMembers":["y>","a>","x>","z>"]}`,
			want: seen{list: "a,ops", ready: "False MembersFailed", failed: []string{
				"x NamespaceNotFound", "y NamespaceNotFound", "z NamespaceNotFound",
			}},
		},
		"a selected terminating namespace is left out and reported": {
			given: func(w *world) { w.Remove(w.object("b")) },
			spec:  `{"namespaceSelector":{"team":"red>"}}`,
			want:  seen{list: "a,ops", ready: "False MembersFailed", failed: []string{"b NamespaceTerminating"}},
		},
		"the own namespace that is selected counts once": {
			given: func(w *world) { own := w.object(ops); w.Change(own, func() { own.Labels["team"] = w.ns("red") }) },
			spec:  `{"namespaceSelector":{"team":"red>"}}`,
			want:  seen{list: "a,b,ops", ready: reconciled, copies: map[string][]string{"ops": none}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			if tc.given != nil {
				tc.given(w)
			}

			w.scope(tc.spec)
			w.settle()

			if tc.want.failed == nil {
				tc.want.failed = none
			}

			w.sees(tc.want)
		})
	}
}

// TestMembersFollow: what changes in the cluster is taken up by the next call.
func TestMembersFollow(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		spec    string
		change  func(w *world)
		before  string
		after   string
		members map[string][]string
		// selected and ready are the conditions NamespacesSelected and Ready afterwards, where the case is about them.
		selected, ready string
	}{
		"a missing namespace is picked up once it exists": {
			spec: `{"namespaceMembers":["d>"]}`, change: func(w *world) { w.namespaces("d") },
			before: "ops", after: "d,ops", members: map[string][]string{"d": one},
		},
		"a label that appears adds a member": {
			spec:   `{"namespaceSelector":{"team":"red>"}}`,
			change: func(w *world) { c := w.object("c"); w.Change(c, func() { c.Labels["team"] = w.ns("red") }) },
			before: "a,b,ops", after: "a,b,c,ops", members: map[string][]string{"c": one},
		},
		"a label that goes takes the member": {
			spec:   `{"namespaceSelector":{"team":"red>"}}`,
			change: func(w *world) { a := w.object("a"); w.Change(a, func() { delete(a.Labels, "team") }) },
			before: "a,b,ops", after: "b,ops", members: map[string][]string{"a": {}, "b": one},
		},
		"a namespace that is created with the label is selected": {
			spec: `{"namespaceSelector":{"tier":"gold>"}}`, change: func(w *world) { w.namespaces("d:tier=gold>") },
			before: "b,ops", after: "b,d,ops", members: map[string][]string{"d": one},
		},
		"a name that is added adds a member": {
			spec: `{"namespaceMembers":["a>"]}`, change: func(w *world) { w.respec(`{"namespaceMembers":["a>","c>"]}`) },
			before: "a,ops", after: "a,c,ops", members: map[string][]string{"c": one},
		},
		"a name that is removed takes the member": {
			spec: `{"namespaceMembers":["a>","c>"]}`, change: func(w *world) { w.respec(`{"namespaceMembers":["a>"]}`) },
			before: "a,c,ops", after: "a,ops", members: map[string][]string{"a": one, "c": {}},
		},
		"a named member that loses its label stays": {
			spec:   `{"namespaceMembers":["a>"],"namespaceSelector":{"team":"red>"}}`,
			change: func(w *world) { a := w.object("a"); w.Change(a, func() { delete(a.Labels, "team") }) },
			before: "a,b,ops", after: "a,b,ops", members: map[string][]string{"a": one},
		},
		"a selector that goes takes what it selected, and its condition": {
			spec:   `{"namespaceMembers":["c>"],"namespaceSelector":{"team":"red>"}}`,
			change: func(w *world) { w.respec(`{"namespaceMembers":["c>"]}`) },
			before: "a,b,c,ops", after: "c,ops", members: map[string][]string{"a": {}, "c": one}, selected: "-",
		},
		"an unreadable selector that goes": {
			spec:   `{"namespaceMembers":["c>"],"namespaceSelector":{}}`,
			change: func(w *world) { w.respec(`{"namespaceMembers":["c>"]}`) },
			before: "c,ops", after: "c,ops", members: map[string][]string{"c": one}, selected: "-", ready: reconciled,
		},
		"a label that an expression asks for": {
			spec:   `{"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"In","values":["red>","green>"]}]}}`,
			change: func(w *world) { c := w.object("c"); w.Change(c, func() { c.Labels["team"] = w.ns("green") }) },
			before: "a,b,ops", after: "a,b,c,ops", members: map[string][]string{"c": one},
		},
		"a member that is being deleted": {
			spec: `{"namespaceMembers":["a>","b>"]}`, change: func(w *world) { w.Remove(w.object("a")) },
			before: "a,b,ops", after: "b,ops", members: map[string][]string{"b": one},
		},
		"a selector that becomes unreadable takes what it selected": {
			spec: `{"namespaceMembers":["c>"],"namespaceSelector":{"team":"red>"}}`,
			change: func(w *world) {
				w.respec(`{"namespaceMembers":["c>"],"namespaceSelector":{"team":"red>","matchLabels":{"x":"y"}}}`)
			},
			before: "a,b,c,ops", after: "c,ops", members: map[string][]string{"a": {}, "c": one},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, tc.spec)
			is(w, "watch list before", w.list(), tc.before)

			w.asks(tc.change)
			w.settle()
			is(w, "watch list after", w.list(), tc.after)

			if tc.selected != "" {
				is(w, "NamespacesSelected", w.condition("scope", "NamespacesSelected"), tc.selected)
			}

			if tc.ready != "" {
				is(w, "Ready", w.condition("scope", "Ready"), tc.ready)
			}

			for namespace, copies := range tc.members {
				is(w, "copies in "+namespace, w.copies(namespace), copies)
			}
		})
	}
}
