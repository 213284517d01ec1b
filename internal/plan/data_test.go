package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

// TestPlanIsData holds that nothing but data crosses from the planner to whoever applies a plan: no function, and nothing that
// cannot be printed, compared and written down.
func TestPlanIsData(t *testing.T) {
	t.Parallel()

	seen := map[reflect.Type]struct{}{}
	for _, of := range []any{plan.Plan{}, plan.ListWrite{}, plan.Members{}} {
		walk(t, seen, reflect.TypeOf(of), reflect.TypeOf(of).String())
	}
}

func walk(t *testing.T, seen map[reflect.Type]struct{}, of reflect.Type, at string) {
	t.Helper()

	if _, known := seen[of]; known {
		return
	}

	seen[of] = struct{}{}

	switch of.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		t.Errorf("%s is a %s", at, of.Kind())
	case reflect.Interface:
		// A selector has a text of its own, and the value of an operation is any JSON.
		if of != reflect.TypeFor[labels.Selector]() && !strings.HasSuffix(at, ".Patch[].Value") {
			t.Errorf("%s may be anything", at)
		}
	case reflect.Map:
		walk(t, seen, of.Key(), at+"[key]")
		walk(t, seen, of.Elem(), at+"[]")
	case reflect.Pointer, reflect.Slice, reflect.Array:
		walk(t, seen, of.Elem(), at+"[]")
	case reflect.Struct:
		// Times and quantities of others write themselves down.
		if !strings.HasPrefix(of.PkgPath(), "github.com/ambit-k8s/") &&
			reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) {
			return
		}

		for field := range of.Fields() {
			if !field.IsExported() {
				t.Errorf("%s.%s is not exported", at, field.Name)
			}

			walk(t, seen, field.Type, at+"."+field.Name)
		}
	default:
	}
}

// TestPlanSurvivesJSON holds that a plan that is written down and read again is the same plan, and does the same.
func TestPlanSurvivesJSON(t *testing.T) {
	t.Parallel()

	for name, random := range map[string]func(*rapid.T) ([]scope.Scope, *facts.Facts){
		"NamespaceScopes": injectingWorld, "ScopeTemplates": clusterScopes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				scopes, f := random(t)

				// The second plan finds what the first one made, and takes some of it away.
				for range 2 {
					p, other := plan.New(scopes, f), fork(f)
					again := written(t, &p)
					resolvesTheSame(t, &p, again)

					carryOut(f, &p)
					carryOut(other, again)

					if !sameData().DeepEqual(f.Projected, other.Projected) ||
						!sameData().DeepEqual(f.OperatorNamespace, other.OperatorNamespace) {
						t.Fatalf("the plan does something else after JSON:\n%+v\n%+v", f, other)
					}

					f.Now = f.Now.Add(2 * time.Minute)

					if len(scopes) > 0 {
						scopes[rapid.IntRange(0, len(scopes)-1).Draw(t, "leaves")].Members = scope.Members{}
					}
				}
			})
		})
	}
}

// resolvesTheSame holds that two plans are finished the same way, whatever becomes of their first writes.
func resolvesTheSame(t *rapid.T, p, again *plan.Plan) {
	missing, refused := someMembers(t, p, "missing"), someMembers(t, p, "refused")

	for i := range p.Lists {
		one, other := plan.ResolveList(&p.Lists[i], missing, refused), plan.ResolveList(&again.Lists[i], missing, refused)
		if !sameData().DeepEqual(one, other) {
			t.Fatalf("list %s becomes %+v, and after JSON %+v", p.Lists[i].Name, one, other)
		}
	}

	for i := range p.Webhooks {
		one, other := plan.ResolveWebhook(&p.Webhooks[i], []string{"x"}), plan.ResolveWebhook(&again.Webhooks[i], []string{"x"})
		if !sameData().DeepEqual(one, other) {
			t.Fatalf("%s gets %+v, and after JSON %+v", p.Webhooks[i].Target(), one, other)
		}
	}

	for i := range p.Restarts {
		lists := map[string]string{"list1": rapid.SampledFrom([]string{"", "new"}).Draw(t, "hash")}
		if one, other := plan.ResolveHash(p.Restarts[i].Reads, lists), plan.ResolveHash(again.Restarts[i].Reads, lists); one != other {
			t.Fatalf("%s restarts for %s, and after JSON for %s", p.Restarts[i].Reader(), one, other)
		}
	}
}

// someMembers are some of those of a plan's scopes.
func someMembers(t *rapid.T, p *plan.Plan, what string) plan.Members {
	return those(p, func(int, string) bool { return rapid.Bool().Draw(t, what) })
}

// injectingWorld is a random cluster with random scopes, some of which inject into what is there.
func injectingWorld(t *rapid.T) ([]scope.Scope, *facts.Facts) {
	scopes, f := world(t)
	f.Names = newNames()

	for i := range f.OperatorNamespace.Workloads {
		w := &f.OperatorNamespace.Workloads[i]
		w.OwnedByOLM = false
		w.PodSpec = facts.PodSpec{Containers: []facts.Container{{Name: "a"}}}
		w.Applied = rapid.Bool().Draw(t, "applied")

		if rapid.Bool().Draw(t, "set") {
			w.PodSpec.Containers[0].Env = []corev1.EnvVar{{Name: "NAMESPACES", Value: "a"}}
		}
	}

	limited, hooked := limitedTo(rapid.SampledFrom([]string{"", "a", "ops"}).Draw(t, "limited"))
	f.OperatorNamespace.CSVs, f.OperatorNamespace.Webhooks = hooked.OperatorNamespace.CSVs, hooked.OperatorNamespace.Webhooks
	f.OperatorNamespace.CSVsListed = rapid.Bool().Draw(t, "CSVs")
	f.OperatorNamespace.CSVs[0].Deployments = []facts.CSVDeployment{{
		Name: "d", PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
	}}

	for i := range scopes {
		scopes[i].InjectCSVs = rapid.Bool().Draw(t, "into CSVs")
		scopes[i].Labels = limited[0].Labels
		scopes[i].Delegate = rapid.SampledFrom([]string{"", "delegate"}).Draw(t, "delegate")
		scopes[i].Barred = rapid.Bool().Draw(t, "barred")
		scopes[i].MayNotList = scopes[i].Barred && rapid.Bool().Draw(t, "may not list")

		if rapid.Bool().Draw(t, "into workloads") {
			scopes[i].InjectWorkloads = &scope.WorkloadInjection{Variable: "NAMESPACES", Replace: rapid.Bool().Draw(t, "replaces")}
		}
	}

	return scopes, f
}

// fork is the cluster as it is, so that each of two plans can change one.
func fork(f *facts.Facts) *facts.Facts {
	out := *f
	out.Projected = map[string]map[facts.ProjectedKey]*facts.Projected{}

	for namespace, objects := range f.Projected {
		out.Projected[namespace] = maps.Clone(objects)
	}

	out.OperatorNamespace.ConfigMaps = maps.Clone(f.OperatorNamespace.ConfigMaps)
	out.OperatorNamespace.Workloads = slices.Clone(f.OperatorNamespace.Workloads)
	out.OperatorNamespace.Pods = slices.Clone(f.OperatorNamespace.Pods)

	return &out
}

// written is a plan that was written down and read again. The selectors of its scopes are written as their text.
func written(t *rapid.T, p *plan.Plan) *plan.Plan {
	plain := *p
	plain.Scopes = slices.Clone(p.Scopes)

	for i := range plain.Scopes {
		s := *plain.Scopes[i].Scope
		s.Operands, s.Members.Selector = nil, nil
		plain.Scopes[i].Scope = &s
	}

	text, err := json.Marshal(plain) //nolint:musttag // Nobody else reads it.
	if err != nil {
		t.Fatal(err)
	}

	var again plan.Plan
	if err := json.Unmarshal(text, &again); err != nil { //nolint:musttag // As above.
		t.Fatalf("%v\n%s", err, text)
	}

	for i := range again.Scopes {
		s, of := again.Scopes[i].Scope, p.Scopes[i].Scope
		s.Operands, s.Members.Selector = parsed(t, of.Operands), parsed(t, of.Members.Selector)
	}

	if !sameData().DeepEqual(p, &again) {
		t.Fatalf("the plan is not what it was:\n%s\n%s", p, &again)
	}

	if p.String() != again.String() || plantest.IsEmpty(p) != plantest.IsEmpty(&again) {
		t.Fatalf("the plan says something else:\n%s\n%s", p, &again)
	}

	return &again
}

// parsed is a selector that was read from its text; nil where there is none.
func parsed(t *rapid.T, s labels.Selector) labels.Selector {
	if s == nil {
		return nil
	}

	again, err := labels.Parse(s.String())
	if err != nil {
		t.Fatal(err)
	}

	return again
}

// sameData compares what JSON can tell apart: an empty list is no other than none. It panics at what is not data.
func sameData() conversion.Equalities {
	same := equality.Semantic.Copy()
	if err := same.AddFuncs(
		time.Time.Equal,
		func(a, b injection.Op) bool { return asJSON(a) == asJSON(b) },
		func(a, b labels.Selector) bool {
			return (a == nil) == (b == nil) && (a == nil || a.String() == b.String() && a.Empty() == b.Empty())
		},
	); err != nil {
		panic(err)
	}

	return same
}

func asJSON(v any) string {
	var plain any

	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}

	if err != nil {
		panic(err)
	}

	return fmt.Sprint(plain)
}
