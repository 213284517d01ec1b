package installs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// reaches waits until the status of a group has these target namespaces.
func (w *world) reaches(g *operatorsv1.OperatorGroup, want ...string) {
	w.Helper()

	want = slices.Sorted(slices.Values(want)) // What is the caller's stays as it is.

	w.Eventually(fmt.Sprintf("group %s reaches %q", g.Name, want), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		if got := g.Status.Namespaces; !slices.Equal(got, want) || g.Status.LastUpdated == nil {
			return fmt.Errorf("status is %+v", g.Status)
		}

		return nil
	})
}

// complains waits until a condition of a group says something.
func (w *world) complains(g *operatorsv1.OperatorGroup, condition string, status metav1.ConditionStatus, words string) {
	w.Helper()
	w.Eventually("group "+g.Name+" says "+condition, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		c := meta.FindStatusCondition(g.Status.Conditions, condition)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
			return fmt.Errorf("status is %+v", g.Status)
		}

		return nil
	})
}

// TestLabelsThatChange: namespaces join and leave as their labels say, and the operator is told of each only while it may work
// there.
func TestLabelsThatChange(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	first := w.Namespace("first", own+"=yes")
	g := w.group(own, selecting(`{"`+own+`":"yes"}`))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	toldRight := w.watchTold(op)
	second := w.Namespace("second", own+"=yes")
	w.May(own, "op", second, "get secrets")
	w.reaches(g, first, second)
	w.told(op, g)

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first}}
	w.Change(ns, func() { delete(ns.Labels, own) })
	w.MayNot(own, "op", first, "get secrets")
	w.reaches(g, second)
	w.told(op, g)
	w.succeeds(op)

	w.Eventually("it is told of a namespace only while it has permissions there", toldRight)
}

// TestTargetThatIsDeleted: an operator that begins anew would fail in a namespace that is gone, and serve none of the others. So
// it is told of it no longer, and told again when it is back.
func TestTargetThatIsDeleted(t *testing.T) {
	w := begin(t, "cluster")
	own, stays, goes := w.Namespace("own"), w.Namespace("stays"), w.Namespace("goes")
	w.group(own, targets(stays, goes))

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	names := func(want ...string) {
		t.Helper()

		slices.Sort(want)
		w.Eventually(fmt.Sprintf("the operator is told of %q", want), func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(op), op); err != nil {
				return err
			}

			told := map[string]string{operatorsv1.TargetsAnnotation: strings.Join(want, ",")}
			if err := has(op.Annotations, told); err != nil {
				return err
			}

			return w.podsTold(op, "op", told)
		})
	}

	names(stays, goes)
	w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: goes}})
	names(stays)
	w.Eventually("it is made again", func() error {
		return w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: goes}})
	})
	names(stays, goes)
	w.May(own, "op", goes, "get secrets")
}
