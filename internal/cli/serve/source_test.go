package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/follow"
	"github.com/ambit-k8s/ambit/internal/page"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// sourceOf answers from a client, for somebody who may see all.
func sourceOf(built client.WithWatch) *pageSource {
	return &pageSource{gate: follow.NewGate(interceptor.NewClient(built, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			if review, is := obj.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true

				return nil
			}

			return to.Create(ctx, obj, options...)
		},
	}))}
}

// eventsOf are the events of a scope in a cluster that has some, for somebody who may see all.
func eventsOf(t *testing.T, scope string, events ...client.Object) []page.Event {
	t.Helper()

	mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)
	source := sourceOf(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).WithObjects(events...).
		WithIndex(&corev1.Event{}, "involvedObject.kind", by(func(about *corev1.ObjectReference) string { return about.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", by(func(about *corev1.ObjectReference) string { return about.Name })).
		Build())

	out, err := source.Events(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// TestOperatorsOfNoNamespace: the page says of a namespace that does not exist that it is not there, as ambit operators does.
func TestOperatorsOfNoNamespace(t *testing.T) {
	t.Parallel()

	known, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	mapper := testrestmapper.TestOnlyStaticRESTMapper(known)
	source := sourceOf(fake.NewClientBuilder().WithScheme(known).WithRESTMapper(mapper).Build())
	source.options.AmbitNamespace, source.options.ErrOut = reading.DefaultAmbitNamespace, terminal.NewWriter(nil)

	_, err = source.Operators(t.Context(), "gone")
	if !errors.Is(err, page.ErrNotThere) || !strings.Contains(err.Error(), "namespace gone does not exist; kubectl get namespaces") {
		t.Error(err)
	}
}

// by has events found by what they are about.
func by(part func(*corev1.ObjectReference) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		e, _ := obj.(*corev1.Event)

		return []string{part(&e.InvolvedObject)}
	}
}

// event is one about the scope ops/s, as the manager's recorder writes it.
func event(reason string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s." + reason},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "operator.ibm.com/v1", Kind: "NamespaceScope", Namespace: "ops", Name: "s",
		},
		Reason: reason, EventTime: metav1.NewMicroTime(at),
	}
}

// TestRepeatedEventsComeFirst holds that an event that was repeated has the time of the last repetition, and their number: the
// manager's recorder keeps both in the series alone, other recorders in fields of the event itself.
func TestRepeatedEventsComeFirst(t *testing.T) {
	t.Parallel()

	noon := time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	repeated, once := event("Repeated", noon), event("Once", noon.Add(time.Minute))
	repeated.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(noon.Add(time.Hour))}

	old := event("Old", time.Time{})
	old.LastTimestamp, old.Count = metav1.NewTime(noon.Add(2*time.Minute)), 3

	got := eventsOf(t, "NamespaceScope ops/s", repeated, once, old)

	for i := range got {
		got[i].Time = got[i].Time.UTC()
	}

	want := []page.Event{
		{Time: noon.Add(time.Hour), Reason: "Repeated", Count: 7},
		{Time: noon.Add(2 * time.Minute), Reason: "Old", Count: 3},
		{Time: noon.Add(time.Minute), Reason: "Once"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
}

// TestEventsOfTheOtherGroupAreLeftOut holds that of two scopes of one name, in both groups, each has its own events only.
func TestEventsOfTheOtherGroupAreLeftOut(t *testing.T) {
	t.Parallel()

	usual, legacy := event("Usual", time.Now()), event("Legacy", time.Now())
	legacy.InvolvedObject.APIVersion = "namespacescope.ibm.com/v1alpha1"

	for scope, want := range map[string]string{
		"NamespaceScope ops/s": usual.Reason, "NamespaceScope.namespacescope.ibm.com ops/s": legacy.Reason,
	} {
		if got := eventsOf(t, scope, usual.DeepCopy(), legacy.DeepCopy()); len(got) != 1 || got[0].Reason != want {
			t.Errorf("the events of %s are %v, want %s alone", scope, got, want)
		}
	}
}

// TestEventsOfScopesWithoutNamespace holds that events of what has no namespace are found in the one where Kubernetes keeps them.
func TestEventsOfScopesWithoutNamespace(t *testing.T) {
	t.Parallel()

	e := event("Everywhere", time.Now())
	e.Namespace = metav1.NamespaceDefault
	e.InvolvedObject = corev1.ObjectReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ScopeInstance", Name: "s"}

	if got := eventsOf(t, "ScopeInstance s", e); len(got) != 1 {
		t.Errorf("the events are %v, want one", got)
	}
}
