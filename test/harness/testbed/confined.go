package testbed

import (
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// InstallNamespaced installs what the profile namespaced needs to serve OperatorGroups and ClusterServiceVersions in some
// namespaces. In those that are not Ambit's own, it copies the further Roles that are named. It returns the arguments of a
// manager that serves them. The installed Deployment gets them, too, because what commands answer depends on it.
func (w *World) InstallNamespaced(namespaces []string, roles ...string) []string {
	w.Helper()

	out, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "-k",
		filepath.Join(embedded.Root(), "config", "rbac", "namespaced-installs"))
	if err != nil {
		w.Fatalf("%v: %s", err, out)
	}

	for _, name := range append(roles, "ambit-namespaced-installs") {
		w.copyRole(name, slices.DeleteFunc(slices.Clone(namespaces), func(ns string) bool { return ns == embedded.Namespace }))
	}

	served := []string{"--namespaces=" + strings.Join(namespaces, ","), "--operator-groups=enabled"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "ambit"}}
	w.Change(d, func() {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Args = append(c.Args, served...)
	})

	return served
}

// copyRole gives Ambit in other namespaces what a Role gives it in its own.
func (w *World) copyRole(name string, namespaces []string) {
	w.Helper()

	of := &rbacv1.Role{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: name}, of); err != nil {
		w.Fatal(err)
	}

	for _, namespace := range namespaces {
		w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: of.Rules},
			Bind(namespace, "Role", name, embedded.Namespace, embedded.ServiceAccount))
	}
}
