package embedded

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// Definitions are CustomResourceDefinitions, as a resource of the API.
var Definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Undefine deletes CustomResourceDefinitions, all of them if none is named, and returns once they are gone.
//
// The API server's finalizer of definitions takes a conflict for a change that it will hear of, and does not listen to changes of
// the condition that it wrote itself just before (updateCustomResourceDefinition of
// k8s.io/apiextensions-apiserver/pkg/controller/finalizer). A definition of which it read an outdated version then stays until it
// looks at all of them again, up to five minutes later, unless something else about it changes.
func (c *Cluster) Undefine(ctx context.Context, names ...string) error {
	config, err := c.Config()
	if err != nil {
		return err
	}

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for definitions: %w", err)
	}

	if len(names) == 0 {
		all, err := client.Resource(Definitions).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing definitions: %w", err)
		}

		for _, crd := range all.Items {
			names = append(names, crd.GetName())
		}
	}

	for _, name := range names {
		if err := client.Resource(Definitions).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting the definition of %s: %w", name, err)
		}
	}

	for _, name := range names {
		if err := whenGone(ctx, client.Resource(Definitions), name); err != nil {
			return err
		}
	}

	return nil
}

// whenGone touches a definition until it is gone, each time after a pause twice as long: the finalizer of an API server that is
// slower than the touches would otherwise never read the version that it writes.
func whenGone(ctx context.Context, definitions dynamic.ResourceInterface, name string) error {
	pause, touched := 250*time.Millisecond, time.Now()

	isGone := func(ctx context.Context) (gone bool, err error) {
		if time.Since(touched) < pause {
			_, err = definitions.Get(ctx, name, metav1.GetOptions{})

			return apierrors.IsNotFound(err), crclient.IgnoreNotFound(err)
		}

		pause, touched = 2*pause, time.Now()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, touched)
		_, err = definitions.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})

		if apierrors.IsConflict(err) || apierrors.IsTimeout(err) { // The finalizer has just heard of another change, or is slow.
			return false, nil
		}

		return apierrors.IsNotFound(err), crclient.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, false, isGone); err != nil {
		return fmt.Errorf("waiting until %s is not defined any more: %w", name, err)
	}

	return nil
}
