package read

import (
	"strconv"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/scope"
)

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "watchlist-u", Labels: map[string]string{"ambit.dev/follows": "true"},
		Annotations: map[string]string{
			"ambit.dev/watch-list": "namespace-scope", "ambit.dev/taken-in": scope.TakenIn("a,ops"),
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}},
	}}
}

func TestLeasesThatAreBelieved(t *testing.T) {
	t.Parallel()

	if f, ok := convertFollower(lease()); !ok || f.pod != "u" || f.List != "namespace-scope" || f.TakenIn != scope.TakenIn("a,ops") {
		t.Errorf("a Lease as the module writes it: %+v, %t", f, ok)
	}

	for name, change := range map[string]func(*coordinationv1.Lease){
		"no label":            func(l *coordinationv1.Lease) { l.Labels = nil },
		"no owner":            func(l *coordinationv1.Lease) { l.OwnerReferences = nil },
		"two owners":          func(l *coordinationv1.Lease) { l.OwnerReferences = append(l.OwnerReferences, l.OwnerReferences[0]) },
		"owner is no pod":     func(l *coordinationv1.Lease) { l.OwnerReferences[0].Kind = "Namespace" },
		"owner of other kind": func(l *coordinationv1.Lease) { l.OwnerReferences[0].APIVersion = "evil.example/v1" },
		"named otherwise":     func(l *coordinationv1.Lease) { l.Name = "watchlist-v" },
		"leader election":     func(l *coordinationv1.Lease) { l.Name = "lock" },
		"no list":             func(l *coordinationv1.Lease) { delete(l.Annotations, "ambit.dev/watch-list") },
		"no hash":             func(l *coordinationv1.Lease) { delete(l.Annotations, "ambit.dev/taken-in") },
		"a megabyte":          func(l *coordinationv1.Lease) { l.Annotations["ambit.dev/taken-in"] = string(make([]byte, 1<<20)) },
	} {
		l := lease()
		change(l)

		if _, ok := convertFollower(l); ok {
			t.Errorf("%s: it is believed", name)
		}
	}
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()

	h := newOperatorNamespace(func() {})
	put := h.followers.bounded(maxFollowers)

	for i := range 3 * maxFollowers {
		put(types.NamespacedName{Name: strconv.Itoa(i)}, follower{pod: types.UID(strconv.Itoa(i))}, arrival{version: 1})
	}

	if n := len(h.factsOfFollowers()); n != maxFollowers {
		t.Errorf("%d are remembered", n)
	}
}
