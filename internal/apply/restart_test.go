package apply_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestEvictionIsOfThePodThatWasSeen makes a pod again under its name between the plan and the eviction, as the controller of a
// StatefulSet may.
func TestEvictionIsOfThePodThatWasSeen(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	seen := b.run("reader-0")

	if err := b.client.Delete(t.Context(), seen, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}

	if o := b.evict(seen); o.Err != nil {
		t.Errorf("a pod that is gone is no failure: %v", o.Err)
	}

	again := b.run("reader-0")
	if again.UID == seen.UID {
		t.Fatal("it is the same pod")
	}

	if o := b.evict(seen); o.Err != nil {
		t.Errorf("a pod that made way for another is no failure: %v", o.Err)
	}

	live := &corev1.Pod{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(again), live); err != nil || live.DeletionTimestamp != nil {
		t.Fatalf("it began after the plan, and was evicted: %v", err)
	}

	if o := b.evict(again); o.Err != nil {
		t.Errorf("the pod that is meant: %v", o.Err)
	}

	b.goes(again)
}

// TestRestartNamesTheListThatWasWritten: a reader that was due for the list before begins with the one that the same run wrote.
func TestRestartNamesTheListThatWasWritten(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	labels := map[string]string{"name": "reader"}
	reader := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: "reader"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/operator:1"}}},
			},
		},
	}

	if err := b.client.Create(t.Context(), reader); err != nil {
		t.Fatal(err)
	}

	p := &plan.Plan{
		Key: scope.NamespaceScopes.In(b.member), Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}},
		Lists: []plan.ListPlan{{Name: "list", Scopes: []int{0}}},
		Restarts: []plan.Restart{{
			List: "list", Reads: map[string]string{"list": "before", "other": "unchanged"}, Scopes: []int{0},
			Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: reader.Name},
		}},
	}

	out := b.applier.ApplyWith(t.Context(), b.written(p), []apply.Identity{writer.Own()}, writer.Own())
	if out.Lists[0].Result != apply.Created || out.Restarts[0].Err != nil {
		t.Fatalf("got %+v, %+v", out.Lists, out.Restarts)
	}

	list := &corev1.ConfigMap{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.member, Name: "list"}, list); err != nil {
		t.Fatal(err)
	}

	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(reader), reader); err != nil {
		t.Fatal(err)
	}

	begins := map[string]string{"list": list.Annotations[scope.AnnotationListHash], "other": "unchanged"}
	if got := reader.Spec.Template.Annotations[scope.AnnotationListHash]; got != plan.ResolveHash(begins, nil) {
		t.Errorf("the reader is annotated with %q, and reads %q", got, plan.ResolveHash(begins, nil))
	}
}

// run makes a pod whose containers run, for all that the API server knows. No scheduler takes it: the node that a test cluster
// simulates ends pods by their names, after the API server has, and so may end the next one of the name.
func (b *bench) run(name string) *corev1.Pod {
	b.Helper()

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:                 "none",
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{{Name: "main", Image: "registry.example.com/operator:1"}},
		},
	}
	err := b.client.Create(b.Context(), pod)
	// Kubernetes makes the account of pods that name none in its own time.
	for deadline := time.Now().Add(time.Minute); apierrors.IsForbidden(err) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)

		err = b.client.Create(b.Context(), pod)
	}

	if err != nil {
		b.Fatal(err)
	}

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Running"}}`))
	if err := b.client.Status().Patch(b.Context(), pod, patch); err != nil {
		b.Fatal(err)
	}

	return pod
}

func (b *bench) evict(pod *corev1.Pod) *apply.WriteOutcome {
	b.Helper()

	p := &plan.Plan{
		Key: scope.NamespaceScopes.In(b.member), Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}},
		Restarts: []plan.Restart{{Scopes: []int{0}, Evict: []facts.PodRef{{Name: pod.Name, UID: pod.UID}}}},
	}

	return &b.applier.ApplyWith(b.Context(), b.written(p), []apply.Identity{writer.Own()}, writer.Own()).Restarts[0]
}

func (b *bench) goes(pod *corev1.Pod) {
	b.Helper()

	var err error

	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		live := &corev1.Pod{}
		if err = b.client.Get(b.Context(), client.ObjectKeyFromObject(pod), live); apierrors.IsNotFound(err) {
			return
		}

		err = fmt.Errorf("deleted at %v (%w)", live.DeletionTimestamp, err)
	}

	b.Errorf("pod %s is not evicted: %v", pod.Name, err)
}
