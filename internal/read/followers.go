package read

import (
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxFollowers is how many are remembered of one operator namespace. Anybody who may write Leases there can make more; the
// pods beyond that are restarted like readers that do not follow.
const maxFollowers = 1000

// follower is a pod that follows, and what it says.
type follower struct {
	pod types.UID
	facts.Follower
}

// convertFollower reads a Lease that bears the label. It has to be that of one pod, by name and by owner: only so does it go
// with the pod, and is it the only one.
func convertFollower(obj client.Object) (follower, bool) {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok || lease.Labels[scope.LabelFollows] != scope.Follows || len(lease.OwnerReferences) != 1 {
		return follower{}, false
	}

	owner := lease.OwnerReferences[0]
	said := facts.Follower{
		List: lease.Annotations[scope.AnnotationFollowed], TakenIn: lease.Annotations[scope.AnnotationTakenIn],
	}

	if owner.Kind != "Pod" || owner.APIVersion != "v1" || lease.Name != scope.FollowerLease(string(owner.UID)) ||
		said.List == "" || len(said.List) > 253 || len(said.TakenIn) != len(scope.TakenIn("")) {
		return follower{}, false
	}

	return follower{pod: owner.UID, Follower: said}, true
}

// followerKind is that of the Leases of those who follow. An Ambit that may not watch them, because its rights are older than
// this feature, knows of no followers, and restarts all readers. After any other failure it waits: a reader that follows must
// not be restarted because that was not known.
type followerKind struct{ kindOf[follower] }

func (k followerKind) watch(w *Watches, in *records, listed func(), opts ...client.ListOption) {
	in.waiting++

	once := sync.OnceFunc(listed)
	followers := tableSink(k.table, k.convert)
	followers.put = k.bounded(maxFollowers)

	start(in.running, w, &followers, k.list, once, func(err error) {
		if apierrors.IsForbidden(err) {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()

			once()
		}
	}, append(opts, client.MatchingLabels{scope.LabelFollows: scope.Follows})...)
}

// bounded is put for a table that takes no new rows beyond a size.
func (t *table[R]) bounded(most int) func(types.NamespacedName, R, arrival) {
	return func(key types.NamespacedName, record R, a arrival) {
		if _, known := t.rows[key]; known || len(t.rows) < most {
			t.put(key, record, a)
		}
	}
}

func (h *operatorNamespace) factsOfFollowers() map[types.UID]facts.Follower {
	out := make(map[types.UID]facts.Follower, len(h.followers.rows))
	for _, r := range h.followers.rows {
		out[r.record.pod] = r.record.Follower
	}

	return out
}
