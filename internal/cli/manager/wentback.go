package manager

import (
	"context"
	"errors"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// errWentBack is why a replica ends where a backup of the cluster was restored. Versions count again from an earlier one then. A
// watch that goes on from a later one reports nothing until it is reached again, and records outlast what has a lower one.
var errWentBack = errors.New("the data of the cluster went back in time, as when a backup is restored; start again")

// versioned are leases of which no version may be older than one before. There is one that is read or written every few seconds,
// also by a replica that stands by.
type versioned struct {
	coordinationclient.LeasesGetter

	latest   atomic.Uint64
	wentBack func()
}

// Leases are those of a namespace.
func (v *versioned) Leases(namespace string) coordinationclient.LeaseInterface {
	return &versionedLeases{v.LeasesGetter.Leases(namespace), v}
}

func (v *versioned) note(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return lease, err // As it is: the election tells the API server's errors apart.
	}

	now := scope.ParseVersion(lease.ResourceVersion)
	if before := v.latest.Swap(now); now != 0 && now < before {
		v.wentBack()
	}

	return lease, nil
}

type versionedLeases struct {
	coordinationclient.LeaseInterface

	of *versioned
}

// Get reads a lease.
func (l *versionedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.of.note(l.LeaseInterface.Get(ctx, name, o))
}

// Create makes a lease.
func (l *versionedLeases) Create(
	ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	return l.of.note(l.LeaseInterface.Create(ctx, lease, o))
}

// Update changes a lease.
func (l *versionedLeases) Update(
	ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	return l.of.note(l.LeaseInterface.Update(ctx, lease, o))
}
