package cli_test

import "github.com/ambit-k8s/ambit/test/harness/testbed"

// serveInstalls has the manager of the profile namespaced serve what is installed in further namespaces.
func (w *drawn) serveInstalls(namespaces ...string) {
	w.Helper()

	if err := w.Manager.Restart(w.InstallNamespaced(namespaces, "ambit-namespaced")...); err != nil {
		w.Fatal(err)
	}

	if err := testbed.UntilWorking(w.Manager); err != nil {
		w.Fatal(err)
	}
}
