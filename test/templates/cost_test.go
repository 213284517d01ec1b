package templates_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestCost: a changed rule is one write, whatever the number of namespaces, and an unchanged world costs nothing.
func TestCost(t *testing.T) {
	w := alone(t)
	ops := w.Namespace("ops")
	w.Make(testbed.Account(ops, "op"))

	var places []string
	for range 20 {
		places = append(places, w.Namespace("member"))
	}

	template := w.template("t", entry("one-", []string{"get secrets"}, ops+"/op"), entry("two-", []string{"get pods"}, ops+"/op"))

	w.says(template, yes, "TemplatingSuccessful")
	w.Rest(time.Now())

	began := time.Now()
	in := w.instance("i", "t", places...)
	created := in.ResourceVersion

	w.says(in, yes, "ScopingSuccessful")

	want := map[string]int{
		"create clusterroles": 2, "create rolebindings": 40, "patch scopetemplates/status": 1, "patch scopeinstances/status": 1,
	}
	bound := w.Rest(began)
	want["patch scopeinstances/status"] += w.late(in.Name, created)

	if !maps.Equal(bound, want) {
		t.Errorf("to bind: %v, want %v", bound, want)
	}

	began = time.Now()
	w.Change(template, func() { template.Spec.ClusterRoles[0].Rules = []rbacv1.PolicyRule{testbed.Rule("get services")} })
	w.May(ops, "op", places[0], "get services")
	w.says(template, yes, "TemplatingSuccessful")

	// The status of the template speaks of its new generation.
	want = map[string]int{"patch clusterroles": 1, "patch scopetemplates/status": 1}
	if got := w.Rest(began); !maps.Equal(got, want) {
		t.Errorf("to change a rule: %v, want %v", got, want)
	}

	began = time.Now()
	w.patch(template.DeepCopy(), `{"metadata":{"labels":{"touched":"yes"}}}`)
	w.label(places[0], "touched", "yes")

	if got := w.Rest(began); len(got) > 0 {
		t.Errorf("changes that change nothing: %v", got)
	}

	w.away()

	began = time.Now()
	w.back()
	w.Eventually("the new Ambit asks who it is", func() error {
		if asked := w.Count(began, func(*testbed.Request) bool { return true }); asked["create selfsubjectreviews"] == 0 {
			return fmt.Errorf("it asked for %v", asked)
		}

		return nil
	})

	asked := w.Rest(began)
	for what := range asked {
		if verb, _, _ := strings.Cut(what, " "); verb != "list" && verb != "get" {
			t.Errorf("after a restart: %s", what)
		}
	}
}

// late counts the statuses of an instance since a version of it that say that something is tried again: on a busy machine, an
// answer can take more than a second, and nothing waits for it as long.
func (w *world) late(name, since string) int {
	w.Helper()

	last := &operatorsv1alpha1.ScopeInstance{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: name}, last); err != nil {
		w.Fatal(err)
	}

	changes, err := w.Client.Watch(w.Context(), &operatorsv1alpha1.ScopeInstanceList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name), Raw: &metav1.ListOptions{ResourceVersion: since},
	})
	if err != nil {
		w.Fatal(err)
	}

	defer changes.Stop()

	late := 0

	for c := range changes.ResultChan() {
		in, is := c.Object.(*operatorsv1alpha1.ScopeInstance)
		if !is {
			w.Fatalf("the versions of %s since %s: %+v", name, since, c.Object)
		}

		if slices.ContainsFunc(in.Status.FailedNamespaces, func(f operatorv1.FailedMember) bool {
			return strings.Contains(f.Message, "it is tried again")
		}) {
			late++
		}

		if in.ResourceVersion == last.ResourceVersion {
			break
		}
	}

	return late
}

func TestEvents(t *testing.T) {
	w := begin(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))

	in := w.instance("i", "t", a, b)
	w.tells("ScopeInstance", "i", "Warning ScopeTemplateNotFound", w.name("t"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	w.tells("ScopeTemplate", "t", "Normal ClusterRolesCreated", "reader-")
	w.tells("ScopeInstance", "i", "Normal Bound", "bound in "+strings.Join(slices.Sorted(slices.Values([]string{a, b})), ", "))

	w.Change(in, func() { in.Spec.Namespaces = []string{a} })
	w.tells("ScopeInstance", "i", "Normal Unbound", "no longer bound in "+b)

	w.instance("wide", "t")
	w.tells("ScopeInstance", "wide", "Normal Bound", "bound in the whole cluster")

	w.Change(in, func() { in.Spec.Namespaces = []string{"missing-" + w.id} })
	w.tells("ScopeInstance", "i", "Warning ScopingFailed", "missing-"+w.id)

	w.Change(template, func() { template.Spec.ClusterRoles[0].Subjects[0].Namespace = "" })
	w.tells("ScopeTemplate", "t", "Warning TemplatingFailed", "needs a namespace")

	w.Change(template, func() { template.Spec.ClusterRoles = nil })
	w.tells("ScopeTemplate", "t", "Normal ClusterRolesDeleted", "reader-")
}

// TestEventsWithLongNames: the API server takes no event with more than 1024 bytes to tell, and what is told may have names of
// any length.
func TestEventsWithLongNames(t *testing.T) {
	w := begin(t)

	const many = 8

	var entries []operatorsv1alpha1.ClusterRoleTemplate
	for i := range many {
		entries = append(entries, entry(strconv.Itoa(i)+strings.Repeat("x", 190), []string{"get secrets"}, "nobody/nobody"))
	}

	w.template("long", entries...)
	w.instance("i", "long", w.Namespace("a"))
	w.tells("ScopeTemplate", "long", "Normal ClusterRolesCreated", "…")
}

// tells waits for an event about a resource.
func (w *world) tells(kind, name, what, words string) {
	w.Helper()
	w.Eventually(what, func() error {
		list := &eventsv1.EventList{}
		if err := w.Client.List(w.Context(), list, client.InNamespace("default")); err != nil {
			return err
		}

		var told []string

		for i := range list.Items {
			e := &list.Items[i]
			if e.Regarding.Kind != kind || e.Regarding.Name != w.name(name) {
				continue
			}

			if told = append(told, e.Type+" "+e.Reason+" "+e.Note); e.Type+" "+e.Reason == what && strings.Contains(e.Note, words) {
				return nil
			}
		}

		return fmt.Errorf("told so far: %q", told)
	})
}
