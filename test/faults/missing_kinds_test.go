package faults_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// The definitions that the tests take away: of the legacy scopes, and of templates.
const (
	legacyDefinition   = "namespacescopes.namespacescope.ibm.com"
	templateDefinition = "scopetemplates.operators.coreos.com"
	catalogDefinition  = "catalogsources.operators.coreos.com"
	csvDefinition      = "clusterserviceversions.operators.coreos.com"
	planDefinition     = "installplans.operators.coreos.com"
	groupDefinition    = "operatorgroups.operators.coreos.com"
)

func definitionFile(name string) string {
	plural, group, _ := strings.Cut(name, ".")

	return filepath.Join(embedded.Root(), "config", "crd", group+"_"+plural+".yaml")
}

// undefine deletes definitions, and returns once they are gone.
func (w *world) undefine(names ...string) {
	w.t.Helper()

	if err := suite.cluster.Undefine(w.t.Context(), names...); err != nil {
		w.t.Fatal(err)
	}
}

// define applies definitions, also when the test is over.
func (w *world) define(names ...string) {
	w.t.Helper()

	for _, name := range names {
		ctx := context.WithoutCancel(w.t.Context())
		if out, err := suite.cluster.Kubectl(ctx, "apply", "--server-side", "-f", definitionFile(name)); err != nil {
			w.t.Fatal(out, err)
		}
	}
}

// legacy makes a legacy scope, as soon as there is such a kind, and returns once it has been served.
func (w *world) legacy(name string, members ...string) {
	w.t.Helper()

	nss := &namespacescopev1alpha1.NamespaceScope{ObjectMeta: w.meta(name)}
	nss.Spec.NamespaceMembers = members
	nss.Spec.ConfigmapName = name

	w.within(kubernetes, "a legacy scope can be made", func() bool {
		err := suite.client.Create(w.t.Context(), nss.DeepCopy())

		return err == nil || apierrors.IsAlreadyExists(err)
	})
	w.eventually("a legacy scope is served", func() bool {
		err := suite.client.Get(w.t.Context(), client.ObjectKeyFromObject(nss), nss)

		return err == nil && len(nss.Status.ValidatedMembers) > 0
	})
}

// rolesIn are how many Roles were projected into a namespace.
func (w *world) rolesIn(namespace string) int {
	w.t.Helper()

	roles := &rbacv1.RoleList{}
	if err := suite.client.List(w.t.Context(), roles, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}

	return len(roles.Items)
}

// TestMissingKindKeepsNoOtherFromBeingServed: a manager that begins without the definitions of some kinds serves the others, says
// what is missing, and serves the rest once it is there; and when a definition goes while it runs, and comes back. It is one and
// the same process all the time.
func TestMissingKindKeepsNoOtherFromBeingServed(t *testing.T) {
	w := newWorld(t, "missing", 1, 3)

	kill(t)

	absent := []string{
		legacyDefinition, templateDefinition, catalogDefinition, csvDefinition, planDefinition, groupDefinition,
	}

	w.undefine(absent...)
	t.Cleanup(func() { w.define(absent...) })

	before := w.logged()

	start(t)

	process := suite.manager.PID()

	w.scope(w.members[0])
	w.settled()
	w.says(before, "A kind is missing", legacyDefinition, templateDefinition, catalogDefinition)
	w.instanceWithoutTemplates()

	w.define(legacyDefinition)
	w.legacy("legacy", w.members[1])

	// What is read of a kind that went is nothing, and what nobody asks for any more is taken back.
	w.undefine(legacyDefinition)
	w.eventually("what a legacy scope projected goes with its kind", func() bool { return w.rolesIn(w.members[1]) == 0 })
	w.scope(w.members[0], w.members[2])
	w.settled()

	if n := w.rolesIn(w.members[0]); n == 0 {
		t.Error("with the kind of another scope, the permissions of this one went")
	}

	w.define(legacyDefinition)
	w.legacy("again", w.members[1])
	w.eventually("what the new legacy scope asks for is there", func() bool { return w.rolesIn(w.members[1]) > 0 })

	if suite.manager.PID() != process || suite.manager.Works("namespacescope") != nil {
		t.Error("the manager was started anew")
	}

	w.remove(&namespacescopev1alpha1.NamespaceScope{ObjectMeta: w.meta("again")})
}

// instanceWithoutTemplates holds that an instance says why it binds nothing where there is no such kind as its template.
func (w *world) instanceWithoutTemplates() {
	w.t.Helper()

	in := &operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: "without-template"}}
	in.Spec.ScopeTemplateName, in.Spec.Namespaces = "nosuch", []string{w.ops}
	w.create(in)

	w.eventually("the instance names the definition that is missing", func() bool {
		if err := suite.client.Get(w.t.Context(), client.ObjectKeyFromObject(in), in); err != nil {
			return false
		}

		for _, c := range in.Status.Conditions {
			if c.Type == report.ConditionScoped && strings.Contains(c.Message, templateDefinition) {
				return true
			}
		}

		return false
	})
	w.remove(in)
}

// TestMissingKindInSomeNamespaces is the same for a manager that may not look at definitions.
func TestMissingKindInSomeNamespaces(t *testing.T) {
	w := newWorld(t, "lacking", 1, 2)

	admin, err := suite.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}

	served, err := embedded.NewManager(t.Context(), admin, t.TempDir(), suite.program,
		"--namespaces="+w.ops, "--restart-interval="+restartInterval.String())
	if err != nil {
		t.Fatal(err)
	}

	kill(t)
	w.undefine(legacyDefinition)

	if err := served.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		w.define(legacyDefinition)

		if err := served.Kill(); err != nil {
			t.Error(err)
		}

		start(t)
	})

	w.scope(w.members[0])
	w.settled()
	w.define(legacyDefinition)
	// The manager asks again, less and less often.
	w.within(kubernetes, "the manager knows of the kind", func() bool {
		log, err := os.ReadFile(served.Log)
		if err != nil {
			t.Fatal(err)
		}

		return strings.Contains(string(log), "is there now")
	})
	w.legacy("legacy", w.members[1])
	w.remove(&namespacescopev1alpha1.NamespaceScope{ObjectMeta: w.meta("legacy")})
	w.eventually("what the legacy scope projected goes", func() bool { return w.rolesIn(w.members[1]) == 0 })
}

func (w *world) logged() int {
	w.t.Helper()

	log, err := os.ReadFile(suite.manager.Log)
	if err != nil {
		w.t.Fatal(err)
	}

	return len(log)
}

// says holds that the log says something of each name, once.
func (w *world) says(from int, what string, names ...string) {
	w.t.Helper()

	for _, name := range names {
		w.eventually("the log says of "+name+": "+what, func() bool {
			log, err := os.ReadFile(suite.manager.Log)
			if err != nil {
				w.t.Fatal(err)
			}

			n := 0

			for line := range strings.SplitSeq(string(log[from:]), "\n") {
				if strings.Contains(line, "missing:") && strings.Contains(line, name) {
					n++
				}
			}

			return n == 1
		})
	}
}
