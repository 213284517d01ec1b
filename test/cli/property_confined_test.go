package cli_test

import (
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/embedded"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// serveInstalls has the manager of the profile namespaced serve what is installed in further namespaces.
func (w *drawn) serveInstalls(namespaces ...string) {
	w.Helper()

	out, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "-k",
		filepath.Join(embedded.Root(), "config", "rbac", "namespaced-installs"))
	if err != nil {
		w.Fatalf("%v: %s", err, out)
	}

	for _, name := range []string{"ambit-namespaced", "ambit-namespaced-installs"} {
		of := &rbacv1.Role{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: name}, of); err != nil {
			w.Fatal(err)
		}

		for _, namespace := range namespaces {
			role := &rbacv1.Role{Rules: of.Rules}
			role.Namespace, role.Name = namespace, name
			w.Make(role, testbed.Bind(namespace, "Role", name, embedded.Namespace, embedded.ServiceAccount))
		}
	}

	served := []string{"--namespaces=" + strings.Join(namespaces, ","), "--operator-groups=enabled"}

	// A plan goes by how the manager is installed.
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = embedded.Namespace, "ambit"
	w.Change(d, func() {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Args = append(c.Args, served...)
	})

	if err := w.Manager.Restart(served...); err != nil {
		w.Fatal(err)
	}

	if err := testbed.UntilWorking(w.Manager); err != nil {
		w.Fatal(err)
	}
}
