package predict_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// follows has the pod of the world's operator say which list it serves.
func (w *world) follows(list, takenIn string) {
	w.objects = append(w.objects, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: scope.FollowerLease("2"), UID: "6", Labels: map[string]string{scope.LabelFollows: scope.Follows},
		Annotations:     map[string]string{scope.AnnotationFollowed: list, scope.AnnotationTakenIn: scope.TakenIn(takenIn)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "op-1", UID: "2"}},
	}})
}

// TestFollowersAreNotRestarted: an operator that follows its list takes in what a plan writes there, like the one that runs does,
// and is not restarted, nor holds permissions in a namespace that leaves for longer than that takes.
func TestFollowersAreNotRestarted(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		follows  func(w *world)
		restarts int
		tookIn   bool
	}{
		"one that does not follow restarts":  {func(*world) {}, 1, false},
		"one that follows does not":          {func(w *world) { w.follows("list", "old,ops") }, 0, true},
		"one that follows another list does": {func(w *world) { w.follows("other", "") }, 1, false},
	} {
		w := newWorld(t, "a")
		w.manager.FollowGrace = plan.DefaultFollowGrace
		tc.follows(w)

		in, _ := w.begin()

		out := predicted(w, in)
		if len(out.Lists) != 1 || out.Lists[0].After != "a,ops" || len(out.Restarts) != tc.restarts {
			t.Errorf("%s: lists %+v, restarts %+v", reason, out.Lists, out.Restarts)
		}

		if in.TookIn != tc.tookIn {
			t.Errorf("%s: taken in: %v", reason, in.TookIn)
		}
	}
}

// TestFollowersOfAListThatGoes: the same operator takes in that its list is gone, and is not evicted for that.
func TestFollowersOfAListThatGoes(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		follows func(w *world)
		evicted int
	}{
		"one that does not follow is evicted": {func(*world) {}, 1},
		"one that follows is not":             {func(w *world) { w.follows("list", "old,ops") }, 0},
	} {
		w := newWorld(t, "a")
		w.manager.FollowGrace = plan.DefaultFollowGrace
		w.scope.DeletionTimestamp = &metav1.Time{Time: w.now.Add(-time.Second)}
		tc.follows(w)

		for _, obj := range w.objects {
			delete(obj.GetAnnotations(), scope.AnnotationRestarted) // Nothing has to wait for another restart.
		}

		if out := w.predict(); len(out.Lists) != 1 || len(out.Restarts) != tc.evicted {
			t.Errorf("%s: lists %+v, restarts %+v", reason, out.Lists, out.Restarts)
		}
	}
}
