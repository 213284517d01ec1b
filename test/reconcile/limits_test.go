package reconcile_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

const limited = "False LimitExceeded"

// TestRolesOverTheLimit: of the Roles beside a scope the largest are left out, and count as not being there; the scope says so,
// and what there is room for is served.
func TestRolesOverTheLimit(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	for i := range 5 {
		large, ok := testbed.Large(w.ns(ops), 3*i).(*rbacv1.Role)
		if !ok {
			t.Fatal("it is no Role")
		}

		if err := w.client.Create(t.Context(), large); err != nil {
			t.Fatal(err)
		}
	}

	w.scope(`{"namespaceMembers":["a>"]}`)

	if err := until(t.Context(), func() bool {
		w.reconcile()

		return w.condition("scope", "Ready") == limited
	}); err != nil {
		t.Fatalf("Ready is %s: %v", w.condition("scope", "Ready"), err)
	}

	w.settle()
	w.names("the condition", w.readyMessage(), "namespace ops holds more than may be remembered", "Roles")
	is(w, "copies", w.copies("a"), one)
	is(w, "watch list", w.list(), "a,ops")
}

// requires has a version require as many definitions, none of which is there.
func requires(n int) func(*olmv1alpha1.ClusterServiceVersion) {
	return func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Required = nil

		for i := range n {
			name := fmt.Sprintf("r%04d", i)
			c.Spec.CustomResourceDefinitions.Required = append(c.Spec.CustomResourceDefinitions.Required, olmv1alpha1.CRDDescription{
				Name: name + ".missing.example.com", Version: "v1", Kind: name,
			})
		}
	}
}

// TestProvidedAPIsOverTheLimit: a list of provided APIs that is larger than annotations may be is not written. The group says so,
// and nothing is tried again because of it, nor does anything else wait.
func TestProvidedAPIsOverTheLimit(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*")
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Name = "large.v1"
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "large"

		for i := range 1500 {
			name := fmt.Sprintf("r%04d", i)
			c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, olmv1alpha1.CRDDescription{
				Name: name + "." + strings.Repeat("a-long-label.", 14) + "example.com", Version: "v1", Kind: name,
			})
		}
	})
	w.reconcileGroup()

	is(w, "phases", []string{w.phase(), w.phaseOf("large.v1")}, []string{installing, pending})
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})

	condition, message := w.groupCondition("WithinLimits")
	is(w, "WithinLimits", condition, limited)
	w.names("the message", message, "olm.providedAPIs", "256 KiB")

	c := w.groupOnce()
	//nolint:staticcheck // It says that nothing is tried again.
	is(w, "the next call", fmt.Sprint(c.Result.Requeue, c.refused, c.writes, c.err), "false [] [] <nil>")

	w.groupAsks(func(w *world) { w.Remove(w.versionCalled("large.v1")) })
	w.reconcileGroup()

	condition, _ = w.groupCondition("WithinLimits")
	is(w, "WithinLimits with room", condition, "-")
}

// TestVersionsOverTheLimit: a ClusterServiceVersion with which those of a namespace name more APIs than they may is left as it
// is, and says so; what was there before goes on; and it is taken up once there is room.
func TestVersionsOverTheLimit(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", requires(100))
	w.reconcileGroup()
	w.csv("*", requires(install.MaxAPIs), func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Name = "second.v1"
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "second"
	})
	w.reconcileGroup()

	is(w, "phases", []string{w.phase(), w.phaseOf("second.v1")}, []string{pending, "Failed LimitExceeded"})
	w.names("the message", w.messageOf("second.v1"), strconv.Itoa(install.MaxAPIs)+" APIs")

	w.recsv(requires(0))
	w.reconcileGroup()
	is(w, "phases with room", []string{w.phase(), w.phaseOf("second.v1")}, []string{installing, pending})
}

// TestLongListsAreCut: what is told is bounded, and the full count is said.
func TestLongListsAreCut(t *testing.T) {
	t.Parallel()

	missing := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`"gone-%02d>"`, i))
		}

		return strings.Join(out, ",")
	}

	t.Run("members of a scope that fail", func(t *testing.T) {
		t.Parallel()

		w := begin(t)
		w.common()
		w.scope(`{"namespaceMembers":["a>",` + missing(60) + `]}`)
		w.settle()

		failed := w.failed("scope")
		is(w, "how many failed members there are", len(failed), 50)
		is(w, "the last of them", failed[49], "gone-49 NamespaceNotFound")
		is(w, "Ready", w.condition("scope", "Ready"), "False MembersFailed")
		w.names("the condition", w.readyMessage(), "60 of 62 members")
		is(w, "watch list", w.list(), "a,ops")
	})

	t.Run("namespaces of an instance that fail", func(t *testing.T) {
		w := templated(t)
		w.template(reader)
		w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>",`+missing(60)+`]}`)
		w.reconcileTemplates()

		in := &operatorsv1alpha1.ScopeInstance{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.ns("i")}, in); err != nil {
			t.Fatal(err)
		}

		is(w, "how many failed namespaces there are", len(in.Status.FailedNamespaces), 50)
		is(w, "Scoped", w.scoped("i", "Scoped"), "False ScopingFailed")
		w.names("the condition", meta.FindStatusCondition(in.Status.Conditions, "Scoped").Message, "60 of 61")
		is(w, "bindings", w.bound("i"), []string{"a: ops/op"})
	})

	t.Run("what an operator needs", func(t *testing.T) {
		t.Parallel()

		w := grouped(t)
		w.group("group", inA)
		w.csv("*", requires(600))
		w.reconcileGroup()

		is(w, "phase", w.phase(), "Pending RequirementsNotMet")
		is(w, "how many requirements status names", len(w.versionCalled("op.v1").Status.RequirementStatus), 500)
		w.names("the message", w.message(), "r0007.missing.example.com", "and 592 more")
		is(w, "it names the ninth", strings.Contains(w.message(), "r0008"), false)
	})
}

// TestCatalogsOverTheLimit: of too many catalogs the oldest are served, and the others say so.
func TestCatalogsOverTheLimit(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.watched = ""
	w.group("group", inA)
	w.reconcileGroup()

	w.catalog()

	for i := range 11 {
		w.catalogCalled(fmt.Sprintf("source-%02d", i))
	}

	w.reconcileCatalogs(true)

	var list olmv1alpha1.CatalogSourceList
	if err := w.client.List(t.Context(), &list, client.InNamespace(w.ns(ops))); err != nil {
		t.Fatal(err)
	}

	tooMany := 0

	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.Reason == "TooManyCatalogs" {
				tooMany++
			}
		}
	}

	is(w, "how many catalogs there are", len(list.Items), 12)
	is(w, "how many of them are too many", tooMany, 2)
}

// TestScopesOverTheLimit: of too many scopes beside each other the oldest are served, and all say so; one that is beyond has
// nothing made for it, not even a finalizer, and is served once there is room.
func TestScopesOverTheLimit(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	first := w.scopeCalled("a", `{}`)
	w.reconcile()

	younger.Than(&w.World, first)

	for i := range 199 {
		w.scopeCalled(fmt.Sprintf("b%03d", i), `{}`)
	}

	last := w.scopeCalled("z", `{"namespaceMembers":["a>"],"configmapName":"last"}`)
	w.settle()

	w.names("the condition of the last one", w.messageOn("z", "Ready"), "NamespaceScopes beyond the oldest 200")
	is(w, "Ready of the last one", w.condition("z", "Ready"), limited)
	is(w, "Ready of the first one", w.condition("a", "Ready"), limited)
	is(w, "copies", w.copies("a"), []string{})

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(last), last); err != nil || len(last.Finalizers) > 0 {
		t.Errorf("it has finalizers %v: %v", last.Finalizers, err)
	}

	w.Remove(first)
	w.settle()
	is(w, "Ready once there is room", w.condition("z", "Ready"), "True Reconciled")
	is(w, "copies once there is room", w.copies("a"), one)
}
