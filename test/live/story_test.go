package live_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// What a story may tell of a member.
const (
	granted    = "granted"
	named      = "the list names it"
	forgot     = "the list forgot it"
	tookIn     = "taken in"
	reconciled = "reconciled"
	letGo      = "the hook let go"
	revoked    = "revoked"
)

// story is what happened about one member, in the order of the cluster: each write has a resource version of its own.
type story struct {
	mu      sync.Mutex
	moments map[string][]uint64
}

// tell begins a story. What is there already is not part of it.
func (w *world) tell(member string) *story {
	w.Helper()

	s := &story{moments: map[string][]uint64{}}
	greetings := &unstructured.UnstructuredList{}
	greetings.SetGroupVersionKind(greetingKind)

	for _, of := range []struct {
		list      client.ObjectList
		namespace string
		reads     func(watch.EventType, client.Object) string
	}{
		{&rbacv1.RoleBindingList{}, member, ofBindings},
		{&corev1.ConfigMapList{}, w.ops, func(_ watch.EventType, o client.Object) string { return ofList(o, member) }},
		{&coordinationv1.LeaseList{}, w.ops, ofLease},
		{&corev1.ConfigMapList{}, member, ofResult},
		{greetings, member, ofGreeting},
	} {
		w.must(w.Client.List(w.Context(), of.list, client.InNamespace(of.namespace)))

		from := &client.ListOptions{
			Namespace: of.namespace, Raw: &metav1.ListOptions{ResourceVersion: of.list.GetResourceVersion()},
		}
		events, err := w.Client.Watch(w.Context(), of.list, from)
		w.must(err)

		context.AfterFunc(w.Context(), events.Stop)

		go s.follow(events, of.reads)
	}

	return s
}

func (s *story) follow(events watch.Interface, reads func(watch.EventType, client.Object) string) {
	for e := range events.ResultChan() {
		o, ok := e.Object.(client.Object)
		if !ok {
			continue
		}

		version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		if err != nil {
			continue
		}

		if what := reads(e.Type, o); what != "" {
			s.mu.Lock()
			s.moments[what] = append(s.moments[what], version)
			s.mu.Unlock()
		}
	}
}

func ofBindings(event watch.EventType, o client.Object) string {
	switch {
	case o.GetLabels()[scope.LabelScope] == "":
		return ""
	case event == watch.Added:
		return granted
	case event == watch.Deleted:
		return revoked
	}

	return ""
}

func ofList(o client.Object, member string) string {
	cm, ok := o.(*corev1.ConfigMap)
	if !ok || cm.Name != listName {
		return ""
	}

	if slices.Contains(strings.Split(cm.Data[scope.ListKey], ","), member) {
		return named
	}

	return forgot
}

func ofLease(_ watch.EventType, o client.Object) string {
	if o.GetLabels()[scope.LabelFollows] == "" {
		return ""
	}

	return tookIn
}

func ofResult(event watch.EventType, o client.Object) string {
	if o.GetName() != hello || event != watch.Added {
		return ""
	}

	return reconciled
}

func ofGreeting(event watch.EventType, o client.Object) string {
	if o.GetName() != hello || event != watch.Modified || slices.Contains(o.GetFinalizers(), finalizer) {
		return ""
	}

	return letGo
}

// inOrder says whether things happened one after the other: all of each before the first of the next.
func (s *story) inOrder(things ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	var before uint64

	for _, what := range things {
		moments := s.moments[what]
		if len(moments) == 0 {
			return fmt.Errorf("not yet: %s; what happened is %v", what, s.moments)
		}

		if first := slices.Min(moments); first <= before {
			return fmt.Errorf("%s came too early; what happened is %v", what, s.moments)
		}

		before = slices.Max(moments)
	}

	return nil
}

// begins says whether one thing happened for the first time before another did.
func (s *story) begins(what, other string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if first, then := s.moments[what], s.moments[other]; len(first) == 0 || len(then) > 0 && slices.Min(first) >= slices.Min(then) {
		return fmt.Errorf("%s came before %s; what happened is %v", other, what, s.moments)
	}

	return nil
}
