package plan

import (
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestNothingDiffers: where nothing changes, there is no heading with nothing below it.
func TestNothingDiffers(t *testing.T) {
	t.Parallel()

	p := &printer{paint: terminal.Paint(false)}
	if err := p.diffs(nil, &Planned{Installs: &Installs{}}); err != nil || p.Text().String() != "" {
		t.Errorf("it prints %q, %v", p.Text().String(), err)
	}

	for range 2 {
		p.diff("Role m/r", "a\n", "b\n")
	}

	if text := p.Text().String(); !strings.HasPrefix(text, "\nDifferences\nRole m/r\n") || strings.Count(text, "Differences") != 1 {
		t.Errorf("two differences have another heading:\n%s", text)
	}
}

// TestDiffIsWhatIsWritten holds that a difference has what Ambit writes, and nothing that it leaves alone.
func TestDiffIsWhatIsWritten(t *testing.T) {
	t.Parallel()

	rules := func(verb string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	}
	role := plan.Copy{Object: projected.Object{Kind: projected.Role, Name: "r", Rules: rules("list")}}
	aggregated := plan.Copy{Object: projected.Object{Kind: projected.ClusterRole, Name: "c", Aggregates: []string{"a"}}}

	live := func(o *plan.Copy, verb string) client.Object {
		obj := o.In("m")
		labels := map[string]string{"theirs": "label"}
		maps.Copy(labels, obj.GetLabels())
		obj.SetLabels(labels)
		obj.SetAnnotations(map[string]string{"theirs": "annotation"})
		obj.SetFinalizers([]string{"theirs/finalizer"})

		switch obj := obj.(type) {
		case *rbacv1.Role:
			obj.Rules = rules(verb)
		case *rbacv1.ClusterRole:
			obj.Rules = rules(verb)
		}

		return obj
	}

	for name, tc := range map[string]struct {
		reason string
		action plan.Action
		to     *plan.Copy
		live   client.Object
		has    []string
		hasNot []string
	}{
		"update": {
			"an update leaves alone what others put there", plan.Update, &role, live(&role, "get"),
			[]string{"-  - get", "+  - list"}, []string{"-    theirs", "-  finalizers"},
		},
		"adopted": {
			"and so does the adoption of what lost its marks", plan.Create, &role, live(&role, "get"),
			[]string{"-  - get", "+  - list"}, []string{"-    theirs", "-  finalizers"},
		},
		"aggregated": {
			"rules that the cluster fills in stay", plan.Update, &aggregated, live(&aggregated, "get"),
			nil, []string{"-  - get", "-rules"},
		},
		"delete": {"what is deleted goes whole", plan.Delete, nil, live(&role, "get"), []string{"-    theirs: label"}, []string{"+"}},
		"create": {"what is made is new", plan.Create, &role, nil, []string{"+  - list"}, []string{"\n  -"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			key := facts.ProjectedKey{Kind: projected.Role, Name: "r"}
			p := &printer{paint: terminal.Paint(false)}
			c := &predict.Change{Change: plan.Change{Action: tc.action, Namespace: "m", Key: key, Copy: tc.to}}

			if err := p.diffOf(tc.live, c); err != nil {
				t.Fatal(err)
			}

			for _, text := range tc.has {
				if !strings.Contains(p.Text().String(), text) {
					t.Errorf("%s: there is no %q:\n%s", tc.reason, text, p.Text().String())
				}
			}

			for _, text := range tc.hasNot {
				if strings.Contains(p.Text().String(), text) {
					t.Errorf("%s: there is %q:\n%s", tc.reason, text, p.Text().String())
				}
			}
		})
	}
}
