package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// indexBytes bounds the annotations, below the API server's limit of 256 KiB for all of an object: others may add some, too.
const indexBytes = 250_000

// Whoever flips the account of a group has all of the index written again each time, and history keeps every version for minutes.
// These bound what is written, in bytes a second, and what may be written before that counts.
const (
	indexRate  = 128 << 10
	indexBurst = 1 << 20
)

// groupIndex writes down which account the OperatorGroups of a namespace name, where the admission policies of config/guard can
// read it. A policy cannot look for the groups itself: where there is none it could only refuse everybody.
//
// It is written as Ambit itself, because nobody whose rights the policies judge may write it. It does not matter whether OLM's
// kinds are served now: what is written while they are not may be installed when they are.
type groupIndex struct {
	client client.Client
	known  *read.GroupIndex
}

// Start keeps the index up to date until the context ends.
func (x *groupIndex) Start(ctx context.Context) error {
	x.known.Watch(ctx)

	var (
		wait   = firstRetry
		again  <-chan time.Time
		limit  = rate.NewLimiter(indexRate, indexBurst)
		writes int
	)

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.known.Changed():
		case <-again:
		}

		// What was written last is paid for before it is read what to write next, so that this is not old by then.
		if err := limit.WaitN(ctx, writes); err != nil {
			return nil //nolint:nilerr // The context ends.
		}

		again, writes = nil, 0
		accounts, written, known := x.known.Accounts()
		wanted, left := indexAnnotations(accounts, written)

		if !known || maps.Equal(written, wanted) {
			wait = firstRetry

			continue
		}

		if left > 0 {
			log.FromContext(ctx).Info("There are too many OperatorGroups with an account for the admission policies to know "+
				"all; in the namespaces of the rest only cluster administrators may install", "namespaces", left)
		}

		// Compared again in any case; the watch reports the write before that.
		again = time.After(wait)
		wait = min(2*wait, lastRetry)

		for key, account := range wanted {
			writes += len(key) + len(account)
		}

		if err := x.write(ctx, written, wanted); err != nil {
			log.FromContext(ctx).Error(err, "The admission policies do not know which OperatorGroups name an account")
		}
	}
}

// write makes the annotations what is wanted, whoever wrote those that are there.
func (x *groupIndex) write(ctx context.Context, written, wanted map[string]string) error {
	changes := map[string]any{}

	for key := range written {
		if _, stays := wanted[key]; !stays {
			changes[key] = nil
		}
	}

	for key, account := range wanted {
		changes[key] = account
	}

	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": changes}})
	if err != nil {
		return fmt.Errorf("encoding the accounts of OperatorGroups: %w", err)
	}

	index := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: read.GroupIndexName}}
	index.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))

	if err := x.client.Patch(ctx, index, client.RawPatch(types.MergePatchType, raw),
		client.FieldOwner(scope.FieldManager)); err != nil {
		return fmt.Errorf("writing down the accounts of OperatorGroups: %w", err)
	}

	return nil
}

// indexAnnotations are the annotations for the accounts of namespaces, and how many namespaces do not fit in. Those that are
// written stay, and of the others the shortest come first: whoever makes namespaces by the thousand chooses how they and their
// accounts are called, and must keep out nobody who installs by now.
func indexAnnotations(accounts, written map[string]string) (annotations map[string]string, left int) {
	isNew := func(namespace string) int {
		if is, found := written[read.AccountPrefix+namespace]; found && is == accounts[namespace] {
			return 0
		}

		return 1
	}
	size := func(namespace string) int { return len(read.AccountPrefix) + len(namespace) + len(accounts[namespace]) }

	namespaces := slices.SortedFunc(maps.Keys(accounts), func(a, b string) int {
		return cmp.Or(cmp.Compare(isNew(a), isNew(b)), cmp.Compare(size(a), size(b)), cmp.Compare(a, b))
	})

	annotations = make(map[string]string, len(accounts))
	room := indexBytes

	for i, namespace := range namespaces {
		if room -= size(namespace); room < 0 {
			return annotations, len(accounts) - i
		}

		annotations[read.AccountPrefix+namespace] = accounts[namespace]
	}

	return annotations, 0
}
