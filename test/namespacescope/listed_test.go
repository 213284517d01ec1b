package namespacescope_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func TestMemberRefusedForOneOperatorNamespaceIsListedForAnother(t *testing.T) {
	w := begin(t)
	one, two := w.namespace("home"), w.namespace("home")
	refused := w.namespace("refused", refusesRoles)
	w.operator(one, "op")
	w.operator(two, "op")
	w.grant(one, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	w.reports(w.scope(one, "scope", members(refused)), "Ready", metav1.ConditionFalse, "MembersFailed")
	w.ready(w.scope(two, "scope", members(refused)))
	w.lists(one, defaultList, one)
	w.lists(two, defaultList, two, refused)
}

// Scopes that share a list share its readers, so a member has to be in order for both.
func TestScopeWhoseMemberIsHeldBackByAnotherIsNotReady(t *testing.T) {
	w := begin(t)
	ops, refused := w.namespace("home"), w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.untilRefusing(refused)

	// Only the first scope projects what is refused.
	w.create(serviceAccount(ops, "extra"))
	w.create(role(ops, "refused-role", "get pods"), binding(ops, "extra", "Role", "refused-role", subject(ops, "extra")))

	s := members(refused)
	s.ServiceAccountMembers = []string{"extra"}
	first := w.scope(ops, "first", s)
	w.reports(first, "Ready", metav1.ConditionFalse, "MembersFailed")

	second := w.scope(ops, "second", members(refused))
	w.may(ops, "op", refused, "get secrets")
	w.lists(ops, defaultList, ops)

	w.eventually("the second scope says that its member is not in the list", func() error {
		w.mustGet(second)

		if meta.IsStatusConditionTrue(second.Status.Conditions, "Ready") || len(second.Status.Conditions) == 0 {
			return fmt.Errorf("status %+v", second.Status)
		}

		return nil
	})

	w.allowRoles(refused, first)
	w.ready(first)
	w.ready(second)
	w.lists(ops, defaultList, ops, refused)
}

// A member that is in the list stays there whatever somebody does to the ConfigMap, and one that is held back is not let
// in by writing its name into it.
func TestEditsOfTheListChangeNothingAboutMembersWithRefusedRoles(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		do     func(w *world, ops string, listed, heldBack string)
	}{
		"Deleted": {"the list is written again as it was", func(w *world, ops, _, _ string) {
			w.delete(configMap(ops, defaultList))
		}},
		"Forgotten": {"whoever takes a member out of the list does not decide", func(w *world, ops, _, _ string) {
			cm := configMap(ops, defaultList)
			w.change(cm, func() { cm.Data["namespaces"] = ops })
		}},
		"LetIn": {"nor does whoever writes one in", func(w *world, ops, listed, heldBack string) {
			cm := configMap(ops, defaultList)
			w.change(cm, func() { cm.Data["namespaces"] = heldBack + "," + ops + "," + listed })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, listed := w.namespace("home"), w.namespace("listed", refusesRoles)
			heldBack := w.namespace("held-back", refusesRoles)
			w.operator(ops, "op")
			w.untilRefusing(listed)
			w.untilRefusing(heldBack)

			nss := w.scope(ops, "scope", withMarker(members(listed)))
			w.ready(nss)
			w.grant(ops, "op", "refused-role", "get pods")
			w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
			w.setMembers(nss, listed, heldBack)
			w.eventually("the member is held back", func() error { return w.failed(nss, heldBack, "RoleNotProjected") })
			w.lists(ops, defaultList, ops, listed)

			tc.do(w, ops, listed, heldBack)
			w.seen(ops, listed)

			w.lists(ops, defaultList, ops, listed)
			// The status is written after the list.
			w.eventually(tc.reason, func() error {
				w.mustGet(nss)

				if got, want := nss.Status.ValidatedMembers, []string{ops, listed}; !slices.Equal(got, want) {
					return fmt.Errorf("got %v, want %v", got, want)
				}

				return nil
			})
		})
	}
}

func TestMemberAddedByASecondScopeRestartsTheReadersOfTheFirst(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.ready(w.scope(ops, "one", members(a)))

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	s := members(b)
	s.RestartLabels = map[string]operatorv1.LabelValue{"nobody": "has-this"}
	w.ready(w.scope(ops, "two", s))

	w.lists(ops, defaultList, ops, a, b)
	w.restarted(reader, 1)
}

func TestPodThatBeganWithAListInBetweenRestarts(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	nss := w.scope(ops, "scope", members(a))
	w.restarted(reader, 1)
	w.rolledOut(reader)

	// Within the interval after that restart the list changes, a pod begins with it, and the list changes back.
	w.setMembers(nss, a, b)
	w.lists(ops, defaultList, ops, a, b)
	before := w.podsOf(ops)
	w.change(reader, func() { reader.Spec.Replicas = new(int32(2)) })
	w.running(ops, 2)

	var between string

	for _, name := range w.podsOf(ops) {
		if !slices.Contains(before, name) {
			between = name
		}
	}

	if between == "" {
		t.Fatalf("no pod began beside %v", before)
	}

	w.setMembers(nss, a)
	w.lists(ops, defaultList, ops, a)

	w.within(2*testbed.Patience, "the pod that began with the list in between goes", func() error {
		if slices.Contains(w.podsOf(ops), between) {
			return fmt.Errorf("pod %s still works with the members %s,%s,%s", between, a, b, ops)
		}

		return nil
	})
}
