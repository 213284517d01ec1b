package report_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func jsonSize(t interface{ Fatal(args ...any) }, value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return len(text)
}

// TestStatusFitsIntoItsObject holds that a status fits beside whatever its author wrote, that Ready stays, that of each list the
// first are kept, and that it does not differ when the object grows by a little, as it does with each write.
func TestStatusFitsIntoItsObject(t *testing.T) {
	t.Parallel()

	const etcd = 1536 << 10

	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{1,63}`)
		names := func(label string, most int) []string {
			out := make([]string, rapid.IntRange(0, most).Draw(t, label))
			for i := range out {
				out[i] = fmt.Sprintf("%s-%05d", strings.Repeat("n", rapid.IntRange(1, 57).Draw(t, "length")), i)
			}

			slices.Sort(out)

			return out
		}

		nss := &operatorv1.NamespaceScope{}
		nss.Spec.NamespaceMembers = make([]string, rapid.IntRange(0, 20_000).Draw(t, "spec"))
		for i := range nss.Spec.NamespaceMembers {
			nss.Spec.NamespaceMembers[i] = strings.Repeat("m", 57) + fmt.Sprintf("-%05d", i)
		}

		nss.Annotations = map[string]string{"note": strings.Repeat("x", rapid.IntRange(0, 150_000).Draw(t, "annotation"))}

		long := strings.Repeat(name.Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		full := operatorv1.NamespaceScopeStatus{
			ValidatedMembers: names("validated", 300), UnprojectedRoles: []string{"a", long, "z"},
			InjectedWorkloads: names("injected", 50), ManagedCSVList: names("managed", 50), PatchedWebhookList: []string{long},
			FailedMembers: []operatorv1.FailedMember{{Namespace: "a", Message: long}, {Namespace: "b", Message: long}},
			Conditions: []metav1.Condition{
				{Type: "AccountsFound", Message: long}, {Type: "Ready", Message: long}, {Type: "RolesFound", Message: long},
			},
		}

		if rapid.Bool().Draw(t, "many") {
			for i := range 15_000 {
				full.ValidatedMembers = append(full.ValidatedMembers, strings.Repeat("z", 57)+fmt.Sprintf("-%05d", i))
			}
		}

		cut := *full.DeepCopy()
		report.Cut(&cut, report.StatusLimit(nss, &nss.Spec))
		nss.Status = cut

		if rest := jsonSize(t, nss.Spec) + jsonSize(t, nss.Annotations); rest < etcd-64<<10 && jsonSize(t, nss) > etcd {
			t.Fatalf("the object has %d bytes, %d of them its author's", jsonSize(t, nss), rest)
		}

		if meta.FindStatusCondition(cut.Conditions, "Ready") == nil || len(cut.Conditions) != 3 {
			t.Fatal("a condition is missing")
		}

		told := len(cut.ValidatedMembers)
		if !slices.Equal(cut.ValidatedMembers, full.ValidatedMembers[:told]) {
			t.Fatal("other members than the first are told")
		}

		if total := int(cut.ValidatedMembersTotal); told < len(full.ValidatedMembers) && total != len(full.ValidatedMembers) ||
			told == len(full.ValidatedMembers) && total != 0 {
			t.Fatalf("%d of %d are told, and the total is %d", told, len(full.ValidatedMembers), total)
		}

		if told == 0 && len(full.ValidatedMembers) > 0 {
			t.Fatal("not one member is told")
		}

		again := *full.DeepCopy()
		if report.Cut(&again, report.StatusLimit(nss, &nss.Spec)); jsonSize(t, again) != jsonSize(t, cut) {
			t.Fatal("the same status is cut in another way")
		}
	})
}

// TestEventsOfACutList: a name that pushes others out of a list that was cut does not make them leave.
func TestEventsOfACutList(t *testing.T) {
	t.Parallel()

	p := plan.Plan{Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}}}
	out := &apply.Outcome{Scopes: make([]apply.ScopeOutcome, 1)}

	before := &operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"b", "c", "d"}, ValidatedMembersTotal: 9}
	after := &operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"a", "b", "d"}, ValidatedMembersTotal: 9}

	var got []string
	for _, e := range report.EventsOf(&p, out, 0, before, after) {
		got = append(got, e.Reason+" "+e.Message)
	}

	want := []string{"NamespaceAdded added to the watch list: a", "NamespaceRemoved removed from the watch list: c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	after.ValidatedMembers = []string{"a", "b", "c"}

	if got := report.EventsOf(&p, out, 0, before, after); len(got) != 1 {
		t.Errorf("got %v, want one event for a", got)
	}
}
