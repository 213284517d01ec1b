package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	subscription = "etcd"
	namespace    = "scoped"
)

func now(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

// kafka is a catalog whose operator owns two definitions, one of which it does not hold, and requires two.
func kafka() *catalog.Catalog {
	marked := strings.Replace(csv("kafka.v1", "1.0.0", "",
		"customresourcedefinitions:",
		"  owned:",
		"  - {name: users.example.com, version: v2, kind: User}",
		"  - {name: topics.example.com, version: v1, kind: Topic}",
		"  - {name: topics.example.com, version: v1beta1, kind: Topic}",
		"  - {name: gone.example.com, version: v1, kind: Gone}",
		"  required:",
		"  - {name: etcds.example.com, version: v1, kind: Etcd}",
		"  - {name: others.example.com, version: v1, kind: Other}",
	), "metadata: {name: kafka.v1}", `metadata:
    name: kafka.v1
    namespace: placeholder
    uid: abc
    finalizers: [a/b]
    ownerReferences: [{apiVersion: v1, kind: Node, name: [7], uid: u}]
    labels: {olm.copiedFrom: elsewhere, mine: "yes"}
    annotations: {olm.targetNamespaces: "", olm.operatorGroup: spoof, ambit.dev/steps: x, capabilities: Full}
  status: {phase: Succeeded}`, 1)

	return parse(`
- packageName: kafka
  channels: [{name: a, currentCSV: kafka.v1}]
- packageName: etcd
  channels: [{name: a, currentCSV: etcd.v1}]
`, marked+csv("etcd.v1", "1.0.0", "", "customresourcedefinitions: {owned: [{name: etcds.example.com, version: v1, kind: Etcd}]}"),
		crd("topics.example.com", "v1beta1")+crd("topics.example.com", "v1", "v1beta1")+crd("users.example.com", "v1", "v2")+
			crd("etcds.example.com", "v1"))
}

func steps(t *testing.T) *catalog.Steps {
	t.Helper()

	c := kafka()
	if len(c.Problems) > 0 {
		t.Fatal(c.Problems)
	}

	return c.Steps(c.Version("kafka.v1"), catalog.Origin{
		Source: "operators", SourceNamespace: "catalogs", Package: "kafka", Namespace: namespace,
	})
}

func states(s *catalog.Steps, state olmv1alpha1.StepStatus) []olmv1alpha1.StepStatus {
	out := make([]olmv1alpha1.StepStatus, len(s.Objects))
	for i := range out {
		out[i] = state
	}

	return out
}

func TestSteps(t *testing.T) {
	t.Parallel()

	s := steps(t)
	golden(t, "steps", map[string]any{
		"plan": s.Plan(states(s, olmv1alpha1.StepStatusUnknown)), "notes": s.Notes, "needs": catalog.Needs(s.Objects),
	})

	// What a catalog says about who serves a ClusterServiceVersion, and whose it is, would be believed by those who read it.
	csv := s.Objects[len(s.Objects)-1]
	for key := range csv.GetAnnotations() {
		if strings.HasPrefix(key, "olm.") {
			t.Errorf("the catalog sets the annotation %s", key)
		}
	}

	if len(csv.GetOwnerReferences())+len(csv.GetFinalizers()) > 0 || csv.GetUID() != "" {
		t.Error("the catalog says what only a controller may say")
	}
}

func TestInstallPlan(t *testing.T) {
	t.Parallel()

	s := steps(t)
	o := &catalog.Owner{Name: subscription, UID: "0-1-2", Approval: olmv1alpha1.ApprovalManual}
	none := func(string) (string, bool) { return "", false }

	first := catalog.NewInstallPlan(o, s, none)
	golden(t, "installplan", first)

	mine := first.Annotations[catalog.AnnotationSteps]

	again := catalog.NewInstallPlan(o, steps(t), func(name string) (string, bool) { return mine, name == first.Name })
	if again.Name != first.Name {
		t.Errorf("after a crash, %s would come beside %s", again.Name, first.Name)
	}

	other := catalog.NewInstallPlan(o, s, func(name string) (string, bool) { return "another", name == first.Name })
	if other.Name == first.Name {
		t.Error("a plan takes the name of another one")
	}

	automatic := catalog.NewInstallPlan(&catalog.Owner{Name: o.Name, UID: o.UID, Approval: olmv1alpha1.ApprovalAutomatic}, s, none)
	if !automatic.Spec.Approved || automatic.Name == first.Name {
		t.Errorf("who asks for no approval any more gets another plan: %+v", automatic.Spec)
	}

	s.Objects[0].SetLabels(map[string]string{"changed": "yes"})

	if changed := catalog.NewInstallPlan(o, s, none); changed.Annotations[catalog.AnnotationSteps] == mine {
		t.Error("what was approved is not what would be installed")
	}
}

func TestInstallPlanStatus(t *testing.T) {
	t.Parallel()

	s := steps(t)
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: namespace, Name: "scoped"}
	told := map[string]any{}

	was := olmv1alpha1.InstallPlanStatus{}
	missing := []authority.Place{
		{Rules: catalog.Needs(s.Objects)[0].Rules}, {Namespace: namespace, Rules: catalog.Needs(s.Objects)[2].Rules},
	}

	for i, p := range []struct {
		name string
		p    catalog.Progress
	}{
		{"1 waits for approval", catalog.Progress{States: states(s, olmv1alpha1.StepStatusUnknown)}},
		{"2 has no group", catalog.Progress{
			Approved: true, States: states(s, olmv1alpha1.StepStatusUnknown),
			Failure: &catalog.Failure{Waiting: true, Reason: olmv1alpha1.InstallPlanReasonInstallCheckFailed, Message: catalog.NoGroup},
		}},
		{"3 is refused", catalog.Progress{
			Approved: true, States: states(s, olmv1alpha1.StepStatusNotPresent), Account: account,
			Failure: &catalog.Failure{
				Reason: olmv1alpha1.InstallPlanReasonComponentFailed,
				Message: "error creating clusterrole x: forbidden. " +
					catalog.MissingWords("service account a/b", missing, namespace, "install-x"),
			},
		}},
		{"4 is complete", catalog.Progress{Approved: true, Account: account, States: states(s, olmv1alpha1.StepStatusCreated)}},
	} {
		p.p.Steps, p.p.Now = s, now(i)

		first := p.p.Status(&was)

		p.p.Now = now(i + 30)
		if second := p.p.Status(&first); !same(t, first, second) {
			t.Errorf("%s: the same news change the status", p.name)
		}

		was = first
		short := *first.DeepCopy()

		for _, step := range short.Plan {
			step.Resource.Manifest = ""
		}

		told[p.name] = short
	}

	told["5 was superseded"] = catalog.Superseded(&olmv1alpha1.InstallPlanStatus{}, "install-y", now(9))
	golden(t, "installplan-status", told)
}

func same(t *testing.T, a, b any) bool {
	t.Helper()

	left, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}

	right, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}

	return string(left) == string(right)
}

func TestNamesAreNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9]([-a-z0-9._]{0,60}[a-z0-9])?`)

		label := scope.PackageLabel(text.Draw(t, "package"), text.Draw(t, "namespace"))
		if wrong := validation.IsQualifiedName(label); len(wrong) > 0 {
			t.Fatalf("%q: %v", label, wrong)
		}
	})
}
