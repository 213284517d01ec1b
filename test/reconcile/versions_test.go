package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	pending  = "Pending RequirementsNotMet"
	replaced = "Replacing BeingReplaced"
)

// newer makes a version that takes the place of the first one, and waits for a definition that is not there.
func (w *world) newer() *olmv1alpha1.ClusterServiceVersion {
	w.Helper()

	return w.csvIn(ops, "*", w.owning("absents", "Absent"), func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Name, c.Spec.Replaces = "op.v2", "op.v1"
	})
}

// TestReplacementThatFails: the older version goes on as long as the newer one does not run.
func TestReplacementThatFails(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*")
	w.installed()

	var newer *olmv1alpha1.ClusterServiceVersion

	w.groupAsks(func(w *world) { newer = w.newer() })
	w.reconcileGroup()
	is(w, "phases", []string{w.phase(), w.phaseOf("op.v2")}, []string{replaced, pending})
	w.names("the message", w.message(), "being replaced by csv: op.v2")
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})
	is(w, "what the operator is told", w.annotated(), "a,ops")

	w.groupAsks(func(w *world) { w.Remove(newer) })
	w.reconcileGroup()
	is(w, "phase afterwards", w.phase(), succeeded)
	is(w, "where it has permissions afterwards", w.served(), []string{"a", "ops"})
}

// TestNarrowedWhileReplaced: a target that goes is taken from a version that runs on because the newer one cannot be installed
// yet, and from one that waits for something itself.
func TestNarrowedWhileReplaced(t *testing.T) {
	t.Parallel()

	const inAAndB = `{"targetNamespaces":["a>","b>"]}`

	w := grouped(t)
	w.group("group", inAAndB)
	w.csv("*")
	w.installed()

	newer := w.newer()
	w.reconcileGroup()
	is(w, "phase", w.phase(), replaced)

	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>"]}`) })
	w.reconcileGroup()
	is(w, "phase of one that is narrowed", w.phase(), replaced)
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})
	is(w, "what the operator is told", w.annotated(), "a")

	w.Remove(newer)
	w.reconcileGroup()
	is(w, "phase of one that is not replaced any more", w.phase(), installing)
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase in the end", w.phase(), succeeded)

	w.groupAsks(func(w *world) { w.regroup(inAAndB) })
	w.reconcileGroup()
	is(w, "where it has permissions again", w.served(), []string{"a", "b", "ops"})
	is(w, "what the operator is told again", w.annotated(), "a,b")

	w.recsv(w.owning("absents", "Absent"))
	w.reconcileGroup()
	is(w, "phase of one that waits", w.phase(), pending)
	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>"]}`) })
	w.reconcileGroup()
	is(w, "phase of one that waits and is narrowed", w.phase(), pending)
	is(w, "where it has permissions while it waits", w.served(), []string{"a", "ops"})
	is(w, "what the operator is told while it waits", w.annotated(), "a")
}

// unreadable changes the number of the version, of which "none" is none.
func (w *world) unreadable(number string) {
	w.Helper()
	w.unreadableCalled("op.v1", number)
}

func (w *world) unreadableCalled(name, number string) {
	w.Helper()

	obj := scope.NewOLM(scope.KindCSV)
	obj.SetNamespace(w.ns(ops))
	obj.SetName(name)

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"`+number+`"}}`))
	if err := w.Client.Patch(w.Context(), obj, patch); err != nil {
		w.Fatal(err)
	}
}

// permissions are what the operator has, by namespace, with the UIDs of the bindings.
func (w *world) permissions() []string {
	w.Helper()

	var (
		bindings rbacv1.RoleBindingList
		whole    rbacv1.ClusterRoleBindingList
		out      []string
	)

	for _, list := range []client.ObjectList{&bindings, &whole} {
		if err := w.client.List(w.Context(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "ambit"}); err != nil {
			w.Fatal(err)
		}
	}

	for i := range bindings.Items {
		if b := &bindings.Items[i]; subjects(b.Subjects) == w.ns(ops)+"/op" {
			out = append(out, w.called(b.Namespace)+" "+string(b.UID))
		}
	}

	for i := range whole.Items {
		if b := &whole.Items[i]; subjects(b.Subjects) == w.ns(ops)+"/op" {
			out = append(out, "* "+string(b.UID))
		}
	}

	slices.Sort(out)

	return out
}

// TestUnreadableEdit: an operator that runs keeps what it may, its webhooks and what its users may while its CSV cannot be read
// because of a slip in an edit, as long as its group lets it.
func TestUnreadableEdit(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("things", "Thing")
	w.group("group", `{"targetNamespaces":["a>","b>"]}`)
	w.csv("*", inCluster("get nodes"), asking("v.example.com"), w.owning("things", "Thing"))
	w.installed()

	before, asked, gives := w.permissions(), w.consulted(), w.takes(w.groupRoles(ops, "group")["edit"])
	is(w, "how many webhooks and ClusterRoles of users there are before", []int{len(asked), len(gives)}, []int{1, 1})
	is(w, "where it has permissions before", w.served(), []string{"*", "a", "b", "ops"})

	w.groupAsks(func(w *world) { w.unreadable("none") })
	is(w, "deletions", deletions(w.reconcileGroup()), []string{})

	status, _ := w.csvs()[0].Object["status"].(map[string]any)
	is(w, "the reason", status["reason"], "InvalidSpec")
	is(w, "permissions while it cannot be read", w.permissions(), before)
	is(w, "what is asked while it cannot be read", w.consulted(), asked)
	is(w, "what users are given while it cannot be read", w.takes(w.groupRoles(ops, "group")["edit"]), gives)

	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>","b>","c>"]}`) })
	w.reconcileGroup()
	is(w, "what is asked when a target comes", w.consulted(), asked)

	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>"]}`) })
	w.reconcileGroup()
	is(w, "what is asked without a target", w.consulted(), []string{})
	is(w, "what users are given without a target", w.takes(w.groupRoles(ops, "group")["edit"]), gives)

	left := slices.DeleteFunc(slices.Clone(before), func(p string) bool { return strings.HasPrefix(p, "b ") })
	is(w, "permissions without a target", w.permissions(), left)

	w.groupAsks(func(w *world) { w.unreadable("1.0.0") })
	w.reconcileGroup()
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase", w.phase(), succeeded)
	is(w, "permissions once it can be read", w.permissions(), left)
	is(w, "what is asked once it can be read", w.consulted(), []string{strings.Replace(validating, "(a,ops)", "(a)", 1)})

	w.unreadable("none")
	w.groupAsks(func(w *world) { w.Remove(w.groupNamed(ops, "group")) })
	w.reconcileGroup()
	is(w, "where it has permissions without its group", w.served(), []string{})
	is(w, "what is asked without its group", w.consulted(), []string{})
}

// inCluster has the operator ask for permissions in the whole cluster.
func inCluster(rule string) func(*olmv1alpha1.ClusterServiceVersion) {
	return func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []olmv1alpha1.StrategyDeploymentPermissions{{
			ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{testbed.Rule(rule)},
		}}
	}
}

// deletions are those of some writes that delete.
func deletions(wrote []string) []string {
	out := []string{}

	for _, what := range wrote {
		if strings.HasPrefix(what, "delete ") {
			out = append(out, what)
		}
	}

	return out
}

// TestWhatIsNoLongerAskedFor: what a CSV does not ask for any more goes from the Deployment, and what somebody else put beside it
// stays.
func TestWhatIsNoLongerAskedFor(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		pod := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "NEW", Value: "x"}, {Name: "OLD", Value: "x"}}
		pod.Containers = append(pod.Containers, corev1.Container{Name: "proxy", Image: "registry.example.com/proxy:1"})
	})
	w.installed()

	d := w.live("op")
	is(w, "how many containers there are before", len(d.Spec.Template.Spec.Containers), 2)
	w.Change(d, func() { metav1.SetMetaDataLabel(&d.ObjectMeta, "theirs", "yes") })

	w.groupAsks(func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
			pod := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
			pod.Containers = pod.Containers[:1]
			pod.Containers[0].Env = pod.Containers[0].Env[:1]
		})
	})
	w.reconcileGroup()

	is(w, "how many containers there are", len(w.live("op").Spec.Template.Spec.Containers), 1)
	is(w, "the variables", w.shows(envOf), `[{"name":"NEW","value":"x"},`+condition+`]`)
	is(w, "somebody else's label", w.live("op").Labels["theirs"], "yes")
}

// TestDeploymentThatIsNoLongerAskedFor: a Deployment that an edit takes from a version goes, and the others stay as they are.
func TestDeploymentThatIsNoLongerAskedFor(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		second := *(*specs)[0].DeepCopy()
		second.Name = "second"
		*specs = append(*specs, second)
	})
	w.reconcileGroup()

	was := w.live("op")
	is(w, "there is a second one", w.live("second").Name, "second")

	w.groupAsks(func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
			specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
			*specs = (*specs)[:1]
		})
	})
	is(w, "deletions", deletions(w.reconcileGroup()), []string{"delete deployments ops/second"})
	is(w, "the version of the other", w.live("op").ResourceVersion, was.ResourceVersion)

	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "second"}, &appsv1.Deployment{})
	is(w, "it is gone", apierrors.IsNotFound(err), true)
}

// TestDefaultsAreNoDrift: what the API server fills in is not written again, whatever else happens to the CSV.
func TestDefaultsAreNoDrift(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		container := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		container.Ports = []corev1.ContainerPort{{ContainerPort: 8081}}
		container.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8081)},
		}}
		container.ReadinessProbe = container.LivenessProbe.DeepCopy()
		container.ReadinessProbe.PeriodSeconds = 7
	})
	w.installed()

	if probe := w.live("op").Spec.Template.Spec.Containers[0].LivenessProbe; probe == nil || probe.PeriodSeconds == 0 {
		t.Errorf("the API server filled in nothing: %+v", probe)
	}

	w.groupAsks(func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"touched": "yes"} })
	})
	is(w, "writes", w.reconcileGroup(), []string(nil))
}

// TestCopiedCSV: what OLM copied into target namespaces is not installed a second time.
func TestCopiedCSV(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Name, c.Labels = "copied.v1", map[string]string{olmv1alpha1.CopiedLabelKey: "elsewhere"}
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "copied"
	})

	made := w.versionCalled("copied.v1")

	w.csv("*")
	w.installed()

	copied := w.versionCalled("copied.v1")
	is(w, "the version of the copy", copied.ResourceVersion, made.ResourceVersion)
	is(w, "its phase and annotations", []any{copied.Status.Phase, len(copied.Annotations)}, []any{"", 0})

	var all appsv1.DeploymentList
	if err := w.client.List(t.Context(), &all, client.InNamespace(w.ns(ops))); err != nil {
		t.Fatal(err)
	}

	is(w, "how many Deployments there are", len(all.Items), 1)
}

// TestNothingIsCaptured: a Deployment and a service account that somebody else made are not taken over.
func TestNothingIsCaptured(t *testing.T) {
	t.Parallel()

	w := grouped(t)

	pods := podTemplate("theirs")
	theirs := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"},
		Spec:       appsv1.DeploymentSpec{Selector: selectorOf(&pods), Template: pods},
	}
	account := testbed.Account(w.ns(ops), "op")
	w.Make(theirs, account)

	// As it is restarted for a scope: that does not make it Ambit's.
	restart := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"ambit.dev/list-hash":"1"}}}}}`))
	if err := w.Client.Patch(t.Context(), theirs, restart, client.FieldOwner("ambit")); err != nil {
		t.Fatal(err)
	}

	w.group("group", inA)
	w.csv("*")
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "Deployment op exists that Ambit did not make")
	is(w, "the Deployment", w.live("op").ResourceVersion, theirs.ResourceVersion)

	// With that out of the way it goes on by itself.
	w.groupAsks(func(w *world) { w.Remove(theirs) })
	w.installed()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}

	is(w, "the owners of the account", len(account.OwnerReferences), 0)
}

// TestStaticGroup: a static group provides what it was told, and nothing more.
func TestStaticGroup(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("things", "Thing")
	w.group("group", `{"targetNamespaces":["ops>"],"staticProvidedAPIs":true}`)
	w.csv("*", w.owning("things", "Thing"))
	w.reconcileGroup()
	is(w, "phase", w.phase(), "Failed CannotModifyStaticOperatorGroupProvidedAPIs")
	w.names("the message", w.message(), "static provided apis")

	const both = "Tea.v1.g.example.com,Thing.v1.g.example.com"

	w.groupAsks(static("Tea.v1." + apiGroup + ",Thing.v1." + apiGroup))
	w.installed()

	g := w.groupNamed(ops, "group")
	w.statusOf(g)
	is(w, "what it provides", w.called(g.Annotations[operatorsv1.ProvidedAPIsAnnotation]), both)
}

// TestRequirementsAreToldOneByOne: the status says of each requirement whether it is met, and through which phases an operator
// went once all of them are.
func TestRequirementsAreToldOneByOne(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)

	there := w.definition("things", "Thing")
	missing := "absents." + w.long(apiGroup)

	w.csv("*", w.owning("things", "Thing"), w.owning("absents", "Absent"), func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.MinKubeVersion = "99.0.0"
	})
	w.reconcileGroup()
	is(w, "phase", w.phase(), pending)
	w.names("the message", w.message(), w.called(missing), "minKubeVersion is 99.0.0")

	told := map[string]olmv1alpha1.StatusReason{}
	for _, s := range w.versionCalled("op.v1").Status.RequirementStatus {
		told[s.Name] = s.Status
	}

	is(w, "what is told of the one that is there", told[there], olmv1alpha1.RequirementStatusReasonPresent)
	is(w, "what is told of the one that is missing", told[missing], olmv1alpha1.RequirementStatusReasonNotPresent)
	is(w, "what is told of the version", told["op.v1"], olmv1alpha1.RequirementStatusReasonPresentNotSatisfied)

	w.groupAsks(func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
			c.Spec.MinKubeVersion, c.Spec.CustomResourceDefinitions.Owned = "1.20.0", nil
		})
	})
	w.installed()

	conditions := w.versionCalled("op.v1").Status.Conditions
	phases := make([]string, 0, len(conditions))

	for _, c := range conditions {
		phases = append(phases, string(c.Phase))
	}

	is(w, "through which phases it went", slices.Compact(phases), []string{"Pending", "InstallReady", "Installing", "Succeeded"})
}

// TestOneDeploymentOfTwoVersions: of two versions that list a Deployment of one name, of which none replaces the other, one has
// it and the other says so. They do not write it in turns, also not the Service and the Secret that go with it.
func TestOneDeploymentOfTwoVersions(t *testing.T) {
	t.Parallel()

	const conflict = "Failed OwnerConflict"

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", asking("v.example.com"), func(c *olmv1alpha1.ClusterServiceVersion) { c.Name = "other.v1" })
	w.groupAsks(func(w *world) { w.csv("*", asking("v.example.com")) })
	w.reconcileGroup()

	phases := []string{w.phase(), w.phaseOf("other.v1")}
	is(w, "how many of the two are in conflict", slices.Sorted(slices.Values(phases)), []string{conflict, installing})

	has, other := "op.v1", "other.v1"
	if phases[0] == conflict {
		has, other = other, has
	}

	w.names("the message", w.messageOf(other), "clusterserviceversion "+has+" of this namespace has deployment op already")
	is(w, "the owners of the Deployment", w.live("op").OwnerReferences[0].Name, has)

	w.rollOut()
	w.reconcileGroup()
	is(w, "phases once it runs", []string{w.phaseOf(has), w.phaseOf(other)}, []string{succeeded, conflict})

	w.groupAsks(func(w *world) { w.Remove(w.versionCalled(has)) })
	w.reconcileGroup()
	is(w, "phase of the other once it is gone", w.phaseOf(other), installing)
	is(w, "the owners of the Deployment in the end", w.live("op").OwnerReferences[0].Name, other)

	w.groupAsks(func(w *world) {
		c := w.versionCalled(other)
		w.Change(c, func() {
			specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
			*specs = append(*specs, (*specs)[0])
		})
	})
	w.reconcileGroup()
	is(w, "phase of one that lists it twice", w.phaseOf(other), "Failed InvalidInstallStrategy")
	w.names("the message", w.messageOf(other), "lists deployment \"op\" twice")
}
