package installs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (w *world) apply(manifest string) {
	w.Helper()

	path := filepath.Join(w.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		w.Fatal(err)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", path); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

var errThere = errors.New("it is there")

func (w *world) gone(objects ...client.Object) {
	w.Helper()

	for _, obj := range objects {
		w.Eventually(fmt.Sprintf("%T %s goes", obj, obj.GetName()), func() error {
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return client.IgnoreNotFound(err)
			}

			return errThere
		})
	}
}
