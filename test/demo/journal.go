package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// journal notes in which order things happened. Every write to etcd has a revision of its own, which is the object's
// resource version; comparing those needs no clock and no luck.
type journal struct {
	mu      sync.Mutex
	entries []entry
	// told is what was last noted of an object, so that only differences are.
	told map[string]string
}

// entry is one write. what says what it did, such as "granted in cloudpak1".
type entry struct {
	revision uint64
	what     string
	object   string
}

// keep watches projected objects, the watch list and the operators, until the context ends.
func keep(ctx context.Context, w *world) (*journal, error) {
	j := &journal{told: map[string]string{}}
	projected := client.HasLabels{scope.LabelScope}

	for _, what := range []struct {
		list   client.ObjectList
		option client.ListOption
		note   func(watch.Event) (what, object string)
	}{
		{&rbacv1.RoleList{}, projected, j.projected},
		{&rbacv1.RoleBindingList{}, projected, j.projected},
		{&corev1.ConfigMapList{}, client.InNamespace(ops), j.list},
		{&corev1.ConfigMapList{}, client.InNamespace(liveOps), j.list},
		{&appsv1.DeploymentList{}, client.InNamespace(ops), j.restart},
	} {
		events, err := w.Watch(ctx, what.list, what.option)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", what.list, err)
		}

		go j.follow(events, what.note)
	}

	return j, nil
}

func (j *journal) follow(events watch.Interface, note func(watch.Event) (what, object string)) {
	for e := range events.ResultChan() {
		object, ok := e.Object.(client.Object)
		if !ok {
			continue
		}

		revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		if err != nil {
			continue
		}

		j.mu.Lock()

		if what, name := note(e); what != "" {
			j.entries = append(j.entries, entry{revision, what, name})
		}

		j.mu.Unlock()
	}
}

func (j *journal) projected(e watch.Event) (what, object string) {
	var name, rules string

	switch o := e.Object.(type) {
	case *rbacv1.Role:
		name, rules = "Role "+o.Namespace+"/"+o.Name, rulesText(o.Rules)
	case *rbacv1.RoleBinding:
		name = "RoleBinding " + o.Namespace + "/" + o.Name
	default:
		return "", ""
	}

	namespace := e.Object.(client.Object).GetNamespace()

	switch e.Type {
	case watch.Added:
		return granted(namespace), name
	case watch.Deleted:
		return revoked(namespace), name
	case watch.Modified:
		return "changed: " + rules, name
	case watch.Bookmark, watch.Error:
	}

	return "", ""
}

func granted(namespace string) string { return "granted in " + namespace }

func revoked(namespace string) string { return "revoked in " + namespace }

func (j *journal) list(e watch.Event) (what, object string) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok || cm.Name != configMap {
		return "", ""
	}

	value := cm.Data[scope.ListKey]
	if e.Type == watch.Deleted {
		value = noList
	}

	return j.difference("ConfigMap "+cm.Namespace+"/"+cm.Name, listed(value))
}

func listed(value string) string { return "list: " + value }

func (j *journal) restart(e watch.Event) (what, object string) {
	d, ok := e.Object.(*appsv1.Deployment)
	if !ok || d.Spec.Template.Annotations[scope.AnnotationListHash] == "" {
		return "", ""
	}

	what, object = j.difference("Deployment "+d.Name, d.Spec.Template.Annotations[scope.AnnotationListHash])
	if what != "" {
		what = restarted
	}

	return what, object
}

const restarted = "restarted"

func (j *journal) difference(object, now string) (what, name string) {
	if j.told[object] == now {
		return "", ""
	}

	j.told[object] = now

	return now, object
}

// span returns the first and last revision, after a given one, at which something happened, and how often it did.
func (j *journal) span(after uint64, what string) (first, last uint64, count int) {
	j.mu.Lock()
	defer j.mu.Unlock()

	for _, e := range j.entries {
		if e.revision <= after || e.what != what {
			continue
		}

		if count == 0 || e.revision < first {
			first = e.revision
		}

		last = max(last, e.revision)
		count++
	}

	return first, last, count
}

// story tells what happened after a revision, one line for each thing, in the order in which each was complete.
func (j *journal) story(after uint64) string {
	j.mu.Lock()

	var things []string

	for _, e := range slices.SortedFunc(slices.Values(j.entries), func(a, b entry) int {
		return int(a.revision) - int(b.revision)
	}) {
		if e.revision > after && !slices.Contains(things, e.what) {
			things = append(things, e.what)
		}
	}

	j.mu.Unlock()

	lines := make([]string, 0, len(things))

	for _, what := range things {
		first, last, count := j.span(after, what)
		lines = append(lines, fmt.Sprintf("revision %-10s %s", revisions(first, last), times(count, what)))
	}

	return strings.Join(lines, "\n")
}

func revisions(first, last uint64) string {
	if first == last {
		return strconv.FormatUint(first, 10)
	}

	return fmt.Sprintf("%d to %d", first, last)
}

func times(n int, what string) string {
	if n == 1 {
		return what
	}

	return fmt.Sprintf("%s (%d objects)", what, n)
}
