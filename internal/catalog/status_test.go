package catalog_test

import (
	"fmt"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

func source(content *catalog.Catalog) *catalog.Source {
	return &catalog.Source{
		Namespace: "catalogs", Name: "operators", UID: "7-8-9", Generation: 3,
		Type: olmv1alpha1.SourceTypeConfigmap, ConfigMap: "manifests", Content: content,
		Seen: olmv1alpha1.ConfigMapResourceReference{Name: "manifests", Namespace: "catalogs", UID: "cm", ResourceVersion: "17"},
	}
}

func TestCatalogSourceStatus(t *testing.T) {
	t.Parallel()

	untidy := parse("- packageName: etcd\n  channels: [{name: a, currentCSV: etcd.v1}]\n- 7", csv("etcd.v1", "1.0.0", ""), "")
	image := source(nil)
	image.Type = olmv1alpha1.SourceTypeGrpc
	strange, nameless := source(nil), source(nil)
	strange.Type, nameless.ConfigMap = "ftp", ""

	told := map[string]any{}
	was := olmv1alpha1.CatalogSourceStatus{}

	for i, s := range []struct {
		name   string
		source *catalog.Source
	}{
		{"1 nothing there", source(nil)},
		{"2 in order", source(etcd())},
		{"3 untidy", source(untidy)},
		{"4 empty", source(parse("", "", ""))},
		{"5 an image", image},
		{"6 strange", strange},
		{"7 without a name", nameless},
	} {
		first := s.source.Status(&was, now(i))
		if second := s.source.Status(&first, now(i+30)); !same(t, first, second) {
			t.Errorf("%s: the same news change the status", s.name)
		}

		was = first
		told[s.name] = first
	}

	golden(t, "catalogsource-status", told)
}

func plan(phase olmv1alpha1.InstallPlanPhase, message string) *olmv1alpha1.InstallPlan {
	p := &olmv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "install-4plp8", UID: types.UID("1-2-3"), ResourceVersion: "117359"},
		Status:     olmv1alpha1.InstallPlanStatus{Phase: phase},
	}

	if message != "" {
		p.Status.Conditions = []olmv1alpha1.InstallPlanCondition{olmv1alpha1.ConditionFailed(olmv1alpha1.InstallPlanInstalled,
			olmv1alpha1.InstallPlanReasonComponentFailed, message, nil)}
	}

	return p
}

func TestSubscriptionStatus(t *testing.T) {
	t.Parallel()

	choose := func(installed string) *catalog.Choice {
		choice, err := etcd().Choose(&catalog.Request{Package: "etcd", Installed: installed})
		if err != nil {
			t.Fatal(err)
		}

		return choice
	}
	problem := &catalog.Problem{Reason: catalog.ReasonUnsatisfiable, Message: "constraints not satisfiable: no operators found"}
	healthy := source(etcd())

	told := map[string]any{}
	was := olmv1alpha1.SubscriptionStatus{}

	for i, s := range []struct {
		name string
		seen catalog.Seen
	}{
		{"01 without a catalog", catalog.Seen{SourceNamespace: "catalogs", SourceName: "operators"}},
		{"02 with a catalog that is not read", catalog.Seen{Source: source(nil)}},
		{"03 unsatisfiable", catalog.Seen{Source: healthy, Problem: problem}},
		{"04 planned", catalog.Seen{Source: healthy, Choice: choose(""), Plan: plan("", "")}},
		{"05 waits for approval", catalog.Seen{Source: healthy, Choice: choose(""), Plan: plan("RequiresApproval", "")}},
		{"06 waits for a group", catalog.Seen{Source: healthy, Choice: choose(""), Plan: plan("Installing", catalog.NoGroup)}},
		{"07 refused", catalog.Seen{Source: healthy, Choice: choose(""), Plan: plan("Failed", "error creating clusterrole x")}},
		{"08 installed", catalog.Seen{Source: healthy, Choice: choose("etcd.v3"), Installed: "etcd.v3", Plan: plan("Complete", "")}},
		{"09 held", catalog.Seen{Source: healthy, Choice: choose("etcd.v2"), Installed: "etcd.v2", Held: true}},
		{"10 upgrading", catalog.Seen{
			Source: healthy, Choice: choose("etcd.v2"), Installed: "etcd.v2", Plan: plan("Installing", ""),
		}},
		{"11 the catalog goes", catalog.Seen{SourceNamespace: "catalogs", SourceName: "operators", Installed: "etcd.v3"}},
		{"12 no catalog is looked for", catalog.Seen{Problem: problem}},
	} {
		s.seen.Now = now(i)

		first := s.seen.Status(&was)

		s.seen.Now = now(i + 30)
		if second := s.seen.Status(&first); !same(t, first, second) {
			t.Errorf("%s: the same news change the status", s.name)
		}

		was = first
		told[s.name] = first
	}

	golden(t, "subscription-status", told)
}

// TestTransitionTimesFollowChanges holds that a condition keeps its time while it says the same thing, in other words.
func TestTransitionTimesFollowChanges(t *testing.T) {
	t.Parallel()

	var status olmv1alpha1.SubscriptionStatus

	for i := range 3 {
		s := catalog.Seen{
			Now: now(i), Source: source(etcd()),
			Problem: &catalog.Problem{Reason: catalog.ReasonUnsatisfiable, Message: fmt.Sprint("for the ", i, ". time")},
		}
		status = s.Status(&status)
	}

	c := status.GetCondition(olmv1alpha1.SubscriptionResolutionFailed)
	if c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(new(now(0))) || status.LastUpdated != now(2) {
		t.Errorf("%+v", status)
	}
}
