package faults_test

import (
	"fmt"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAsleepWhileTheWorldChanges: all watches of a manager that sleeps end with the API server, and what it could have watched on
// from is gone. Definitions change meanwhile, too, by which the API server ends watches of their kinds. What was changed, made
// and deleted in between is seen all the same.
func TestAsleepWhileTheWorldChanges(t *testing.T) {
	w := newWorld(t, "asleep", 2, 6)
	w.scope(w.members...)
	w.settled()

	manager := suite.manager.PID()
	asleep(t, manager)

	source, binding := &rbacv1.Role{ObjectMeta: w.meta("operator-0-a")}, &rbacv1.RoleBinding{ObjectMeta: w.meta("operator-1-a")}
	w.edit(source, func() { source.Rules[0].Verbs = []string{"list"} })
	w.remove(binding)

	for i := range 3 {
		w.upgradeCRD("namespacescopes.operator.ibm.com", i)
		w.disturb(t.Context(), 1, i)
		w.disturb(t.Context(), 2, i)
	}

	w.restartAPIServer("KILL")
	w.scope(w.members[2:]...)
	w.disturb(t.Context(), 0, 0)
	awake(t, manager)
	w.upgradeCRD("namespacescopes.operator.ibm.com", 3)
	w.settled()

	// And while it works.
	for i := range 4 {
		w.scope(w.members[i:]...)
		w.upgradeCRD("namespacescopes.operator.ibm.com", 4+i)
	}

	w.settled()
}

// upgradeCRD changes the schema of a definition, as a new version of Ambit does.
func (w *world) upgradeCRD(name string, version int) {
	w.t.Helper()

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.edit(crd, func() {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Description = fmt.Sprintf("Version %d of the test.", version)
		}
	})
}

func asleep(t *testing.T, process int) {
	t.Helper()

	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = syscall.Kill(process, syscall.SIGCONT) })
}

func awake(t *testing.T, process int) {
	t.Helper()

	if err := syscall.Kill(process, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
