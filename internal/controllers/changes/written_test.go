package changes_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
)

func version(uid string, version int) client.Object {
	return &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: uid, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version),
	}}
}

// TestWritten: the cache has a moment, counted from the last write of each resource, to tell of it.
func TestWritten(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var w changes.Written

		sees := func(when string, a client.Object, wait time.Duration, ahead bool) {
			t.Helper()

			if got := w.Wait([]client.Object{a, version("b", 1)}); got != wait || w.IsAhead(a) != ahead {
				t.Errorf("%s: it waits for %s, ahead %t, want %s, %t", when, got, w.IsAhead(a), wait, ahead)
			}
		}

		sees("before anything was written", version("a", 5), 0, false)
		w.Note(version("a", 7))
		sees("at once", version("a", 5), changes.CacheWait, true)
		sees("when the cache has told", version("a", 7), 0, false)
		sees("when somebody wrote since", version("a", 8), 0, false)
		sees("of another resource of its name", version("other", 5), 0, false)

		time.Sleep(changes.CacheWait / 2)
		sees("after half the time", version("a", 5), changes.CacheWait/2, true)
		w.Note(version("a", 9))
		sees("after another write", version("a", 7), changes.CacheWait, true)

		time.Sleep(2 * changes.CacheWait)
		sees("after all of it", version("a", 7), 0, true)

		w.Keep("other", nil)
		w.Keep("ops", []client.Object{version("a", 8), version("b", 1)})
		sees("after another namespace was emptied", version("a", 7), 0, true)
		w.Keep("ops", []client.Object{version("b", 1)})
		sees("after it was gone", version("a", 7), 0, false)
	})
}

// TestNewest: what was written is there at once, and until the cache has it or something newer.
func TestNewest(t *testing.T) {
	t.Parallel()

	var w changes.Written

	cached, wrote := version("a", 5), version("a", 7)
	w.Remember(wrote)
	wrote.SetLabels(map[string]string{"changed": "since"})

	newest := changes.Newest(&w, cached)
	if newest.GetResourceVersion() != "7" || newest.GetLabels() != nil {
		t.Errorf("it is %s with labels %v, want what was written", newest.GetResourceVersion(), newest.GetLabels())
	}

	for _, o := range []client.Object{version("a", 7), version("a", 8), version("b", 5)} {
		if changes.Newest(&w, o) != o {
			t.Errorf("%s in version %s is not as the cache has it", o.GetUID(), o.GetResourceVersion())
		}
	}

	w.Keep("ops", []client.Object{version("a", 7)})

	if changes.Newest(&w, cached) != cached {
		t.Error("what the cache has told of is still remembered")
	}

	w.Remember(version("a", 9))
	w.Note(version("a", 10))

	if changes.Newest(&w, cached) != cached {
		t.Error("what is remembered is older than what was written last")
	}
}
