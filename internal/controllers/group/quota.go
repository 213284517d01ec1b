package group

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// copied is why OLM's copies are not kept.
const copied = "OLM copied it"

// Quota is what is kept of the ClusterServiceVersions of each namespace, and how much there is room for. Which of too many are
// kept depends on the order in which they come. What runs has room of its own, so that it is still kept when Ambit restarts and
// hears of others first.
type Quota struct {
	mu         sync.Mutex
	namespaces map[string]*quota
}

type quota struct {
	// all is the size of what is kept, and running that of the part that runs.
	all, running install.Size
	csvs         map[types.UID]kept
}

type kept struct {
	size install.Size
	// is says that the CSV is kept, and runs that it runs.
	is, runs bool
}

// NewQuota returns an empty quota.
func NewQuota() *Quota { return &Quota{namespaces: map[string]*quota{}} }

// Transform is asked by the cache what to keep of an object.
func (r *Quota) Transform(obj any) (any, error) {
	csv, ok := obj.(*unstructured.Unstructured)
	if !ok || install.LeftOut(csv) != "" {
		return obj, nil
	}

	if install.IsCopy(csv) {
		install.LeaveOut(csv, copied)

		return csv, nil
	}

	k := kept{size: install.Trim(csv), runs: install.Runs(csv)}

	r.mu.Lock()
	defer r.mu.Unlock()

	of := r.namespaces[csv.GetNamespace()]
	if of == nil {
		of = &quota{csvs: map[types.UID]kept{}}
		r.namespaces[csv.GetNamespace()] = of
	}

	of.drop(csv.GetUID())

	beside := of.all
	if k.runs {
		beside = of.running
	}

	why := beside.Plus(k.size).Over()
	if k.is = why == ""; !k.is {
		install.LeaveOut(csv, "it is left as it is: "+why)
	}

	of.add(csv.GetUID(), k)

	return csv, nil
}

// Gone takes note that a CSV was deleted.
func (r *Quota) Gone(namespace string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if of := r.namespaces[namespace]; of != nil {
		if of.drop(uid); len(of.csvs) == 0 {
			delete(r.namespaces, namespace)
		}
	}
}

// Fitting are those of the CSVs that were left out for which there is room now, all together; the oldest come first. Without a
// quota, as in a cluster in memory, none are left out.
func (r *Quota) Fitting(namespace string, leftOut []*unstructured.Unstructured) map[types.UID]struct{} {
	if len(leftOut) == 0 {
		return nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	fitting, of := map[types.UID]struct{}{}, r.namespaces[namespace]
	if of == nil {
		return fitting
	}

	leftOut = slices.Clone(leftOut)
	slices.SortFunc(leftOut, func(a, b *unstructured.Unstructured) int { return scope.CompareAge(a, b) })

	sum := of.all

	for _, csv := range leftOut {
		k, known := of.csvs[csv.GetUID()]
		if with := sum.Plus(k.size); known && !k.is && with.Over() == "" {
			sum = with
			fitting[csv.GetUID()] = struct{}{}
		}
	}

	return fitting
}

func (r *quota) add(uid types.UID, k kept) {
	r.csvs[uid] = k

	if k.is {
		r.all = r.all.Plus(k.size)
	}

	if k.is && k.runs {
		r.running = r.running.Plus(k.size)
	}
}

func (r *quota) drop(uid types.UID) {
	k := r.csvs[uid]
	delete(r.csvs, uid)

	if k.is {
		r.all = r.all.Minus(k.size)
	}

	if k.is && k.runs {
		r.running = r.running.Minus(k.size)
	}
}
