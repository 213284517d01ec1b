package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// groupIndexName is the ClusterRole, without rules, that config installs for the guard to read.
	groupIndexName = "ambit-operator-groups"
	// accountPrefix begins the annotation that names the account of a namespace; the namespace follows.
	accountPrefix = "account.ambit.dev/"
	// indexBytes is what annotations may take up, short of the API server's limit of 256 KiB for what others add.
	indexBytes = 250_000
)

// groupIndex writes down which account the OperatorGroups of a namespace name, where the admission policies of config/guard can
// read it. A policy cannot look for the groups itself: where there is none it could only refuse everybody.
//
// It is written as Ambit itself, because nobody whose rights the policies judge may write it. It does not matter whether OLM's
// kinds are served now: what is written while they are not may be installed when they are.
type groupIndex struct {
	client client.Client
	groups *read.GroupAccounts
}

// Start writes the index after each change until the context ends.
func (x *groupIndex) Start(ctx context.Context) error {
	go x.groups.Watch(ctx)

	var (
		written map[string]string
		wait    = firstRetry
		again   <-chan time.Time
	)

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.groups.Changed():
		case <-again:
		}

		again = nil
		accounts, listed := x.groups.Accounts()

		if !listed || written != nil && maps.Equal(written, accounts) {
			continue
		}

		if err := x.write(ctx, accounts); err != nil {
			log.FromContext(ctx).Error(err, "The admission policies do not know which OperatorGroups name an account")

			again = time.After(wait)
			wait = min(2*wait, lastRetry)

			continue
		}

		written, wait = accounts, firstRetry
	}
}

func (x *groupIndex) write(ctx context.Context, accounts map[string]string) error {
	annotations, left := indexAnnotations(accounts)
	if left > 0 {
		log.FromContext(ctx).Info("There are too many OperatorGroups with an account for the admission policies to know all; "+
			"in the namespaces of the rest only cluster administrators may install", "namespaces", left)
	}

	index := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: groupIndexName, Annotations: annotations}}
	index.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))

	raw, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("encoding the accounts of OperatorGroups: %w", err)
	}

	err = x.client.Patch(ctx, index, client.RawPatch(types.ApplyPatchType, raw),
		client.FieldOwner(scope.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing down the accounts of OperatorGroups: %w", err)
	}

	return nil
}

// indexAnnotations are the annotations for the accounts of namespaces, and how many namespaces do not fit in.
func indexAnnotations(accounts map[string]string) (annotations map[string]string, left int) {
	annotations = make(map[string]string, len(accounts))
	size := 0

	for i, namespace := range slices.Sorted(maps.Keys(accounts)) {
		key := accountPrefix + namespace

		size += len(key) + len(accounts[namespace])
		if size > indexBytes {
			return annotations, len(accounts) - i
		}

		annotations[key] = accounts[namespace]
	}

	return annotations, 0
}
