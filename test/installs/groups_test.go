package installs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/younger"
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

// TestNoGroupAndTwoGroups: with none and with two, nobody knows for whom an operator works, and it holds nothing.
func TestNoGroupAndTwoGroups(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	op := csv(own, "op.v1")
	w.Make(op)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonNoOperatorGroup, "csv in namespace with no operatorgroups")

	g := w.group(own, targets(own))
	w.succeeds(op)

	second := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "second"}}
	w.Make(second)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonTooManyOperatorGroups,
		"csv created in namespace with multiple operatorgroups, can't pick one automatically")
	w.complains(g, "MultipleOperatorGroup", metav1.ConditionTrue, "Multiple OperatorGroup found in the same namespace")
	w.complains(second, "MultipleOperatorGroup", metav1.ConditionTrue, "Multiple OperatorGroup")
	w.MayNot(own, "op", own, "get secrets")

	w.Remove(second)
	w.succeeds(op)
	w.May(own, "op", own, "get secrets")

	w.Remove(g)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonNoOperatorGroup)
	w.MayNot(own, "op", own, "get secrets")
}

// TestIntersectingGroups: two groups with a namespace in common cannot both provide an API there. The first keeps it.
func TestIntersectingGroups(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("widgets", "Widget")
	one, two, common, apart := w.Namespace("one"), w.Namespace("two"), w.Namespace("common"), w.Namespace("apart")
	a := w.keeper(one, common, crd, "Widget")

	second := w.group(two, targets(common, apart))
	b := csv(two, "op.v1", owning(crd, "Widget"))
	w.Make(b)
	w.becomes(b, olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict,
		"intersecting operatorgroups provide the same apis", one+"/group")

	if w.Allowed(two, "op", common, "get secrets") {
		t.Error("the second operator got permissions")
	}

	w.succeeds(a)
	w.Change(second, func() { second.Spec.TargetNamespaces = []string{apart} })
	w.succeeds(b)

	// It comes to the other one, which keeps it out there, and goes on elsewhere.
	w.Change(second, func() { second.Spec.TargetNamespaces = []string{apart, common} })
	w.becomes(b, olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict)
	w.May(two, "op", apart, "get secrets")

	if w.Allowed(two, "op", common, "get secrets") {
		t.Error("the second operator got permissions where the first one serves")
	}

	// With the first out of the way, the second comes there, too.
	w.Remove(a)
	w.succeeds(b)
	w.May(two, "op", common, "get secrets")
}

// keeper makes a group that provides an API for a target by an operator that runs, and waits until every later group is the
// younger one. Once both list the API, the legacy group keeps it.
func (w *world) keeper(namespace, target, crd, kind string) *olm.ClusterServiceVersion {
	w.Helper()

	_, group, _ := strings.Cut(crd, ".")
	first := w.group(namespace, targets(target))
	made := csv(namespace, "op.v1", owning(crd, kind))
	w.Make(made)
	w.succeeds(made)
	w.provides(first, kind+".v1."+group)
	younger.Than(w.World, first)

	return made
}

// provides waits until a group lists APIs.
func (w *world) provides(g *operatorsv1.OperatorGroup, want string) {
	w.Helper()
	w.Eventually("the group provides "+want, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		if got := g.Annotations["olm.providedAPIs"]; got != want {
			return fmt.Errorf("it provides %q", got)
		}

		return nil
	})
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

// TestStaticGroup: a static group provides what it was told, and nothing more.
func TestStaticGroup(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("gadgets", "Gadget")
	own := w.Namespace("own")
	api := "Gadget.v1." + crd[len("gadgets."):]
	spec := targets(own)
	spec.StaticProvidedAPIs = true
	g := w.group(own, spec)
	op := csv(own, "op.v1", owning(crd, "Gadget"))
	w.Make(op)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, "static provided apis")

	w.Change(g, func() { metav1.SetMetaDataAnnotation(&g.ObjectMeta, "olm.providedAPIs", api) })
	w.succeeds(op)
	w.provides(g, api)
}

// TestPeople: for each API that is provided there are the roles by which people are let at it, and those of the group take
// their rules from them.
func TestPeople(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("things", "Thing")
	own := w.Namespace("own")
	g := w.group(own, targets(own))
	op := csv(own, "op.v1", owning(crd, "Thing"))
	w.Make(op)
	w.succeeds(op)

	for suffix, verbs := range map[string][]string{
		"admin": {"*"}, "edit": {"create", "update", "patch", "delete"}, "view": {"get", "list", "watch"}, "crdview": {"get"},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: crd + "-v1-" + suffix}}
		w.Eventually("there is a role "+suffix, func() error {
			return w.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role)
		})

		if !slices.Equal(role.Rules[0].Verbs, verbs) || len(role.OwnerReferences) != 1 {
			t.Errorf("%s is %+v", role.Name, role)
		}
	}

	var roles rbacv1.ClusterRoleList

	w.Eventually("the group has three roles with rules", func() error {
		if err := w.Client.List(t.Context(), &roles); err != nil {
			return err
		}

		roles.Items = slices.DeleteFunc(roles.Items, func(r rbacv1.ClusterRole) bool {
			return r.Annotations["ambit.dev/owner"] != "OperatorGroup/"+own+"/"+g.Name || len(r.Rules) == 0 || len(r.Name) < 40
		})
		if len(roles.Items) != 3 {
			return fmt.Errorf("there are %d", len(roles.Items))
		}

		return nil
	})

	// They go with the group; those of the API with its definition.
	w.Remove(op)
	w.Remove(g)

	for i := range roles.Items {
		w.gone(&roles.Items[i])
	}
}

// TestCopiedCSV: what OLM copied into target namespaces is not installed a second time.
func TestCopiedCSV(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	copied := csv(own, "copied.v1")
	copied.Labels = map[string]string{"olm.copiedFrom": "elsewhere"}
	w.Make(copied)

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil {
		t.Fatal(err)
	}

	if copied.Status.Phase != "" || len(copied.Annotations) > 0 {
		t.Errorf("it was touched: %+v %+v", copied.Annotations, copied.Status)
	}
}

// TestNothingIsCaptured: a Deployment and a service account that somebody else made are not taken over.
func TestNothingIsCaptured(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}, Spec: deployment("theirs")}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
	w.Make(theirs, account)
	w.group(own, targets(own))

	op := csv(own, "op.v1")
	w.Make(op)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "exists that Ambit did not make")

	// With that out of the way it goes on by itself.
	w.Remove(theirs)
	w.succeeds(op)

	err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(account), account)
	if err != nil || len(account.OwnerReferences) > 0 {
		t.Errorf("the account is %+v (%v)", account.ObjectMeta, err)
	}
}
