package delegates_test

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var (
	errStillThere = errors.New("it is still there")
	errNoRole     = errors.New("there is none")
)

func gone(w *testbed.World, obj client.Object) error {
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}

	return errors.Join(errStillThere, err)
}
